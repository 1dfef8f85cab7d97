# Sparse times dense: every row of A with entries sums rows of X, a block of columns at a time.
# Preamble: multiply, add, IDENTITY, TERMINAL.

# narrower blocks are summed column by column: starting a loop over columns costs more
NARROW = np.uint64(4)


@kernel
def multiply_dense(
    thread, threads, sync, a_indptr, a_indices, a, a_keep, x, stride, rows, splits, width, block,
    ticket, z,
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
        for r in range(splits[item % chunks], splits[item % chunks + 1]):
            i = np.int64(rows[r])
            to = np.uint64(r * width)
            first = np.uint64(a_indptr[i])
            last = np.uint64(a_indptr[i + 1])
            if high - low < NARROW:
                for c in range(low, high):
                    j = np.int64(c)
                    sum_ = IDENTITY
                    for p in range(first, last):
                        k = np.int64(a_indices[p])
                        y = x[np.uint64(k * stride) + c]
                        sum_ = add(sum_, multiply(a[p & a_keep], y, i, k, k, j))
                        if TERMINAL == 1:
                            break
                    z[to + c] = sum_
                continue
            for c in range(low, high):
                z[to + c] = IDENTITY
            for p in range(first, last):
                k = np.int64(a_indices[p])
                value = a[p & a_keep]
                start = np.uint64(k * stride)
                for c in range(low, high):
                    j = np.int64(c)
                    z[to + c] = add(z[to + c], multiply(value, x[start + c], i, k, k, j))
                if TERMINAL == 1:
                    break
