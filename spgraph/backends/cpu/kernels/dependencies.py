# What every vertex is worth to the shortest paths from a source (Brandes 2001): level by level the
# number of paths that lead to a vertex, then, back again, what it carries of those that lead on.
#
#   paths[v] = the sum of paths[u] over the edges u -> v from the level before
#   share[u] = 1 / paths[u] + s,  s = the sum of share[v] over the edges u -> v to the level behind
#   dependency[u] = paths[u] * s
#
# An edge that is pulled along costs one look and no test of a level: `paths` and `share` have two
# rows, for even and for odd levels, and hold zero where a vertex has got no value yet. An in-edge
# of level d comes from level d - 1, or from d and behind, which have no value in the row of d - 1
# yet; an out-edge of level d leads to d + 1, or to d and before, where it is the same. What a row
# of `paths` leaves free, at the vertices of the other levels, takes the sums, then dependencies.
# Where the level that lies nearer has far fewer edges than the one that wants to be pulled, they
# are pushed along instead, with a test: most edges of most graphs are never looked at.
#
# `acyclic`: all edges count, and lead from a level to any one behind; then one row is enough, and
# pushing is not worth its while. EXTENDED: numbers of paths beyond what float64 holds have an
# exponent of their own: value = mantissa * 2**exponent.
#
# Two forms: `dependencies` shares the levels of one source among the threads; in `apart` every
# thread takes a source for itself. `levels` is the search of `apart` alone.
#
# Preamble: PATHS (False: levels only), EXTENDED, FIRST_HIT, pull_pays.

# a step of push in steps of pull: it tests a level, and adds to memory
PUSH_STEP = 2
# steps below which one thread is faster than two that wait for each other
ALONE = 4096
# rows that a thread takes at a time
ROWS = 64
# more paths are too many for float64: their reciprocals and sums have to have room, too
MOST = 2.0**1000
# columns of `rungs`: where a level begins in `order`, the out-edges and in-edges of those before
START, OUT, IN = 0, 1, 2

# what only other kernels call needs no way in from Python: half of the time to compile
inner = njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)


# ---- numbers with an exponent -----------------------------------------------------------------


@inner
def plus(x, p, y, q):
    """x * 2**p + y * 2**q; a zero has any exponent."""
    if y == 0.0:
        return x, p
    if x == 0.0:
        return y, q
    if p >= q:
        return x + math.ldexp(y, np.int32(max(q - p, -2000))), p
    return math.ldexp(x, np.int32(max(p - q, -2000))) + y, q


@inner
def normal(x, p):
    """The same value with a mantissa below 1."""
    fraction, exponent = math.frexp(x)
    return fraction, p + exponent


# ---- levels -----------------------------------------------------------------------------------


@inner
def find_by_push(indptr, indices, level, order, first, last, depth, here, there):
    """The vertices of level `depth` by the edges of order[first:last], and their paths; where they
    end in `order`.
    """
    found = last
    for i in range(first, last):
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
def find_by_pull(t_indptr, t_indices, level, order, last, depth):
    """The same by the in-edges of the vertices that have no level, without their paths."""
    found = last
    for v in range(np.uint64(level.size)):
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
    indptr, indices, t_indptr, t_indices, symmetric, source, level, order, rungs, paths, exponents,
    tickets
):  # fmt: skip
    """All levels from a source by one thread, and the paths to them; how many levels there are."""
    n, m = level.size, indices.size
    for v in range(n):
        level[v] = -1
        if PATHS:
            paths[0, v], paths[1, v] = 0.0, 0.0
    level[source] = 0
    order[0] = source
    if PATHS:
        paths[0, source] = 1.0
    rungs[0, START], rungs[0, OUT], rungs[0, IN] = 0, 0, 0
    first, last, depth, pulled = np.int64(0), np.int64(1), 0, False
    while first < last:
        out_edges = count_edges(indptr, order, first, last)
        in_edges = out_edges if symmetric else count_edges(t_indptr, order, first, last)
        rungs[depth + 1, START] = last
        rungs[depth + 1, OUT] = rungs[depth, OUT] + out_edges
        rungs[depth + 1, IN] = rungs[depth, IN] + in_edges
        if PATHS and depth > 0 and (pulled or EXTENDED):
            count_paths(
                *(0, 1, indptr, indices, t_indptr, t_indices, level, order, rungs, depth, False),
                *(tickets, paths, exponents),
            )
        depth += 1
        # out-edges of open vertices are their in-edges only in a symmetric graph
        open_edges = m - rungs[depth, OUT] if symmetric else m
        pulled = pull_pays(float(out_edges), float(n - last), float(open_edges), float(m))
        if pulled:
            found = find_by_pull(t_indptr, t_indices, level, order, last, depth)
        else:
            found = find_by_push(
                *(indptr, indices, level, order, first, last, depth),
                *(paths[(depth - 1) & 1], paths[depth & 1]),
            )
        first, last = last, found
    return depth


@inner
def arrange(
    thread, threads, sync, indptr, t_indptr, level, levels, counts, order, rungs, paths
):  # fmt: skip
    """`order` and `rungs` of vertices whose levels are known (-1: none); those of level 0 have one
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
        rungs[0, START], rungs[0, OUT], rungs[0, IN] = 0, 0, 0
        for d in range(levels):
            for k in range(3):
                rungs[d + 1, k] = rungs[d, k]
            for t in range(threads):
                here = counts[t, d, START]
                counts[t, d, START] = rungs[d + 1, START]  # where the thread's own begin
                rungs[d + 1, START] += here
                rungs[d + 1, OUT] += counts[t, d, OUT]
                rungs[d + 1, IN] += counts[t, d, IN]
    barrier(sync, threads)
    for v in range(first, last):
        d = level[v]
        if d >= 0:
            order[counts[thread, d, START]] = v
            counts[thread, d, START] += 1
    barrier(sync, threads)


# ---- from level to level ----------------------------------------------------------------------


@inner
def take(threads, tickets, slot, begin, first, last):
    """(from, to): the next rows of order[first:last] for a thread whose last ended at `begin`."""
    if threads == 1:
        return begin, last
    begin = first + atomic_add(tickets, slot, ROWS)
    return min(begin, last), min(begin + ROWS, last)


@inner
def scatter(
    thread, threads, indptr, indices, splits, level, order, first, last, depth, x, sums
):  # fmt: skip
    """sums[v] += x[u] over the edges u -> v from order[first:last] to level `depth`. Each thread
    takes those to a range of v, so that the order of additions is always the same.
    """
    low, high = np.uint64(0), np.uint64(level.size)
    if threads > 1:
        low = np.uint64(place(splits, 0, level.size, indices.size * thread // threads))
        if thread + 1 < threads:
            edges = indices.size * (thread + 1) // threads
            high = np.uint64(place(splits, 0, level.size, edges))
    for i in range(first, last):
        u = np.uint64(order[i])
        begin, end = np.int64(indptr[u]), np.int64(indptr[u + np.uint64(1)])
        if low > np.uint64(0):
            begin = place(indices, begin, end, low)
        term = x[u]
        for e in range(np.uint64(begin), np.uint64(end)):
            v = np.uint64(indices[e])
            if v >= high:
                break
            if level[v] == depth:
                sums[v] += term


@inner
def place(ascending, low, high, least):
    """The first place from `low` on whose value is at least `least`; `high` if there is none."""
    while low < high:
        middle = (low + high) // 2
        if np.int64(ascending[middle]) < np.int64(least):
            low = middle + 1
        else:
            high = middle
    return low


@inner
def gather_paths(
    threads, indptr, indices, order, first, last, tickets, slot, x, p, paths, exponents
):  # fmt: skip
    """The paths of order[first:last] from x * 2**p at their in-neighbours."""
    begin, end = take(threads, tickets, slot, first, first, last)
    while begin < end:
        for i in range(begin, end):
            v = np.uint64(order[i])
            s, q = 0.0, np.int64(0)
            for e in range(np.uint64(indptr[v]), np.uint64(indptr[v + np.uint64(1)])):
                u = np.uint64(indices[e])
                if EXTENDED:
                    s, q = plus(s, q, x[u], p[u])
                else:
                    s += x[u]
            if EXTENDED:
                paths[v], exponents[v] = normal(s, q)
            else:
                paths[v] = s
        begin, end = take(threads, tickets, slot, end, first, last)


@inner
def gather_shares(
    threads, indptr, indices, order, first, last, tickets, slot, x, p, paths, exponents, share,
    share_exponents, dependency
):  # fmt: skip
    """Shares and dependencies of order[first:last] from x * 2**p at their out-neighbours; the most
    paths among them.
    """
    most = 0.0
    begin, end = take(threads, tickets, slot, first, first, last)
    while begin < end:
        for i in range(begin, end):
            u = np.uint64(order[i])
            s, q = 0.0, np.int64(0)
            for e in range(np.uint64(indptr[u]), np.uint64(indptr[u + np.uint64(1)])):
                v = np.uint64(indices[e])
                if EXTENDED:
                    s, q = plus(s, q, x[v], p[v])
                else:
                    s += x[v]
            if EXTENDED:
                own = exponents[u]
                exponent = min(max(own + q, -4000), 4000)
                dependency[u] = math.ldexp(paths[u] * s, np.int32(exponent))
                share[u], share_exponents[u] = normal(*plus(s, q, 1.0 / paths[u], -own))
            else:
                most = max(most, paths[u])
                dependency[u] = paths[u] * s
                share[u] = s + 1.0 / paths[u]
        begin, end = take(threads, tickets, slot, end, first, last)
    return most


@inner
def settle(thread, threads, order, first, last, paths, exponents, share, share_exponents, sums):
    """The same where the sums are there already; what they were becomes dependencies."""
    most = 0.0
    rows = last - first
    for i in range(first + rows * thread // threads, first + rows * (thread + 1) // threads):
        u = np.uint64(order[i])
        s = sums[u]
        if EXTENDED:  # of the last level, where there are none
            share[u], share_exponents[u] = normal(1.0 / paths[u], -exponents[u])
        else:
            most = max(most, paths[u])
            sums[u] = paths[u] * s
            share[u] = s + 1.0 / paths[u]
    return most


@inner
def pushes(near_edges, far_edges, acyclic):
    """Whether to push along the edges of the nearer level, not to pull along those of the other."""
    return not acyclic and not EXTENDED and PUSH_STEP * near_edges < far_edges


@inner
def count_paths(
    thread, threads, indptr, indices, t_indptr, t_indices, level, order, rungs, d, acyclic, tickets,
    paths, exponents
):  # fmt: skip
    """The paths of level d."""
    before, first, last = rungs[d - 1, START], rungs[d, START], rungs[d + 1, START]
    here, there = (0, 0) if acyclic else ((d - 1) & 1, d & 1)
    out_edges, in_edges = rungs[d, OUT] - rungs[d - 1, OUT], rungs[d + 1, IN] - rungs[d, IN]
    if pushes(out_edges, in_edges, acyclic):
        scatter(
            *(thread, threads, indptr, indices, t_indptr, level, order, before, first, d),
            *(paths[here], paths[there]),
        )
    else:
        gather_paths(
            *(threads, t_indptr, t_indices, order, first, last, tickets, d),
            *(paths[here], exponents[here], paths[there], exponents[there]),
        )


@inner
def carry_shares(
    thread, threads, sync, indptr, indices, t_indptr, t_indices, level, order, rungs, d, levels,
    acyclic, tickets, paths, exponents, share, share_exponents
):  # fmt: skip
    """The shares and dependencies of level d; the most paths that lead there."""
    first, last, behind = rungs[d, START], rungs[d + 1, START], rungs[min(d + 2, levels), START]
    here, there = (0, 0) if acyclic else (d & 1, (d + 1) & 1)
    out_edges = rungs[d + 1, OUT] - rungs[d, OUT]
    in_edges = rungs[min(d + 2, levels), IN] - rungs[d + 1, IN]
    own = (paths[here], exponents[here], share[here], share_exponents[here], paths[1 - here])
    if d < levels - 1:
        if not pushes(in_edges, out_edges, acyclic):
            return gather_shares(
                *(threads, indptr, indices, order, first, last, tickets, levels + d),
                *(share[there], share_exponents[there]),
                *own,
            )
        scatter(
            *(thread, threads, t_indptr, t_indices, indptr, level, order, last, behind, d),
            *(share[there], paths[1 - here]),
        )
        barrier(sync, threads)
    return settle(thread, threads, order, first, last, *own)


@inner
def small(threads, rungs, d, acyclic):
    """Whether the edges between level d and the one before, and its rows, are one thread's work."""
    out_edges = rungs[d, OUT] - rungs[d - 1, OUT]
    in_edges = rungs[d + 1, IN] - rungs[d, IN]
    # pulling forward and pulling back look at different ends
    edges = max(out_edges, in_edges) if acyclic or EXTENDED else min(out_edges, in_edges)
    rows = rungs[d + 1, START] - rungs[d - 1, START]
    return threads == 1 or edges + rows < ALONE


# ---- programs ---------------------------------------------------------------------------------


@njit(nogil=True, cache=True, error_model="numpy")
def dependencies(
    thread, threads, sync, indptr, indices, t_indptr, t_indices, level, levels, acyclic, counts,
    order, rungs, tickets, paths, exponents, share, share_exponents, score, overflow
):  # fmt: skip
    arrange(thread, threads, sync, indptr, t_indptr, level, levels, counts, order, rungs, paths)
    waits = False  # whether thread 0 has done levels alone, which the others have not waited for
    for d in range(1, levels):
        alone = small(threads, rungs, d, acyclic)
        if waits and not alone:
            barrier(sync, threads)
        who, team = (0, 1) if alone else (thread, threads)
        if thread == 0 or not alone:
            count_paths(
                *(who, team, indptr, indices, t_indptr, t_indices, level, order, rungs, d, acyclic),
                *(tickets, paths, exponents),
            )
        if not alone:
            barrier(sync, threads)
        waits = alone
    if waits:
        barrier(sync, threads)
    waits = False
    most = 0.0
    for d in range(levels - 1, 0, -1):
        alone = small(threads, rungs, min(d + 1, levels - 1), acyclic)
        if waits and not alone:
            barrier(sync, threads)
        who, team = (0, 1) if alone else (thread, threads)
        if thread == 0 or not alone:
            here = carry_shares(
                *(
                    who,
                    team,
                    sync,
                    indptr,
                    indices,
                    t_indptr,
                    t_indices,
                    level,
                    order,
                    rungs,
                    d,
                    levels,
                    acyclic,
                ),
                *(tickets, paths, exponents, share, share_exponents),
            )
            most = max(most, here)
        if not alone:
            barrier(sync, threads)
        waits = alone
    if not most <= MOST:
        overflow[0] = 1
    barrier(sync, threads)
    if overflow[0] == 0:
        n = level.size
        for v in range(n * thread // threads, n * (thread + 1) // threads):
            if level[v] > 0:
                score[v] += paths[1 if acyclic else 1 - (level[v] & 1), v]


@njit(nogil=True, cache=True, error_model="numpy")
def apart(
    thread, threads, sync, indptr, indices, t_indptr, t_indices, symmetric, sources, all_level,
    all_order, all_rungs, all_paths, all_exponents, all_share, all_share_exponents, score, overflow
):  # fmt: skip
    level, order, rungs = all_level[thread], all_order[thread], all_rungs[thread]
    paths, exponents = all_paths[thread], all_exponents[thread]
    share, share_exponents = all_share[thread], all_share_exponents[thread]
    tickets = rungs[0]  # nobody takes one
    n = level.size
    for begin in range(0, sources.size, threads):
        k = begin + thread
        if k < sources.size:
            levels = find(
                *(indptr, indices, t_indptr, t_indices, symmetric, sources[k]),
                *(level, order, rungs, paths, exponents, tickets),
            )
            for v in range(n):
                share[0, v], share[1, v] = 0.0, 0.0
            most = 0.0
            for d in range(levels - 1, 0, -1):
                here = carry_shares(
                    *(0, 1, sync, indptr, indices, t_indptr, t_indices, level, order, rungs, d),
                    *(levels, False, tickets, paths, exponents, share, share_exponents),
                )
                most = max(most, here)
            if not most <= MOST:
                overflow[k] = 1
        barrier(sync, threads)
        # in the order of the sources, however many threads there are
        for j in range(begin, min(begin + threads, sources.size)):
            if overflow[j] == 0:
                there, found = all_level[j - begin], all_paths[j - begin]
                for v in range(n * thread // threads, n * (thread + 1) // threads):
                    if there[v] > 0:
                        score[v] += found[1 - (there[v] & 1), v]
        barrier(sync, threads)


@njit(nogil=True, cache=True, error_model="numpy")
def levels(
    thread, threads, indptr, indices, t_indptr, t_indices, symmetric, sources, ticket, all_order,
    all_rungs, found
):  # fmt: skip
    order, rungs = all_order[thread], all_rungs[thread]
    none = np.empty((2, 0))
    while True:
        k = atomic_add(ticket, 0, 1)
        if k >= sources.size:
            break
        find(
            *(indptr, indices, t_indptr, t_indices, symmetric, sources[k]),
            *(found[k], order, rungs, none, none, ticket),
        )
