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
# Preamble: multiply, ISO, SECOND (multiply gives its second operand).

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
# taken together without a branch, because how many there are is hard to predict: those beyond the
# row's end gather the zero behind u's values.
@inner(forceinline=True)
def sum_row(indptr, indices, a, u, i, zero):
    """The sum over row i; u[zero] is 0."""
    p, end = np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])
    s = 0.0
    if SECOND:
        one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
        s1 = s2 = s3 = 0.0
        while p + four < end:
            s += u[np.uint64(indices[p])]
            s1 += u[np.uint64(indices[p + one])]
            s2 += u[np.uint64(indices[p + two])]
            s3 += u[np.uint64(indices[p + three])]
            p += four
        if p + four <= np.uint64(indices.size):
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


# With one hop the second matrix is the first one again. `scale` and `restart` have the length of x
# (a mask of ones) or are one value for all (mask 0): element i is at i & mask. `starts` and
# `starts2` are the first rows of the chunks of each matrix, and n. `sums` has two buffers, because
# an iteration reads the sums of the one before. In the end report = (iterations, last change); the
# change counts only where tol >= 0.
@kernel
def power(
    thread, threads, sync, ticket, hops, norm, indptr, indices, a, scale_mask, scale, indptr2,
    indices2, a2, scale2_mask, scale2, starts, starts2, x, z, u, u2, sums, factor, keep, teleport,
    dangling, restart_mask, restart, tol, max_iter, report,
):  # fmt: skip
    n = x.size
    chunks = starts2.size - 1
    first_chunks = starts.size - 1
    # the iterate of each iteration is wanted for its change, or for the next one; else x is neither
    # read nor written before the last iteration: 16 of 56 bytes for a row of four entries
    tracked = norm != NORM_NONE or tol >= 0.0 or keep != 0.0
    step = 0
    begin, end = chunks * thread // threads, chunks * (thread + 1) // threads
    for chunk in range(begin, end):
        mass = 0.0
        for i in range(starts2[chunk], starts2[chunk + 1]):
            u[0, i] = x[i] * scale[i & scale_mask]
            mass += x[i] if scale[i & scale_mask] == 0.0 else 0.0
        sums[1, DANGLING, chunk] = mass
    barrier(sync, threads)
    for iteration in range(max_iter):
        now = sums[iteration & 1]
        source = u[iteration & 1]
        target = u[1 - (iteration & 1)]
        gathered = u2 if hops == 2 else source
        shift = teleport
        if dangling != 0.0:
            shift += dangling * total(sums[1 - (iteration & 1)], DANGLING, chunks)
        if hops == 2:
            step = begin_step(ticket, step, thread)
            while True:
                poll(sync)
                chunk = next_chunk(ticket, step, thread, threads, first_chunks)
                if chunk == first_chunks:
                    break
                for i in range(starts[chunk], starts[chunk + 1]):
                    y = sum_row(indptr, indices, a, source, i, np.uint64(n))
                    u2[i] = y * scale2[i & scale2_mask]
            barrier(sync, threads)
        step = begin_step(ticket, step, thread)
        while True:
            poll(sync)
            chunk = next_chunk(ticket, step, thread, threads, chunks)
            if chunk == chunks:
                break
            change = mass = size = 0.0
            if not tracked and iteration < max_iter - 1:
                for i in range(starts2[chunk], starts2[chunk + 1]):
                    y = sum_row(indptr2, indices2, a2, gathered, i, np.uint64(n))
                    new = factor * y + shift * restart[i & restart_mask]
                    by = scale[i & scale_mask]
                    mass += new if by == 0.0 else 0.0
                    target[i] = new * by
                now[DANGLING, chunk] = mass
                continue
            for i in range(starts2[chunk], starts2[chunk + 1]):
                y = sum_row(indptr2, indices2, a2, gathered, i, np.uint64(n))
                new = factor * y + keep * x[i] + shift * restart[i & restart_mask]
                if norm == NORM_NONE:
                    by = scale[i & scale_mask]
                    change += abs(new - x[i])
                    mass += new if by == 0.0 else 0.0
                    x[i] = new
                    target[i] = new * by
                else:
                    z[i] = new
                    if norm == NORM_ONE:
                        size += abs(new)
                    elif norm == NORM_TWO:
                        size += new * new
                    else:
                        size = max(size, abs(new))
            now[CHANGE, chunk] = change
            now[DANGLING, chunk] = mass
            now[SIZE, chunk] = size
        barrier(sync, threads)
        if norm != NORM_NONE:
            size = largest(now, SIZE, chunks) if norm == NORM_MAX else total(now, SIZE, chunks)
            if norm == NORM_TWO:
                size = math.sqrt(size)
            size = size if size > 0.0 else 1.0  # a zero vector stays zero
            for chunk in range(begin, end):
                change = mass = 0.0
                for i in range(starts2[chunk], starts2[chunk + 1]):
                    new = z[i] / size
                    by = scale[i & scale_mask]
                    change += abs(new - x[i])
                    mass += new if by == 0.0 else 0.0
                    x[i] = new
                    target[i] = new * by
                now[CHANGE, chunk] = change
                now[DANGLING, chunk] = mass
            barrier(sync, threads)
        change = total(now, CHANGE, chunks)
        if thread == 0:
            report[0] = iteration + 1
            report[1] = change
        if change <= tol:
            break
