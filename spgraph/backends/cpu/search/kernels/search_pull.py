# Part of search.py: a pull level, which searches the in-edges of unvisited vertices for vertices of
# the frontier.


@inner
def pull_shared(
    sync, indptr, t_indptr, t_indices, t_values, nonempty, level, value, visited, depth, frontier,
    fresh, state
):  # fmt: skip
    """This thread's part of a level: some words of the bitmap of unvisited vertices."""
    count = np.int64(0)
    edges = np.int64(0)
    probes = np.int64(0)
    while True:
        poll(sync)
        begin = atomic_add(state, TICKET, WORDS)
        if begin >= visited.size:
            break
        for w in range(begin, min(begin + WORDS, visited.size)):
            open_ = np.uint32(nonempty[w] & ~visited[w])
            bits = np.uint32(0)
            while open_ != 0:
                place = lowest_bit(open_)
                open_ = np.uint32(open_ & (open_ - np.uint32(1)))
                v = np.uint64(w) * np.uint64(32) + np.uint64(place)
                first = np.uint64(t_indptr[v])
                hit = False
                for e in range(first, np.uint64(t_indptr[v + np.uint64(1)])):
                    u = np.uint64(t_indices[e])
                    if TRACE:
                        probes += 1
                    if has_bit(frontier, u):
                        if not VALUES:
                            hit = True
                            break
                        z = product(value, t_values, u, v, e)
                        value[v] = add(value[v], z) if hit else sum_of_one(z)
                        hit = True
                        if ends(value[v]):
                            break
                if hit:
                    bits = np.uint32(bits | np.uint32(1) << np.uint32(place))
                    level[v] = depth
                    count += 1
                    edges += degree_of(indptr, v)
            fresh[w] = bits
    atomic_add(state, COUNT, count)
    atomic_add(state, EDGES, edges)
    atomic_add(state, PROBES, probes)
