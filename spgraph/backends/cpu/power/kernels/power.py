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
# is the same for any number of threads. Preamble: multiply, ISO.

NORM_NONE, NORM_ONE, NORM_TWO, NORM_MAX = 0, 1, 2, 3
# rows and entries of a chunk
CHUNK = 32768
# the sums over vertices
CHANGE, DANGLING, SIZE, SUMS = 0, 1, 2, 3


@inner
def chunks_of(indptr, n):
    """The number of chunks of rows."""
    return max(1, min(n, (np.int64(indptr[n]) + n) // CHUNK))


@inner
def chunk_start(indptr, n, chunk, chunks):
    """The first row of a chunk: the first with chunk / chunks of all rows and entries before it."""
    if chunk == chunks:
        return n
    steps = np.int64(indptr[n]) + n
    target = steps // chunks * chunk + min(chunk, steps % chunks)
    low = 0
    high = n
    while low < high:
        middle = (low + high) // 2
        if np.int64(indptr[middle]) + middle < target:
            low = middle + 1
        else:
            high = middle
    return low


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
def sum_row(indptr, indices, a, u, i):
    """The sum over row i. One sum, not four side by side: rows are short, or wait for memory."""
    s = 0.0
    for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
        s += multiply(a[0] if ISO else a[p], u[np.uint64(indices[p])], 0, 0, 0, 0)
    return s


# With one hop the second matrix is the first one again. `scale` and `restart` have the length of x
# (a mask of ones) or are one value for all (mask 0): element i is at i & mask. `sums` has two
# buffers, because an iteration reads the sums of the one before. In the end report = (iterations,
# last change).
@kernel
def power(
    thread, threads, sync, ticket, hops, norm, indptr, indices, a, scale_mask, scale, indptr2,
    indices2, a2, scale2_mask, scale2, x, z, u, u2, sums, factor, keep, teleport, dangling,
    restart_mask,
    restart, tol, max_iter, report,
):  # fmt: skip
    n = x.size
    chunks = chunks_of(indptr2, n)
    first_chunks = chunks_of(indptr, n)
    taken = 0  # tickets of earlier steps, in each of which every thread takes one too many
    for chunk in range(thread, chunks, threads):
        mass = 0.0
        for i in range(
            np.uint64(chunk_start(indptr2, n, chunk, chunks)),
            np.uint64(chunk_start(indptr2, n, chunk + 1, chunks)),
        ):
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
            while True:
                poll(sync)
                chunk = atomic_add(ticket, 0, 1) - taken
                if chunk >= first_chunks:
                    break
                for i in range(
                    np.uint64(chunk_start(indptr, n, chunk, first_chunks)),
                    np.uint64(chunk_start(indptr, n, chunk + 1, first_chunks)),
                ):
                    u2[i] = sum_row(indptr, indices, a, source, i) * scale2[i & scale2_mask]
            taken += first_chunks + threads
            barrier(sync, threads)
        while True:
            poll(sync)
            chunk = atomic_add(ticket, 0, 1) - taken
            if chunk >= chunks:
                break
            change = mass = size = 0.0
            for i in range(
                np.uint64(chunk_start(indptr2, n, chunk, chunks)),
                np.uint64(chunk_start(indptr2, n, chunk + 1, chunks)),
            ):
                # sum_row inlined: a call with arrays costs as much as a short row
                y = 0.0
                for p in range(np.uint64(indptr2[i]), np.uint64(indptr2[i + np.uint64(1)])):
                    value = a2[0] if ISO else a2[p]
                    y += multiply(value, gathered[np.uint64(indices2[p])], 0, 0, 0, 0)
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
        taken += chunks + threads
        barrier(sync, threads)
        if norm != NORM_NONE:
            size = largest(now, SIZE, chunks) if norm == NORM_MAX else total(now, SIZE, chunks)
            if norm == NORM_TWO:
                size = math.sqrt(size)
            size = size if size > 0.0 else 1.0  # a zero vector stays zero
            for chunk in range(thread, chunks, threads):
                change = mass = 0.0
                for i in range(
                    np.uint64(chunk_start(indptr2, n, chunk, chunks)),
                    np.uint64(chunk_start(indptr2, n, chunk + 1, chunks)),
                ):
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
