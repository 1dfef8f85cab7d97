# For every vertex v: the least other vertex u with  value[u] * A[u, v] == value[v].  And, by one
# thread, the parents of a search from one vertex along these edges.  Preamble: IN (rows hold
# in-edges: the matrix is A's transpose; else out-edges), SOLE (end, with several[0] = 1, where a
# vertex has more than one, counting what `parent` holds before), ISO, multiply, the texts of
# bits.py and carried.py.


@kernel
def parents(thread, threads, sync, indptr, indices, values, value, bits, parts, parent, several):
    """This thread's rows, from parts[thread] on; -1 in `parent` stands for none."""
    for i in range(np.uint64(parts[thread]), np.uint64(parts[thread + 1])):
        if i & np.uint64(1023) == 0:
            poll(sync)
            if SOLE and several[0] != 0:
                return
        if not has_value(bits, i):
            continue
        x = value[i]
        for e in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
            j = np.uint64(indices[e])
            a = values[0] if ISO else values[e]
            if IN:
                if multiply(value[j], a, 0, j, j, i) != x or not has_value(bits, j):
                    continue
            elif not carries(x, a, i, j, value, bits):
                continue
            if i == j:
                continue
            old = parent[i if IN else j]
            if SOLE and old >= 0:
                several[0] = 1
                return
            if IN:
                parent[i] = j
                if not SOLE:  # the first of an ascending row is the least
                    break
                continue
            if threads == 1:  # rows ascend
                if old < 0:
                    parent[j] = i
                continue
            new = np.int64(i)
            while (old < 0 or new < old) and not compare_exchange(parent, np.int64(j), old, new):
                if SOLE:
                    several[0] = 1
                    return
                old = atomic_load(parent, np.int64(j))


@kernel
def path_tree(
    thread, threads, sync, indptr, indices, values, value, bits, source, parent, level, queue, count
):
    """The least parents of a search from `source`, itself there; -1 for vertices that it does not
    find, and how many it does.
    """
    for v in range(np.uint64(parent.size)):
        parent[v] = -1
    queue[0], parent[source], level[source] = source, source, 0
    found, at = np.uint64(1), np.uint64(0)
    while at < found:
        if at & np.uint64(1023) == 0:
            poll(sync)
        i = np.uint64(queue[at])
        at += np.uint64(1)
        x, depth = value[i], level[i] + 1
        for e in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
            j = np.uint64(indices[e])
            if not carries(x, values[0] if ISO else values[e], i, j, value, bits):
                continue
            if parent[j] < 0:
                parent[j], level[j], queue[found] = i, depth, j
                found += np.uint64(1)
            elif level[j] == depth and i < np.uint64(parent[j]):
                parent[j] = i
    count[0] = found
