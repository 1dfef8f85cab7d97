# The edges that carry the values of a closure.  Preamble: ISO, multiply.


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
    full = bits.size == 0
    for i in range(np.uint64(top), np.uint64(bottom)):
        if i & np.uint64(1023) == 0:
            poll(sync)
        if full or bits[i >> np.uint64(5)] >> np.uint32(i & np.uint64(31)) & np.uint32(1) != 0:
            x = value[i]
            for e in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
                j = np.uint64(indices[e])
                if multiply(x, values[0] if ISO else values[e], 0, i, i, j) != value[j]:
                    continue
                bit = np.uint32(j & np.uint64(31))
                if not full and bits[j >> np.uint64(5)] >> bit & np.uint32(1) == 0:
                    continue
                fresh_indices[base + count] = j
                count += np.uint64(1)
        fresh_indptr[i + np.uint64(1)] = count
    counts[thread] = count
