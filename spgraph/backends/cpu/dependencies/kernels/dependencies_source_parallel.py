# Brandes' dependencies of many sources: every thread takes a source, and also finds its levels.
# `levels` is that search alone.
# Preamble: PATHS (False: levels only), EXTENDED, FIRST_HIT, pull_pays, and dependencies_steps.py.

# a source that reaches less than one of so many vertices is forgotten by the list of them
FEW = 8


@inner
def find_by_push(sync, indptr, indices, level, order, first, last, depth, here, there):
    """Find the vertices of level `depth` by the out-edges of order[first:last], and their numbers
    of paths; returns where they end in `order`.
    """
    found = last
    for i in range(first, last):
        if i & 1023 == 0:
            poll(sync)
        u = np.uint64(order[i])
        x = here[u] if PATHS else 0.0
        for e in range(np.uint64(indptr[u]), np.uint64(indptr[u + np.uint64(1)])):
            v = np.uint64(indices[e])
            if level[v] < 0:
                level[v] = depth
                order[found] = v
                found += 1
                if PATHS:
                    there[v] = x
            elif PATHS and level[v] == depth:
                there[v] += x
    return found


@inner
def find_by_pull(sync, t_indptr, t_indices, level, order, last, depth):
    """The same by the in-edges of unvisited vertices, without the numbers of paths."""
    found = last
    for v in range(np.uint64(level.size)):
        if v & np.uint64(4095) == 0:
            poll(sync)
        if level[v] >= 0:
            continue
        for e in range(np.uint64(t_indptr[v]), np.uint64(t_indptr[v + np.uint64(1)])):
            if level[np.uint64(t_indices[e])] == depth - 1:
                level[v] = depth
                order[found] = v
                found += 1
                break
    return found


@inner
def count_edges(indptr, order, first, last):
    edges = np.int64(0)
    for i in range(first, last):
        v = np.uint64(order[i])
        edges += np.int64(indptr[v + np.uint64(1)]) - np.int64(indptr[v])
    return edges


@inner
def find(
    sync, indptr, indices, t_indptr, t_indices, symmetric, source, level, order, ranges, paths,
    exponents, tickets
):  # fmt: skip
    """All levels from a source by one thread, and the paths to them; how many levels there are.
    Before, no vertex has a level or a path.
    """
    n, m = level.size, indices.size
    level[source] = 0
    order[0] = source
    if PATHS:
        paths[0, source] = 1.0
    ranges[0, START], ranges[0, OUT], ranges[0, IN] = 0, 0, 0
    first, last, depth, pulled = np.int64(0), np.int64(1), 0, False
    while first < last:
        out_edges = count_edges(indptr, order, first, last)
        in_edges = out_edges if symmetric else count_edges(t_indptr, order, first, last)
        ranges[depth + 1, START] = last
        ranges[depth + 1, OUT] = ranges[depth, OUT] + out_edges
        ranges[depth + 1, IN] = ranges[depth, IN] + in_edges
        if PATHS and depth > 0 and (pulled or EXTENDED):
            count_paths(
                *(0, 1, sync, indptr, indices, t_indptr, t_indices, level, order, ranges, depth),
                *(False, tickets, paths, exponents),
            )
        depth += 1
        # out-edges of open vertices are their in-edges only in a symmetric graph
        open_edges = m - ranges[depth, OUT] if symmetric else m
        pulled = pull_pays(float(out_edges), float(n - last), float(open_edges), float(m))
        if pulled:
            found = find_by_pull(sync, t_indptr, t_indices, level, order, last, depth)
        else:
            found = find_by_push(
                *(sync, indptr, indices, level, order, first, last, depth),
                *(paths[(depth - 1) & 1], paths[depth & 1]),
            )
        first, last = last, found
    return depth


@inner
def forget(level, order, count, paths, share):
    """Levels, paths and shares of order[:count], all that have any, are as before."""
    n = level.size
    if FEW * count < n:
        for i in range(count):
            v = np.uint64(order[i])
            level[v] = -1
            paths[0, v], paths[1, v], share[0, v], share[1, v] = 0.0, 0.0, 0.0, 0.0
        return
    for v in range(n):
        level[v] = -1
        paths[0, v], paths[1, v], share[0, v], share[1, v] = 0.0, 0.0, 0.0, 0.0


@inner
def add_dependencies(first, last, level, order, count, paths, score):
    """Add those of one source on the vertices from `first` to `last`; it has reached `count`."""
    if count < last - first:
        for i in range(count):
            v = np.int64(order[i])
            if first <= v and v < last and level[v] > 0:
                score[v] += paths[1 - (level[v] & 1), v]
        return
    for v in range(first, last):
        if level[v] > 0:
            score[v] += paths[1 - (level[v] & 1), v]


@kernel
def source_parallel(
    thread, threads, sync, indptr, indices, t_indptr, t_indices, symmetric, sources, all_level,
    all_order, all_ranges, all_paths, all_exponents, all_share, all_share_exponents, score, reached
):  # fmt: skip
    """`reached` has -1 for sources with too many paths, which add nothing. Paths and shares are
    zeros.
    """
    level, order, ranges = all_level[thread], all_order[thread], all_ranges[thread]
    paths, exponents = all_paths[thread], all_exponents[thread]
    share, share_exponents = all_share[thread], all_share_exponents[thread]
    tickets = ranges[0]  # not used: each thread works alone
    n, count = level.size, np.int64(0)
    for v in range(n):
        level[v] = -1
    for begin in range(0, sources.size, threads):
        k = begin + thread
        if k < sources.size:
            forget(level, order, count, paths, share)
            levels = find(
                *(sync, indptr, indices, t_indptr, t_indices, symmetric, sources[k]),
                *(level, order, ranges, paths, exponents, tickets),
            )
            most, count = 0.0, ranges[levels, START]
            if too_many(ranges, levels, order, paths[(levels - 1) & 1]):
                most, levels = math.inf, 0
            for d in range(levels - 1, 0, -1):
                here = carry_shares(
                    *(0, 1, sync, indptr, indices, t_indptr, t_indices, level, order, ranges, d),
                    *(levels, False, tickets, paths, exponents, share, share_exponents),
                )
                most = max(most, here)
            reached[k] = count if most <= MOST else -1
        barrier(sync, threads)
        # in the order of the sources, however many threads there are
        for j in range(begin, min(begin + threads, sources.size)):
            t = j - begin
            add_dependencies(
                *(n * thread // threads, n * (thread + 1) // threads, all_level[t], all_order[t]),
                *(reached[j], all_paths[t], score),
            )
        barrier(sync, threads)


@kernel
def levels(
    thread, threads, sync, indptr, indices, t_indptr, t_indices, symmetric, sources, ticket,
    all_order, all_ranges, found, none
):  # fmt: skip
    order, ranges = all_order[thread], all_ranges[thread]
    while True:
        poll(sync)
        k = atomic_add(ticket, 0, 1)
        if k >= sources.size:
            break
        level = found[k]
        for v in range(level.size):
            level[v] = -1
        find(
            *(sync, indptr, indices, t_indptr, t_indices, symmetric, sources[k]),
            *(level, order, ranges, none, none, ticket),
        )
