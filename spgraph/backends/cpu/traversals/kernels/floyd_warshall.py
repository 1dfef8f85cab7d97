# The blocked Floyd-Warshall algorithm, with tiles that stay in a core's cache: one launch. Paths
# through the vertices of one block after the other are considered: first within the diagonal tile,
# then in the tiles of its row and column, then in all others. The threads divide the tiles of the
# second and the third step among them.
#
# `distance`, n x n and flat, holds lengths, which are replaced by distances; `parents`, if wanted,
# the vertex before the last on a shortest path. No preamble but the header.


@inner
def tile(distance, parents, with_parents, rows, columns, via, n, size):
    """Update one tile: paths from block `rows` to block `columns` through block `via`."""
    n, size = np.uint64(n), np.uint64(size)
    top, left, first = np.uint64(rows) * size, np.uint64(columns) * size, np.uint64(via) * size
    bottom, last = min(top + size, n), min(first + size, n)
    width = min(left + size, n) - left
    for k in range(first, last):
        beyond = k * n + left
        for i in range(top, bottom):
            x = distance[i * n + k]
            if x == np.inf:
                continue
            own = i * n + left
            if with_parents:
                # a comparison without a store is vectorised, and usually nothing improves
                better = np.int64(0)
                for j in range(width):
                    better += np.int64(x + distance[beyond + j] < distance[own + j])
                if better == 0:
                    continue
                for j in range(width):
                    z = x + distance[beyond + j]
                    if z < distance[own + j]:
                        distance[own + j] = z
                        parents[own + j] = parents[beyond + j]
            else:
                for j in range(width):
                    z = x + distance[beyond + j]
                    y = distance[own + j]
                    distance[own + j] = z if z < y else y


@inner
def outer_tile(distance, rows, columns, via, n, size):
    """`tile` without parents, for `via` different from `rows` and `columns`: four intermediate
    vertices at a time.
    """
    n, size = np.uint64(n), np.uint64(size)
    top, left, first = np.uint64(rows) * size, np.uint64(columns) * size, np.uint64(via) * size
    bottom, last = min(top + size, n), min(first + size, n)
    width = min(left + size, n) - left
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    for i in range(top, bottom):
        own = i * n + left
        k = first
        while k < last:
            # behind the end the last vertex is repeated, which changes nothing
            k1, k2, k3 = (
                min(k + one, last - one),
                min(k + two, last - one),
                min(k + three, last - one),
            )
            x0, x1 = distance[i * n + k], distance[i * n + k1]
            x2, x3 = distance[i * n + k2], distance[i * n + k3]
            if min(min(x0, x1), min(x2, x3)) < np.inf:
                b0, b1, b2, b3 = k * n + left, k1 * n + left, k2 * n + left, k3 * n + left
                for j in range(width):
                    y = distance[own + j]
                    z = x0 + distance[b0 + j]
                    y = z if z < y else y
                    z = x1 + distance[b1 + j]
                    y = z if z < y else y
                    z = x2 + distance[b2 + j]
                    y = z if z < y else y
                    z = x3 + distance[b3 + j]
                    distance[own + j] = z if z < y else y
            k += np.uint64(4)


@kernel
def floyd_warshall(thread, threads, sync, distance, parents, with_parents, n, size):
    blocks = (n + size - 1) // size
    for b in range(blocks):
        if thread == 0:
            tile(distance, parents, with_parents, b, b, b, n, size)
        barrier(sync, threads)
        # the other blocks of row b, then those of column b
        for item in range(thread, 2 * blocks, threads):
            poll(sync)
            other = item % blocks
            if other != b and item < blocks:
                tile(distance, parents, with_parents, b, other, b, n, size)
            elif other != b:
                tile(distance, parents, with_parents, other, b, b, n, size)
        barrier(sync, threads)
        for item in range(thread, blocks * blocks, threads):
            poll(sync)
            row, column = item // blocks, item % blocks
            if row != b and column != b:
                if with_parents:
                    tile(distance, parents, with_parents, row, column, b, n, size)
                else:
                    outer_tile(distance, row, column, b, n, size)
        barrier(sync, threads)
