# Distances along given parents, for all pairs of vertices. No preamble but the header.


@kernel
def path_lengths(
    thread, threads, sync, graph, parents, n, missing, distance, chains, stamps, failed
):
    """distance[i, j]: the length of the path from i to j that parents[i] describe, or from where it
    begins if that is not i; `missing` if j has no parent. failed[0] = 1 if some parents form a
    cycle or are not vertices.

    All arrays are flat. The parents of j are followed back to a vertex of known distance, and the
    lengths are added up on the way back to j.
    """
    chain, stamp = chains[thread], stamps[thread]
    size = np.uint64(n)
    for i in range(np.uint64(thread), size, np.uint64(threads)):
        row = i * size
        mark = np.int32(2 * i + np.uint64(2))  # known in this row; mark - 1: in the chain
        poll(sync)
        for j in range(size):
            v, count = j, 0
            while stamp[v] != mark:
                u = np.int64(parents[row + v])
                if v == i or u == -9999:
                    distance[row + v] = 0.0
                    stamp[v] = mark
                    break
                if u < 0 or u >= n or stamp[v] == mark - 1:
                    failed[0] = 1
                    return
                stamp[v] = mark - 1
                chain[count] = v
                count += 1
                v = np.uint64(u)
            total = distance[row + v]
            while count > 0:
                count -= 1
                w = np.uint64(chain[count])
                total += graph[v * size + w]
                distance[row + w] = total
                stamp[w] = mark
                v = w
        for j in range(size):
            if parents[row + j] == -9999 and j != i:
                distance[row + j] = missing
