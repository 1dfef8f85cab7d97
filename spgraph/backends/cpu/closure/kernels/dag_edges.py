# The edges that carry the values of a closure.
# Preamble: ISO, multiply, the texts of bits.py and carried.py.


@kernel
def dag_edges(
    thread, threads, sync, indptr, indices, values, value, bits, parts, fresh_indptr, fresh_indices,
    counts
):  # fmt: skip
    """The entries (i, j) of this thread's rows with value[i] * A[i, j] == value[j]: how many lie
    before the end of each row, and their columns, from where A has those of its first row.
    """
    top, bottom = parts[thread], parts[thread + 1]
    base = np.uint64(indptr[top])
    count = np.uint64(0)
    for i in range(np.uint64(top), np.uint64(bottom)):
        if i & np.uint64(1023) == 0:
            poll(sync)
        if has_value(bits, i):
            x = value[i]
            for e in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
                j = np.uint64(indices[e])
                if carries(x, values[0] if ISO else values[e], i, j, value, bits):
                    fresh_indices[base + count] = j
                    count += np.uint64(1)
        fresh_indptr[i + np.uint64(1)] = count
    counts[thread] = count
