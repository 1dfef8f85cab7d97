# Of each two entries (i, j), (j, i) of a symmetric pattern one: the number in each row, then their
# columns. Preamble: the text of leads.py.


@kernel
def orient_sizes(thread, threads, sync, bounds, ticket, indptr, indices, by_degree, sizes):
    # sizes[i + 1] = how many entries of row i are kept
    while True:
        poll(sync)
        chunk = atomic_add(ticket, 0, 1)
        if chunk >= bounds.size - 1:
            break
        for i in range(np.uint64(bounds[chunk]), np.uint64(bounds[chunk + 1])):
            first, last = np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])
            degree = np.int64(last - first)
            size = 0
            for p in range(first, last):
                size += leads(indptr, by_degree, degree, i, np.uint64(indices[p]))
            sizes[i + np.uint64(1)] = size


@kernel
def orient(thread, threads, sync, bounds, ticket, indptr, indices, by_degree, z_ptr, z_ids):
    while True:
        poll(sync)
        chunk = atomic_add(ticket, 0, 1)
        if chunk >= bounds.size - 1:
            break
        k = np.uint64(z_ptr[bounds[chunk]])
        for i in range(np.uint64(bounds[chunk]), np.uint64(bounds[chunk + 1])):
            first, last = np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])
            degree = np.int64(last - first)
            end = np.uint64(z_ptr[i + np.uint64(1)])
            p = first
            while k < end:  # written without a branch on what is kept, often mispredicted
                j = np.uint64(indices[p])
                z_ids[k] = j
                k += np.uint64(leads(indptr, by_degree, degree, i, j))
                p += np.uint64(1)
