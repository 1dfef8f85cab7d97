# Strong components by one thread, in linear time; no preamble but the header. Source: Pearce,
# "A space-efficient algorithm for finding strongly connected components" (2016), after Tarjan.


@inner
def complete(label, path, held, least, number):
    """Label the vertices on the stack that reach no lower index than `least`; returns where the
    rest of the stack begins.
    """
    while held < label.size and label[np.uint64(path[held])] >= least:
        label[np.uint64(path[held])] = number
        held += 1
    return held


@kernel
def strong_components(thread, threads, sync, indptr, indices, label, root, at, path, counts):
    """The strong component of every vertex in `label`, numbered in the order of completion;
    counts[0] is the number of components.

    label[v] is 0 before v is visited, then the least preorder index that v is known to reach, and
    finally the number of its component, counted down from n, which is greater than all indices in
    use. `path` holds the depth-first path from the left, and from the right the stack of vertices
    that are visited but whose component is not complete.
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
                label[v] = number
                below = held
                held = complete(label, path, held, least, number)
                index -= 1 + held - below
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
