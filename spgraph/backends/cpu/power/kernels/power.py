# x <- f(A, x) until convergence: one launch for all iterations. Every thread runs `power`, with a
# barrier between the steps of an iteration.
#
# A hop gathers: y[i] = the sum of A[i, k] * u[k] over row i, u being the values of x times a scale.
# An iteration is one hop or two, then
#     z = factor * y + keep * x + (teleport + dangling * mass) * restart,    x = z / norm(z)
# where mass, the dangling mass, is the sum of the x whose scale is zero. Without a norm all of this
# is done as a row is summed, so that an iteration needs one barrier; u has two buffers for that.
#
# Sums over vertices are taken chunk by chunk, and the chunks depend on the matrix alone: the result
# is the same for any number of threads. Behind the n values of u and u2 stands a zero.
# Preamble: multiply, ISO, SECOND (multiply gives its second operand), EVEN (most rows are as long
# as the row before), USUAL (how many entries nearly all rows have, 2 or 4; 0: neither), SPREAD
# (`restart` has a value for each vertex, else one for all).

from collections import namedtuple

NORM_NONE, NORM_ONE, NORM_TWO, NORM_MAX = 0, 1, 2, 3
# words of a cache line
LINE = 8
# the sums over vertices
CHANGE, DANGLING, SIZE, SUMS = 0, 1, 2, 3


@inner
def total(sums, which, chunks):
    sum_ = 0.0
    for k in range(chunks):
        sum_ += sums[which, k]
    return sum_


@inner
def largest(sums, which, chunks):
    most = 0.0
    for k in range(chunks):
        most = max(most, sums[which, k])
    return most


@inner
def next_chunk(ticket, step, thread, threads, chunks):
    """A chunk that nobody has taken in this step, or `chunks` if none is left: of the share of this
    thread first, which wrote the same rows in the last iteration and has them in its cache, then
    what others have left of theirs. `ticket` has two counters for each share, used in turns.
    """
    for k in range(threads):
        owner = (thread + k) % threads
        begin, end = chunks * owner // threads, chunks * (owner + 1) // threads
        at = (2 * owner + (step & 1)) * LINE
        if begin + atomic_load(ticket, at) < end:
            chunk = begin + atomic_add(ticket, at, 1)
            if chunk < end:
                return chunk
    return chunks


@inner
def begin_step(ticket, step, thread):
    """The number of the next step. Sets the thread's counter of the one after it to zero, which is
    that of the last step: all threads have left it.
    """
    atomic_store(ticket, (2 * thread + (step & 1)) * LINE, 0)
    return step + 1


# Inlined by force: a call with arrays costs as much as a short row. The last up to four entries are
# taken together without a branch where how many there are is hard to predict: those beyond the
# row's end gather the zero behind u's values. Rows of the usual length need one branch. The sum is
# the same in each form. Long rows that gather beyond the L2 by one instruction instead of four in
# turns take 0.8 of the time on an AMD EPYC and 1.3 to 1.9 times as long on an Intel Xeon.
@inner(forceinline=True)
def sum_row(indices, a, u, p, end, zero):
    """The sum over the row of the entries from p to end; u[zero] is 0."""
    s = 0.0
    if SECOND:
        one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
        if USUAL == 2 and p + two == end:
            return (s + u[np.uint64(indices[p])]) + u[np.uint64(indices[p + one])]
        if USUAL == 4 and p + four == end:
            s1 = s + u[np.uint64(indices[p])]
            s1 += u[np.uint64(indices[p + one])]
            s2 = s + u[np.uint64(indices[p + two])]
            return s1 + (s2 + u[np.uint64(indices[p + three])])
        s1 = s2 = s3 = 0.0
        while p + four < end:
            s += u[np.uint64(indices[p])]
            s1 += u[np.uint64(indices[p + one])]
            s2 += u[np.uint64(indices[p + two])]
            s3 += u[np.uint64(indices[p + three])]
            p += four
        if EVEN:
            if p < end:
                s += u[np.uint64(indices[p])]
                if p + one < end:
                    s1 += u[np.uint64(indices[p + one])]
                    if p + two < end:
                        s2 += u[np.uint64(indices[p + two])]
                        if p + three < end:
                            s3 += u[np.uint64(indices[p + three])]
        elif p + four <= np.uint64(indices.size):
            k, k1 = np.uint64(indices[p]), np.uint64(indices[p + one])
            k2, k3 = np.uint64(indices[p + two]), np.uint64(indices[p + three])
            s += u[k if p < end else zero]
            s1 += u[k1 if p + one < end else zero]
            s2 += u[k2 if p + two < end else zero]
            s3 += u[k3 if p + three < end else zero]
        else:  # the last rows
            for q in range(p, end):
                s += u[np.uint64(indices[q])]
        return (s + s1) + (s2 + s3)
    for q in range(p, end):
        s += multiply(a[0] if ISO else a[q], u[np.uint64(indices[q])], 0, 0, 0, 0)
    return s


# The last hop: the rows of a matrix, and what makes the next iterate of their sums. `scale` has the
# length of x (a mask of ones) or is one value for all (mask 0): element i is at i & mask.
Hop = namedtuple("Hop", "indptr indices a scale_mask scale restart factor keep")


@inner
def share_of(hop, shift):
    """What the restart adds to each vertex, where that is the same for all: read once, because the
    loop over rows writes and would read it again for each.
    """
    return 0.0 if SPREAD else shift * hop.restart[0]


@inner
def write(i, new, scale_mask, scale, target):
    """Scale element i of the iterate for the next hop; its share of the dangling mass."""
    by = scale[i & scale_mask]
    target[i] = new * by
    return new if by == 0.0 else 0.0


@inner
def sum_chunk(hop, first, last, gathered, shift, target):
    """Rows first to last where the iterate itself is not wanted; returns their dangling mass."""
    mass, share, zero = 0.0, share_of(hop, shift), np.uint64(gathered.size - 1)
    end = np.uint64(hop.indptr[first])
    for i in range(first, last):
        p, end = end, np.uint64(hop.indptr[i + np.uint64(1)])
        y = sum_row(hop.indices, hop.a, gathered, p, end, zero)
        new = hop.factor * y + (shift * hop.restart[i] if SPREAD else share)
        mass += write(i, new, hop.scale_mask, hop.scale, target)
    return mass


@inner
def step_chunk(hop, first, last, gathered, shift, norm, x, z, target):
    """Rows first to last: the iterate goes to x, or to z if it has still to be divided by its norm.
    Returns (the change, the dangling mass, the chunk's part of the norm).
    """
    change = mass = size = 0.0
    share, zero = share_of(hop, shift), np.uint64(gathered.size - 1)
    end = np.uint64(hop.indptr[first])
    for i in range(first, last):
        p, end = end, np.uint64(hop.indptr[i + np.uint64(1)])
        y = sum_row(hop.indices, hop.a, gathered, p, end, zero)
        new = hop.factor * y + hop.keep * x[i] + (shift * hop.restart[i] if SPREAD else share)
        if norm == NORM_NONE:
            change += abs(new - x[i])
            x[i] = new
            mass += write(i, new, hop.scale_mask, hop.scale, target)
        else:
            z[i] = new
            if norm == NORM_ONE:
                size += abs(new)
            elif norm == NORM_TWO:
                size += new * new
            else:
                size = max(size, abs(new))
    return change, mass, size


@inner
def norm_of(sums, norm, chunks):
    """The norm out of the chunks' parts; 1 for a zero vector, which stays zero."""
    size = largest(sums, SIZE, chunks) if norm == NORM_MAX else total(sums, SIZE, chunks)
    if norm == NORM_TWO:
        size = math.sqrt(size)
    return size if size > 0.0 else 1.0


@inner
def divide_chunk(hop, first, last, size, x, z, target):
    """Divide the new iterate by its norm; returns (the change, the dangling mass)."""
    change = mass = 0.0
    for i in range(first, last):
        new = z[i] / size
        change += abs(new - x[i])
        x[i] = new
        mass += write(i, new, hop.scale_mask, hop.scale, target)
    return change, mass


@inner
def first_hop(
    thread, threads, sync, ticket, step, indptr, indices, a, scale_mask, scale, starts, source, to
):  # fmt: skip
    """The first of two hops: to[i] = the sum over row i of `source`, times a scale."""
    chunks = starts.size - 1
    while True:
        poll(sync)
        chunk = next_chunk(ticket, step, thread, threads, chunks)
        if chunk == chunks:
            break
        end = np.uint64(indptr[starts[chunk]])
        for i in range(starts[chunk], starts[chunk + 1]):
            p, end = end, np.uint64(indptr[i + np.uint64(1)])
            y = sum_row(indices, a, source, p, end, np.uint64(source.size - 1))
            to[i] = y * scale[i & scale_mask]
    barrier(sync, threads)


@inner
def last_hop(
    thread, threads, sync, ticket, step, hop, starts, gathered, shift, norm, tracked, x, z, target,
    sums
):  # fmt: skip
    """The hop that makes the next iterate, with what it leaves in `sums`."""
    chunks = starts.size - 1
    while True:
        poll(sync)
        chunk = next_chunk(ticket, step, thread, threads, chunks)
        if chunk == chunks:
            break
        first, last = starts[chunk], starts[chunk + 1]
        if tracked:
            change, mass, size = step_chunk(hop, first, last, gathered, shift, norm, x, z, target)
            sums[CHANGE, chunk], sums[SIZE, chunk] = change, size
        else:
            mass = sum_chunk(hop, first, last, gathered, shift, target)
        sums[DANGLING, chunk] = mass
    barrier(sync, threads)


# With one hop the second matrix is the first one again. `starts` and `starts2` are the first rows
# of the chunks of each matrix, and n. `sums` has two buffers, because an iteration reads the sums
# of the one before. In the end report = (iterations, last change); the change counts only where tol
# >= 0.
@kernel
def power(
    thread, threads, sync, ticket, hops, norm, indptr, indices, a, scale_mask, scale, indptr2,
    indices2, a2, scale2_mask, scale2, starts, starts2, x, z, u, u2, sums, factor, keep, teleport,
    dangling, restart, tol, max_iter, report,
):  # fmt: skip
    hop = Hop(indptr2, indices2, a2, scale_mask, scale, restart, factor, keep)
    chunks = starts2.size - 1
    # the iterate of each iteration is wanted for its change, or for the next one; else x is neither
    # read nor written before the last iteration: 16 of 56 bytes for a row of four entries
    tracked = norm != NORM_NONE or tol >= 0.0 or keep != 0.0
    step = 0
    begin, end = chunks * thread // threads, chunks * (thread + 1) // threads
    for chunk in range(begin, end):
        mass = 0.0
        for i in range(starts2[chunk], starts2[chunk + 1]):
            mass += write(i, x[i], scale_mask, scale, u[0])
        sums[1, DANGLING, chunk] = mass
    barrier(sync, threads)
    for iteration in range(max_iter):
        now = sums[iteration & 1]
        gathered, target = u[iteration & 1], u[1 - (iteration & 1)]
        shift = teleport
        if dangling != 0.0:
            shift += dangling * total(sums[1 - (iteration & 1)], DANGLING, chunks)
        if hops == 2:
            step = begin_step(ticket, step, thread)
            first_hop(
                *(thread, threads, sync, ticket, step, indptr, indices, a, scale2_mask, scale2),
                *(starts, gathered, u2),
            )
            gathered = u2
        step = begin_step(ticket, step, thread)
        wanted = tracked or iteration == max_iter - 1
        last_hop(
            *(thread, threads, sync, ticket, step, hop, starts2, gathered, shift, norm),
            *(wanted, x, z, target, now),
        )
        if norm != NORM_NONE:
            size = norm_of(now, norm, chunks)
            for chunk in range(begin, end):
                change, mass = divide_chunk(
                    hop, starts2[chunk], starts2[chunk + 1], size, x, z, target
                )
                now[CHANGE, chunk], now[DANGLING, chunk] = change, mass
            barrier(sync, threads)
        change = total(now, CHANGE, chunks)
        if thread == 0:
            report[0] = iteration + 1
            report[1] = change
        if change <= tol:
            break
