# The number of products in each row of A B, which bounds the work and the entries of the row.

ONE = np.uint64(1)


@kernel
def row_flops(thread, threads, sync, splits, a_indptr, a_indices, b_indptr, flops):
    for i in range(splits[thread], splits[thread + 1]):
        if i & 0xFFFF == 0:
            poll(sync)
        sum_ = np.int64(0)
        for p in range(np.uint64(a_indptr[i]), np.uint64(a_indptr[i + 1])):
            k = np.uint64(a_indices[p])
            sum_ += np.int64(b_indptr[k + ONE]) - np.int64(b_indptr[k])
        flops[i] = sum_
