# The Kronecker product: row i * (rows of b) + k contains op of all pairs of entries of row i of a
# and row k of b. Preamble: op, VALUES (False: only column ids are written).


@kernel
def kronecker(
    thread, threads, sync, bounds, ticket, a_ptr, a_ids, a, a_keep, b_ptr, b_ids, b, b_keep, ncols,
    z_ptr, z_ids, z,
):  # fmt: skip
    rows = b_ptr.size - 1
    while True:
        poll(sync)
        chunk = atomic_add(ticket, 0, 1)
        if chunk >= bounds.size - 1:
            break
        for r in range(bounds[chunk], bounds[chunk + 1]):
            i = r // rows
            m = r % rows
            k = np.uint64(z_ptr[r])
            for p in range(np.uint64(a_ptr[i]), np.uint64(a_ptr[i + 1])):
                j = np.int64(a_ids[p])
                for q in range(np.uint64(b_ptr[m]), np.uint64(b_ptr[m + 1])):
                    n = np.int64(b_ids[q])
                    z_ids[k] = j * ncols + n
                    if VALUES:
                        z[k] = op(a[p & a_keep], b[q & b_keep], i, j, m, n)
                    k += np.uint64(1)
