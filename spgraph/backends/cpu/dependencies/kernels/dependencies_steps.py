# Shared by the kernels of Brandes' dependencies (2001): numbers with an exponent, and the steps
# from one level to the next. Forward, the number of shortest paths to a vertex; then, backward, its
# dependency:
#
#   paths[v] = the sum of paths[u] over the edges u -> v from the level before
#   share[u] = 1 / paths[u] + s,  s = the sum of share[v] over the edges u -> v to the level behind
#   dependency[u] = paths[u] * s
#
# A pull along an edge needs no test of levels: `paths` and `share` have two rows, for even and for
# odd levels, and are zero where a vertex has no value yet. An in-edge of level d comes from level
# d - 1, or from level d or later, which have no value in the row of d - 1 yet; for out-edges in the
# backward pass the same holds with d + 1. The elements of a row of `paths` at vertices of the other
# parity hold the sums, then the dependencies. If the level nearer to the source has far fewer edges
# than the one that would be pulled, its edges are pushed instead, with a test of levels: then most
# edges of most graphs are never read.
#
# `acyclic`: all edges count, and lead from a level to any later one; then one row suffices, and
# push is not used. EXTENDED: numbers of paths out of range of float64 have an exponent of their
# own: value = mantissa * 2**exponent.
#
# Preamble: PATHS (False: levels only), EXTENDED.

# cost of a push along an edge, in units of a pull: it tests a level, and adds to memory; and of the
# searches by which each of several threads finds its part of a row
PUSH_STEP, SEARCH = 2, 40
# rows that a thread takes at a time
ROWS = 64
# ... and a thread that works alone, between two checks for signals
MANY_ROWS = 4096
# the largest number of paths for float64, with a margin for reciprocals and sums
MOST = 2.0**1000
# columns of `ranges`: where a level begins in `order`, the out-edges and in-edges of those before
START, OUT, IN = 0, 1, 2

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


# ---- from level to level ----------------------------------------------------------------------


@inner
def take(threads, sync, tickets, slot, begin, first, last):
    """(from, to): the next rows of order[first:last] for a thread that is at `begin`."""
    poll(sync)
    if threads == 1:
        return begin, min(begin + MANY_ROWS, last)
    begin = first + atomic_add(tickets, slot, ROWS)
    return min(begin, last), min(begin + ROWS, last)


@inner
def scatter(
    thread, threads, sync, indptr, indices, splits, level, order, first, last, depth, x, sums
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
        if i & 1023 == 0:
            poll(sync)
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
    """The first position from `low` on with a value >= `least`; `high` if there is none."""
    while low < high:
        middle = (low + high) // 2
        if np.int64(ascending[middle]) < np.int64(least):
            low = middle + 1
        else:
            high = middle
    return low


@inner
def gather_paths(
    threads, sync, indptr, indices, order, first, last, tickets, slot, x, p, paths, exponents
):  # fmt: skip
    """The paths of order[first:last] from x * 2**p at their in-neighbours."""
    begin, end = take(threads, sync, tickets, slot, first, first, last)
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
        begin, end = take(threads, sync, tickets, slot, end, first, last)


@inner
def gather_shares(
    threads, sync, indptr, indices, order, first, last, tickets, slot, x, p, paths, exponents,
    share, share_exponents, dependency
):  # fmt: skip
    """Shares and dependencies of order[first:last] from x * 2**p at their out-neighbours; the most
    paths among them.
    """
    most = 0.0
    begin, end = take(threads, sync, tickets, slot, first, first, last)
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
        begin, end = take(threads, sync, tickets, slot, end, first, last)
    return most


@inner
def settle(thread, threads, order, first, last, paths, exponents, share, share_exponents, sums):
    """As gather_shares, if the sums are known already; they are replaced by the dependencies."""
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
def pushes(threads, rows, near_edges, far_edges, acyclic):
    """Whether to push along the edges of the nearer level, which has so many rows, not to pull
    along those of the other. Each thread looks at all rows of a push.
    """
    searches = SEARCH * rows * threads if threads > 1 else 0
    return not acyclic and not EXTENDED and PUSH_STEP * near_edges + searches < far_edges


@inner
def count_paths(
    thread, threads, sync, indptr, indices, t_indptr, t_indices, level, order, ranges, d, acyclic,
    tickets, paths, exponents
):  # fmt: skip
    """The paths of level d."""
    before, first, last = ranges[d - 1, START], ranges[d, START], ranges[d + 1, START]
    here, there = (0, 0) if acyclic else ((d - 1) & 1, d & 1)
    out_edges, in_edges = ranges[d, OUT] - ranges[d - 1, OUT], ranges[d + 1, IN] - ranges[d, IN]
    if pushes(threads, first - before, out_edges, in_edges, acyclic):
        scatter(
            *(thread, threads, sync, indptr, indices, t_indptr, level, order, before, first, d),
            *(paths[here], paths[there]),
        )
    else:
        gather_paths(
            *(threads, sync, t_indptr, t_indices, order, first, last, tickets, d),
            *(paths[here], exponents[here], paths[there], exponents[there]),
        )


@inner
def too_many(ranges, levels, order, paths):
    """Whether paths to the last level are more than float64 counts: on grids that is known here,
    before the way back.
    """
    for i in range(ranges[levels - 1, START], ranges[levels, START]):
        if not paths[order[i]] <= MOST:
            return True
    return False


@inner
def carry_shares(
    thread, threads, sync, indptr, indices, t_indptr, t_indices, level, order, ranges, d, levels,
    acyclic, tickets, paths, exponents, share, share_exponents
):  # fmt: skip
    """The shares and dependencies of level d; the most paths that lead there."""
    first, last, behind = ranges[d, START], ranges[d + 1, START], ranges[min(d + 2, levels), START]
    here, there = (0, 0) if acyclic else (d & 1, (d + 1) & 1)
    out_edges = ranges[d + 1, OUT] - ranges[d, OUT]
    in_edges = ranges[min(d + 2, levels), IN] - ranges[d + 1, IN]
    own = (paths[here], exponents[here], share[here], share_exponents[here], paths[1 - here])
    if d < levels - 1:
        if not pushes(threads, behind - last, in_edges, out_edges, acyclic):
            return gather_shares(
                *(threads, sync, indptr, indices, order, first, last, tickets, levels + d),
                *(share[there], share_exponents[there]),
                *own,
            )
        scatter(
            *(thread, threads, sync, t_indptr, t_indices, indptr, level, order, last, behind, d),
            *(share[there], paths[1 - here]),
        )
        barrier(sync, threads)
    return settle(thread, threads, order, first, last, *own)
