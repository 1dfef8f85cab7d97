# Sparse times dense: every row of A with entries sums rows of X, a block of columns at a time.
# Preamble: multiply, add, accumulate, IDENTITY, TERMINAL, FLIP, PLACED.
from spgraph.backends.cpu.device.prefetching import prefetch

# narrower blocks are summed four columns at a time, in registers, because starting a loop over the
# columns costs more
NARROW = np.uint64(16)
FOUR = np.uint64(4)
# entries of a row that are added in one loop over the columns, and how far ahead rows of X are
# fetched
GROUP, AHEAD = np.uint64(4), np.uint64(8)


@inner
def product(value, y, i, k, j):
    if FLIP:
        return multiply(y, value, j, k, k, i)
    return multiply(value, y, i, k, k, j)


@inner
def sum_columns(a_indices, a, a_keep, x, stride, i, first, last, low, high, to, z):
    """z[to + c] = the sum over the entries from first to last, for the columns c of a block: four
    entries at a time, so that sums are loaded and stored once for four products.
    """
    p = first
    if TERMINAL != 1:
        for c in range(low, high):
            z[to + c] = IDENTITY
        end = np.uint64(a_indices.size - 1)
        while p + GROUP <= last:
            for n in range(AHEAD, AHEAD + GROUP):
                prefetch(x, np.uint64(a_indices[min(p + n, end)]) * stride + low)
            k0, k1 = np.int64(a_indices[p]), np.int64(a_indices[p + np.uint64(1)])
            k2, k3 = np.int64(a_indices[p + np.uint64(2)]), np.int64(a_indices[p + np.uint64(3)])
            a0, a1 = a[p & a_keep], a[(p + np.uint64(1)) & a_keep]
            a2, a3 = a[(p + np.uint64(2)) & a_keep], a[(p + np.uint64(3)) & a_keep]
            x0, x1 = np.uint64(k0) * stride, np.uint64(k1) * stride
            x2, x3 = np.uint64(k2) * stride, np.uint64(k3) * stride
            for c in range(low, high):
                j = np.int64(c)
                sum_ = accumulate(z[to + c], product(a0, x[x0 + c], i, k0, j))
                sum_ = accumulate(sum_, product(a1, x[x1 + c], i, k1, j))
                sum_ = accumulate(sum_, product(a2, x[x2 + c], i, k2, j))
                z[to + c] = accumulate(sum_, product(a3, x[x3 + c], i, k3, j))
            p += GROUP
    while p < last:
        k = np.int64(a_indices[p])
        value, start = a[p & a_keep], np.uint64(k) * stride
        for c in range(low, high):
            term = product(value, x[start + c], i, k, np.int64(c))
            z[to + c] = term if TERMINAL == 1 else accumulate(z[to + c], term)
        p = last if TERMINAL == 1 else p + np.uint64(1)


@inner
def sum_narrow(a_indices, a, a_keep, x, stride, i, first, last, low, high, to, z):
    """The same for few columns: the row is read once for each four of them."""
    last = first + np.uint64(1) if TERMINAL == 1 else last
    c = low
    while c + FOUR <= high:
        sum0 = sum1 = sum2 = sum3 = IDENTITY
        j = np.int64(c)
        for p in range(first, last):
            k = np.int64(a_indices[p])
            value, start = a[p & a_keep], np.uint64(k) * stride + c
            term0 = product(value, x[start], i, k, j)
            term1 = product(value, x[start + np.uint64(1)], i, k, j + 1)
            term2 = product(value, x[start + np.uint64(2)], i, k, j + 2)
            term3 = product(value, x[start + np.uint64(3)], i, k, j + 3)
            sum0 = term0 if TERMINAL == 1 else accumulate(sum0, term0)
            sum1 = term1 if TERMINAL == 1 else accumulate(sum1, term1)
            sum2 = term2 if TERMINAL == 1 else accumulate(sum2, term2)
            sum3 = term3 if TERMINAL == 1 else accumulate(sum3, term3)
        z[to + c], z[to + c + np.uint64(1)] = sum0, sum1
        z[to + c + np.uint64(2)], z[to + c + np.uint64(3)] = sum2, sum3
        c += FOUR
    while c < high:
        sum_ = IDENTITY
        for p in range(first, last):
            k = np.int64(a_indices[p])
            term = product(a[p & a_keep], x[np.uint64(k) * stride + c], i, k, np.int64(c))
            sum_ = term if TERMINAL == 1 else accumulate(sum_, term)
        z[to + c] = sum_
        c += np.uint64(1)


# PLACED: the result has a row for each row of A that has entries, and that of row i begins at
# z_indptr[i]. Else it has all rows; those of rows without entries hold fill[0].
@kernel
def multiply_dense(
    thread, threads, sync, a_indptr, a_indices, a, a_keep, x, stride, z_indptr, fill, splits, width,
    block, ticket, z,
):  # fmt: skip
    chunks = splits.size - 1
    blocks = (width + block - 1) // block
    while True:
        poll(sync)
        item = atomic_add(ticket, 0, 1)
        if item >= chunks * blocks:
            break
        # all rows for one block of columns, then all for the next: X is read in slices
        low = np.uint64(item // chunks * block)
        high = min(low + np.uint64(block), np.uint64(width))
        for i in range(splits[item % chunks], splits[item % chunks + 1]):
            first, last = np.uint64(a_indptr[i]), np.uint64(a_indptr[i + 1])
            to = np.uint64(z_indptr[i] if PLACED else i * width)
            if first == last:
                if not PLACED:
                    for c in range(low, high):
                        z[to + c] = fill[0]
            elif high - low < NARROW:
                sum_narrow(a_indices, a, a_keep, x, stride, i, first, last, low, high, to, z)
            else:
                sum_columns(a_indices, a, a_keep, x, stride, i, first, last, low, high, to, z)
