# Brandes' dependencies of one source, whose levels are known: the threads share each level.
# Preamble: PATHS (True), EXTENDED, ALONE (steps of a level below which thread 0 does it alone), and
# dependencies_steps.py.


@inner
def order_by_level(
    thread, threads, sync, indptr, t_indptr, level, levels, counts, order, ranges, paths
):  # fmt: skip
    """`order` and `ranges` of vertices whose levels are known (-1: none); those of level 0 have one
    path each.
    """
    n = level.size
    first, last = n * thread // threads, n * (thread + 1) // threads
    for v in range(np.uint64(first), np.uint64(last)):
        d = level[v]
        if d < 0:
            continue
        if d == 0:
            paths[0, v] = 1.0
        one = np.uint64(1)
        counts[thread, d, START] += 1
        counts[thread, d, OUT] += np.int64(indptr[v + one]) - np.int64(indptr[v])
        counts[thread, d, IN] += np.int64(t_indptr[v + one]) - np.int64(t_indptr[v])
    barrier(sync, threads)
    if thread == 0:
        ranges[0, START], ranges[0, OUT], ranges[0, IN] = 0, 0, 0
        for d in range(levels):
            for k in range(3):
                ranges[d + 1, k] = ranges[d, k]
            for t in range(threads):
                here = counts[t, d, START]
                counts[t, d, START] = ranges[d + 1, START]  # where the thread's own begin
                ranges[d + 1, START] += here
                ranges[d + 1, OUT] += counts[t, d, OUT]
                ranges[d + 1, IN] += counts[t, d, IN]
    barrier(sync, threads)
    for v in range(first, last):
        d = level[v]
        if d >= 0:
            order[counts[thread, d, START]] = v
            counts[thread, d, START] += 1
    barrier(sync, threads)


@inner
def small(threads, ranges, d, acyclic):
    """Whether the edges between level d and the one before, and its rows, are one thread's work."""
    out_edges = ranges[d, OUT] - ranges[d - 1, OUT]
    in_edges = ranges[d + 1, IN] - ranges[d, IN]
    # forward and backward pulls read the edges at different ends
    edges = max(out_edges, in_edges) if acyclic or EXTENDED else min(out_edges, in_edges)
    rows = ranges[d + 1, START] - ranges[d - 1, START]
    return threads == 1 or edges + rows < ALONE


@inner
def paths_by_level(
    thread, threads, sync, indptr, indices, t_indptr, t_indices, level, levels, acyclic, order,
    ranges, tickets, paths, exponents
):  # fmt: skip
    """The paths of all levels; at the end all threads have arrived."""
    waits = False  # whether thread 0 has done levels alone, which the others have not waited for
    for d in range(1, levels):
        alone = small(threads, ranges, d, acyclic)
        if waits and not alone:
            barrier(sync, threads)
        who, team = (0, 1) if alone else (thread, threads)
        if thread == 0 or not alone:
            count_paths(
                *(who, team, sync, indptr, indices, t_indptr, t_indices, level, order, ranges, d),
                *(acyclic, tickets, paths, exponents),
            )
        if not alone:
            barrier(sync, threads)
        waits = alone
    if waits:
        barrier(sync, threads)


@inner
def shares_by_level(
    thread, threads, sync, indptr, indices, t_indptr, t_indices, level, levels, acyclic, order,
    ranges, tickets, paths, exponents, share, share_exponents
):  # fmt: skip
    """The shares and dependencies of all levels, which others may still be writing; the most paths
    among this thread's.
    """
    waits, most = False, 0.0
    for d in range(levels - 1, 0, -1):
        alone = small(threads, ranges, min(d + 1, levels - 1), acyclic)
        if waits and not alone:
            barrier(sync, threads)
        who, team = (0, 1) if alone else (thread, threads)
        if thread == 0 or not alone:
            here = carry_shares(
                *(who, team, sync, indptr, indices, t_indptr, t_indices, level, order, ranges, d),
                *(levels, acyclic, tickets, paths, exponents, share, share_exponents),
            )
            most = max(most, here)
        if not alone:
            barrier(sync, threads)
        waits = alone
    return most


@kernel
def dependencies(
    thread, threads, sync, indptr, indices, t_indptr, t_indices, level, levels, acyclic, counts,
    order, ranges, tickets, paths, exponents, share, share_exponents, score, overflow
):  # fmt: skip
    order_by_level(
        thread, threads, sync, indptr, t_indptr, level, levels, counts, order, ranges, paths
    )
    paths_by_level(
        *(thread, threads, sync, indptr, indices, t_indptr, t_indices, level, levels, acyclic),
        *(order, ranges, tickets, paths, exponents),
    )
    if too_many(ranges, levels, order, paths[0 if acyclic else (levels - 1) & 1]):
        if thread == 0:
            overflow[0] = 1
        return
    most = shares_by_level(
        *(thread, threads, sync, indptr, indices, t_indptr, t_indices, level, levels, acyclic),
        *(order, ranges, tickets, paths, exponents, share, share_exponents),
    )
    if not most <= MOST:
        overflow[0] = 1
    barrier(sync, threads)
    if overflow[0] == 0:
        n = level.size
        for v in range(n * thread // threads, n * (thread + 1) // threads):
            if level[v] > 0:
                score[v] += paths[1 if acyclic else 1 - (level[v] & 1), v]
