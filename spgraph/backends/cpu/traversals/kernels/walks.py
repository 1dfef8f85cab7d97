# Walks over a graph that start anew from many vertices, or must go in one order: those of
# spgraph.csgraph. A walk is one thread's; walks from several vertices are shared by the threads.
#
# Edges lie in two sets of rows, `indptr, indices, values` and, where an edge may be gone both ways
# (`both`), the rows of the transpose. Rows need be neither sorted nor free of repetitions: what is
# repeated is a parallel edge. `values[e & keep]` is the length of edge e: keep is 0 where all have
# one length. A walk of `shortest` and of `relax` starts from starts[bounds[b]:bounds[b + 1]], from
# each of them at distance `origin`.
#
# No preamble but the header.

from spgraph.backends.cpu.device.prefetching import prefetch

# the rest of a queue whose rows are fetched ahead
FAR_AHEAD, AHEAD = 12, 5
# what `place` says of a vertex that is not in the heap; of others, one more than where it is
UNSEEN, SETTLED = 0, -1
# children of a node of the heap
ARITY = 4
# what a cycle may be below zero by rounding
SLACK = 1e-15


@inner
def rise(keys, heap, place, hole, key, v):
    """Put v with its key where it belongs, from `hole` upwards."""
    while hole > np.uint64(0):
        above = (hole - np.uint64(1)) // np.uint64(ARITY)
        if keys[above] <= key:
            break
        keys[hole] = keys[above]
        heap[hole] = heap[above]
        place[np.uint64(heap[hole])] = hole + np.uint64(1)
        hole = above
    keys[hole] = key
    heap[hole] = v
    place[v] = hole + np.uint64(1)


@inner
def sink(keys, heap, place, count):
    """Put the last of `count` + 1 entries where it belongs, from the top downwards."""
    key, v = keys[count], np.uint64(heap[count])
    hole = np.uint64(0)
    while True:
        child = np.uint64(ARITY) * hole + np.uint64(1)
        if child >= count:
            break
        least, low = child, keys[child]
        for other in range(child + np.uint64(1), min(child + np.uint64(ARITY), count)):
            if keys[other] < low:
                least, low = np.uint64(other), keys[other]
        if low >= key:
            break
        keys[hole] = low
        heap[hole] = heap[least]
        place[np.uint64(heap[hole])] = hole + np.uint64(1)
        hole = least
    keys[hole] = key
    heap[hole] = v
    place[v] = hole + np.uint64(1)


@inner
def offer(
    u, x, indptr, indices, values, keep, limit, reached, parent, root, wants, roots, keys, heap,
    place, count
):  # fmt: skip
    """Relax the edges of one row of u, which is settled at x: how many the heap holds then."""
    for e in range(np.uint64(indptr[u]), np.uint64(indptr[u + np.uint64(1)])):
        v = np.uint64(indices[e])
        z = x + values[e & keep]
        if z < reached[v] and z <= limit:
            at = place[v]
            if at == SETTLED:
                continue
            reached[v] = z
            hole = np.uint64(at - 1)
            if at == UNSEEN:
                hole = count
                count += np.uint64(1)
            if wants:
                parent[v] = u
            if roots:
                root[v] = root[u]
            rise(keys, heap, place, hole, z, v)
    return count


@kernel
def shortest(
    thread, threads, sync, ticket, starts, bounds, indptr, indices, values, t_indptr, t_indices,
    t_values, keep, both, limit, distance, parents, origins, wants, roots, all_keys, heaps, places
):  # fmt: skip
    """Dijkstra's walks: `distance[b]` holds infinity and `parents[b]`, `origins[b]` their sentinel
    where a walk does not lead. Lengths are not negative, or are taken as if they were not.

    What is settled lies at the far end of the heap's array: it is at once what a walk has touched.
    """
    keys, heap, place = all_keys[thread], heaps[thread], places[thread]
    n = np.uint64(place.size)
    far = n
    while True:
        poll(sync)
        b = atomic_add(ticket, 0, 1)
        if b >= bounds.size - 1:
            break
        for k in range(far, n):
            place[np.uint64(heap[k])] = UNSEEN
        far = n
        reached = distance[b]
        parent, root = parents[b if wants else 0], origins[b if roots else 0]
        count = np.uint64(0)
        for k in range(bounds[b], bounds[b + 1]):
            s = np.uint64(starts[k])
            if place[s] == UNSEEN:
                far -= np.uint64(1)
                heap[far] = s
                place[s] = SETTLED
                reached[s] = 0.0
                if roots:
                    root[s] = s
        first, k = far, n
        while True:
            if k > first:
                k -= np.uint64(1)
                u = np.uint64(heap[k])
            elif count > np.uint64(0):
                u = np.uint64(heap[0])
                place[u] = SETTLED
                count -= np.uint64(1)
                if count > np.uint64(0):
                    sink(keys, heap, place, count)
                far -= np.uint64(1)
                heap[far] = u
            else:
                break
            if far & np.uint64(1023) == 0:
                poll(sync)
            if count > np.uint64(0):  # probably the next
                row = np.uint64(indptr[np.uint64(heap[0])])
                prefetch(indices, row)
                prefetch(values, row & keep)
            x = reached[u]
            count = offer(
                *(u, x, indptr, indices, values, keep, limit, reached, parent, root),
                *(wants, roots, keys, heap, place, count),
            )
            if both:
                count = offer(
                    *(u, x, t_indptr, t_indices, t_values, keep, limit, reached, parent, root),
                    *(wants, roots, keys, heap, place, count),
                )


@inner
def improve(u, indptr, indices, values, keep, reached, parent, last, marked, queue, count):
    """Relax the edges of one row of u; vertices that get better join the queue, each once. `last`
    is the edge by which a vertex was reached.
    """
    x = reached[u]
    for e in range(np.uint64(indptr[u]), np.uint64(indptr[u + np.uint64(1)])):
        v = np.uint64(indices[e])
        z = x + values[e & keep]
        if z < reached[v]:
            reached[v] = z
            parent[v] = u
            last[v] = values[e & keep]
            if marked[v] == 0:
                marked[v] = 1
                queue[count] = v
                count += 1
            if v == u:
                x = reached[u]
    return count


@inner
def closes(parent, last, colour):
    """Whether parents lead around a cycle of negative length."""
    n = parent.size
    colour[:] = 0
    for s in range(n):
        v = s
        while v >= 0 and colour[v] == 0:
            colour[v] = s + 1
            v = np.int64(parent[v])
        if v >= 0 and colour[v] == s + 1:
            total, w = last[v], np.int64(parent[v])
            while w != v:
                total += last[w]
                w = np.int64(parent[w])
            if total < -SLACK:
                return True
    return False


@inner
def unstable(indptr, indices, values, keep, reached):
    """Whether an edge still makes a vertex better, by more than rounding."""
    for i in range(np.uint64(reached.size)):
        for e in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
            if reached[i] + values[e & keep] + SLACK < reached[np.uint64(indices[e])]:
                return True
    return False


@kernel
def relax(
    thread, threads, sync, ticket, starts, bounds, indptr, indices, values, t_indptr, t_indices,
    t_values, keep, both, distance, parents, failed, lasts, queues, marks, colours
):  # fmt: skip
    """Bellman's and Ford's walks, for lengths of either sign: rounds over what got better in the
    round before. failed[b] = 1 where a walk leads into a cycle of negative length.

    Parents lead around a cycle if there is one such, after some rounds: that is looked at ever more
    rarely. Rounding may hide it; then the vertices do not rest within as many rounds as there are.
    """
    queue, fresh = queues[thread, 0], queues[thread, 1]
    last, marked, colour = lasts[thread], marks[thread], colours[thread]
    n = distance.shape[1]
    while True:
        poll(sync)
        b = atomic_add(ticket, 0, 1)
        if b >= bounds.size - 1:
            break
        reached, parent = distance[b], parents[b]
        marked[:] = 0
        count = np.int64(0)
        for k in range(bounds[b], bounds[b + 1]):
            s = np.uint64(starts[k])
            if marked[s] == 0:
                reached[s] = 0.0
                marked[s] = 1
                queue[count] = s
                count += 1
        rounds, look = np.int64(0), np.int64(16)
        while count > 0:
            found = np.int64(0)
            for i in range(count):
                if i & 1023 == 0:
                    poll(sync)
                u = np.uint64(queue[i])
                marked[u] = 0
                found = improve(
                    u, indptr, indices, values, keep, reached, parent, last, marked, fresh, found
                )
                if both:
                    found = improve(
                        *(u, t_indptr, t_indices, t_values, keep, reached, parent, last),
                        *(marked, fresh, found),
                    )
            queue, fresh = fresh, queue
            count = found
            rounds += 1
            if rounds == look or rounds > n:
                look *= 2
                if closes(parent, last, colour):
                    failed[b] = 1
                    break
            if rounds > n:
                if unstable(indptr, indices, values, keep, reached) or (
                    both and unstable(t_indptr, t_indices, t_values, keep, reached)
                ):
                    failed[b] = 1
                break


@kernel
def breadth_first(
    thread, threads, sync, start, indptr, indices, t_indptr, t_indices, both, order, parent, counts
):
    """The vertices in the order of a queue, each with the one that put it there; counts[0] of them.
    `parent` is -1 all over; the start is its own.
    """
    order[0] = start
    parent[start] = start
    count, done = np.uint64(1), np.uint64(0)
    n = np.uint64(order.size)
    while done < count and count < n:
        if done & np.uint64(4095) == 0:
            poll(sync)
        u = np.uint64(order[done])
        if done + np.uint64(FAR_AHEAD) < count:
            prefetch(indptr, np.uint64(order[done + np.uint64(FAR_AHEAD)]))
            w = np.uint64(order[done + np.uint64(AHEAD)])
            prefetch(indices, np.uint64(indptr[w]))
        done += np.uint64(1)
        for e in range(np.uint64(indptr[u]), np.uint64(indptr[u + np.uint64(1)])):
            v = np.uint64(indices[e])
            if parent[v] < 0:
                parent[v] = u
                order[count] = v
                count += np.uint64(1)
        if both:
            for e in range(np.uint64(t_indptr[u]), np.uint64(t_indptr[u + np.uint64(1)])):
                v = np.uint64(t_indices[e])
                if parent[v] < 0:
                    parent[v] = u
                    order[count] = v
                    count += np.uint64(1)
    counts[0] = count


@kernel
def strong(thread, threads, sync, indptr, indices, label, root, at, path, counts):
    """The strong component of every vertex, numbered as they are completed, counts[0] of them:
    Tarjan's walk as Pearce has it.

    label[v] is 0 before v is seen, then the least place on the walk that v is known to reach, and
    from n downwards the number of a component that is complete: more than any place still in use.
    `path` holds the walk from the left, and from the right what is seen but not yet complete.
    """
    n = label.size
    index, number, held = np.int64(1), np.int64(n), np.int64(n)
    steps = 0
    for s in range(n):
        if label[s] != 0:
            continue
        path[0] = s
        depth = np.int64(1)
        label[s], root[s], at[s] = index, 1, indptr[s]
        index += 1
        while depth > 0:
            steps += 1
            if steps & 4095 == 0:
                poll(sync)
            v = np.uint64(path[depth - 1])
            e, stop = np.uint64(at[v]), np.uint64(indptr[v + np.uint64(1)])
            least = label[v]
            down = False
            while e < stop:
                w = np.uint64(indices[e])
                e += np.uint64(1)
                if label[w] == 0:
                    down = True
                    at[v] = e
                    path[depth] = w
                    depth += 1
                    label[w], root[w], at[w] = index, 1, indptr[w]
                    index += 1
                    break
                if label[w] < least:
                    least = label[w]
                    root[v] = 0
            if root[v] == 0:
                label[v] = least
            if down:
                continue
            depth -= 1
            if root[v] != 0:
                index -= 1
                while held < n and label[np.uint64(path[held])] >= least:
                    label[np.uint64(path[held])] = number
                    held += 1
                    index -= 1
                label[v] = number
                number -= 1
            else:
                held -= 1
                path[held] = v
                above = np.uint64(path[depth - 1])
                if least < label[above]:
                    label[above] = least
                    root[above] = 0
    for v in range(n):
        label[v] = n - label[v]
    counts[0] = n - number


@kernel
def lengths(thread, threads, sync, graph, parents, n, missing, distance, chains, stamps, failed):
    """distance[i, j]: the sum of the edges along parents[i] from j back to i, or to where they end;
    `missing` where there is none. failed[0] = 1 where they lead around a cycle or out of the graph.

    All arrays are flat. A chain is followed to a vertex whose sum is known, and summed up on the
    way back.
    """
    chain, stamp = chains[thread], stamps[thread]
    size = np.uint64(n)
    for i in range(np.uint64(thread), size, np.uint64(threads)):
        row = i * size
        mark = np.int32(2 * i + np.uint64(2))  # known in this row; one less: in the chain
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


@kernel
def spanning(
    thread, threads, sync, indptr, indices, values, keep, kept, heads, tails, edges, best, root
):
    """kept[e] = 1 for the edges of the spanning forest of least weight; of equal weights the first
    counts as less, and NaN as more than all.

    Boruvka's rounds: every tree takes its least edge, which joins it to another. Then the edges
    inside of trees go, and the others follow their ends to the roots.
    """
    n = root.size
    count = np.int64(0)
    for i in range(np.uint64(n)):
        root[i] = i
        for e in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
            if np.uint64(indices[e]) != i:
                heads[count], tails[count], edges[count] = i, indices[e], e
                count += 1
    while count > 0:
        best[:] = -1
        for k in range(count):
            if k & 0xFFFF == 0:
                poll(sync)
            w = values[np.uint64(edges[k]) & keep]
            for c in (np.uint64(heads[k]), np.uint64(tails[k])):
                b = best[c]
                if b < 0:
                    best[c] = k
                else:
                    least = values[np.uint64(edges[np.uint64(b)]) & keep]
                    if w < least or (least != least and w == w):
                        best[c] = k
        for c in range(n):
            b = best[c]
            if b >= 0:
                kept[edges[b]] = 1
                other = heads[b] + tails[b] - c
                # two that are nearest to each other: the lesser is the root
                if best[other] != b or c > other:
                    root[c] = other
        for c in range(n):
            r = root[c]
            while root[r] != r:
                r = root[r]
            v = c
            while root[v] != r:
                above = root[v]
                root[v] = r
                v = above
        left = np.int64(0)
        for k in range(count):
            h, t = root[np.uint64(heads[k])], root[np.uint64(tails[k])]
            if h != t:
                heads[left], tails[left], edges[left] = h, t, edges[k]
                left += 1
        count = left
