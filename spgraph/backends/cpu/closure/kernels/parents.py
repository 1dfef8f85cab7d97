# For every vertex v: the least other vertex u with  value[u] * A[u, v] == value[v].  Preamble: IN
# (rows hold in-edges: the matrix is A's transpose; else out-edges), SOLE (end, with several[0] = 1,
# where a vertex has more than one, counting what `parent` holds before), ISO, multiply.


@kernel
def parents(thread, threads, sync, indptr, indices, values, value, bits, parts, parent, several):
    """This thread's rows, from parts[thread] on; -1 in `parent` stands for none."""
    full = bits.size == 0
    for i in range(np.uint64(parts[thread]), np.uint64(parts[thread + 1])):
        if i & np.uint64(1023) == 0:
            poll(sync)
            if SOLE and several[0] != 0:
                return
        if not full and bits[i >> np.uint64(5)] >> np.uint32(i & np.uint64(31)) & np.uint32(1) == 0:
            continue
        x = value[i]
        for e in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
            j = np.uint64(indices[e])
            a = values[0] if ISO else values[e]
            if IN:
                if multiply(value[j], a, 0, j, j, i) != x:
                    continue
            elif multiply(x, a, 0, i, i, j) != value[j]:
                continue
            bit = np.uint32(j & np.uint64(31))
            if i == j or (not full and bits[j >> np.uint64(5)] >> bit & np.uint32(1) == 0):
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
