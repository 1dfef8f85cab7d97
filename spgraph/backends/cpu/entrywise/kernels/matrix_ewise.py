# Two matrices row by row: their union or their intersection.
# Preamble: the text of lower_bound.py, both(x, y, i, j), only_a(x, right, i, j), only_b(y, left, i,
# j), VALUES (False: only column ids are written).


@inner
def alike(m, n):
    """Whether merging m and n ids is faster than searching for the fewer among the others."""
    return m <= np.uint64(16) * n and n <= np.uint64(16) * m


@kernel
def count_common(thread, threads, sync, bounds, ticket, a_ptr, a_ids, b_ptr, b_ids, sizes):
    # sizes[i + 1] = the number of columns in which both rows i have an entry
    one = np.uint64(1)
    while True:
        poll(sync)
        chunk = atomic_add(ticket, 0, 1)
        if chunk >= bounds.size - 1:
            break
        for i in range(bounds[chunk], bounds[chunk + 1]):
            p, p_end = np.uint64(a_ptr[i]), np.uint64(a_ptr[i + 1])
            q, q_end = np.uint64(b_ptr[i]), np.uint64(b_ptr[i + 1])
            common = 0
            if alike(p_end - p, q_end - q):
                # Without branches, which would often be mispredicted, each step depends on the one
                # before; two independent merges, from both ends, run in parallel.
                while p < p_end and q < q_end:
                    x = a_ids[p]
                    y = b_ids[q]
                    common += x == y
                    p += np.uint64(x <= y)
                    q += np.uint64(y <= x)
                    if p == p_end or q == q_end:
                        break
                    x = a_ids[p_end - one]
                    y = b_ids[q_end - one]
                    common += x == y
                    p_end -= np.uint64(x >= y)
                    q_end -= np.uint64(y >= x)
            while p < p_end and q < q_end:
                p = exponential_search(a_ids, p, p_end, b_ids[q])
                if p < p_end:
                    q = exponential_search(b_ids, q, q_end, a_ids[p])
                    if q < q_end and a_ids[p] == b_ids[q]:
                        common += 1
                        p += one
                        q += one
            sizes[i + 1] = common


@kernel
def ewise_intersection(
    thread, threads, sync, bounds, ticket, a_ptr, a_ids, a, a_keep, b_ptr, b_ids, b, b_keep,
    z_ptr, z_ids, z,
):  # fmt: skip
    one = np.uint64(1)
    while True:
        poll(sync)
        chunk = atomic_add(ticket, 0, 1)
        if chunk >= bounds.size - 1:
            break
        for i in range(bounds[chunk], bounds[chunk + 1]):
            k, k_end = np.uint64(z_ptr[i]), np.uint64(z_ptr[i + 1])
            p, p_end = np.uint64(a_ptr[i]), np.uint64(a_ptr[i + 1])
            q, q_end = np.uint64(b_ptr[i]), np.uint64(b_ptr[i + 1])
            step = alike(p_end - p, q_end - q)
            while k < k_end:  # until all entries that were counted are written
                if not step:
                    p = exponential_search(a_ids, p, p_end, b_ids[q])
                    q = exponential_search(b_ids, q, q_end, a_ids[p])
                x = a_ids[p]
                y = b_ids[q]
                if x == y:
                    z_ids[k] = x
                    if VALUES:
                        z[k] = both(a[p & a_keep], b[q & b_keep], i, np.int64(x))
                    k += one
                p += np.uint64(x <= y)
                q += np.uint64(y <= x)


@inner
def union_runs(
    i, p, p_end, a_ids, a, a_keep, q, q_end, b_ids, b, b_keep, left, right, k, z_ids, z
):  # fmt: skip
    """Write the union of what is left of both rows i, run by run: entries of a, entries of b, one
    of both.
    """
    one = np.uint64(1)
    while p < p_end or q < q_end:
        stop = p_end if q == q_end else exponential_search(a_ids, p, p_end, b_ids[q])
        for s in range(p, stop):
            z_ids[k] = a_ids[s]
            if VALUES:
                z[k] = only_a(a[s & a_keep], right, i, np.int64(a_ids[s]))
            k += one
        p = stop
        stop = q_end if p == p_end else exponential_search(b_ids, q, q_end, a_ids[p])
        for s in range(q, stop):
            z_ids[k] = b_ids[s]
            if VALUES:
                z[k] = only_b(b[s & b_keep], left, i, np.int64(b_ids[s]))
            k += one
        q = stop
        if p < p_end and q < q_end and a_ids[p] == b_ids[q]:
            z_ids[k] = a_ids[p]
            if VALUES:
                z[k] = both(a[p & a_keep], b[q & b_keep], i, np.int64(a_ids[p]))
            k += one
            p += one
            q += one


@kernel
def ewise_union(
    thread, threads, sync, bounds, ticket, a_ptr, a_ids, a, a_keep, b_ptr, b_ids, b, b_keep,
    left, right, z_ptr, z_ids, z,
):  # fmt: skip
    one = np.uint64(1)
    while True:
        poll(sync)
        chunk = atomic_add(ticket, 0, 1)
        if chunk >= bounds.size - 1:
            break
        for i in range(bounds[chunk], bounds[chunk + 1]):
            k, k_end = np.uint64(z_ptr[i]), np.uint64(z_ptr[i + 1])
            p, p_end = np.uint64(a_ptr[i]), np.uint64(a_ptr[i + 1])
            q, q_end = np.uint64(b_ptr[i]), np.uint64(b_ptr[i + 1])
            if alike(p_end - p, q_end - q):
                # from both ends, as in count_common
                while p < p_end and q < q_end:
                    x = a_ids[p]
                    y = b_ids[q]
                    z_ids[k] = min(x, y)
                    if VALUES:
                        if x == y:
                            z[k] = both(a[p & a_keep], b[q & b_keep], i, np.int64(x))
                        else:
                            # both are computed: a branch would often be mispredicted
                            of_a = only_a(a[p & a_keep], right, i, np.int64(x))
                            of_b = only_b(b[q & b_keep], left, i, np.int64(y))
                            z[k] = of_a if x < y else of_b
                    k += one
                    p += np.uint64(x <= y)
                    q += np.uint64(y <= x)
                    if p == p_end or q == q_end:
                        break
                    x = a_ids[p_end - one]
                    y = b_ids[q_end - one]
                    k_end -= one
                    z_ids[k_end] = max(x, y)
                    if VALUES:
                        v = a[(p_end - one) & a_keep]
                        w = b[(q_end - one) & b_keep]
                        if x == y:
                            z[k_end] = both(v, w, i, np.int64(x))
                        else:
                            of_a = only_a(v, right, i, np.int64(x))
                            of_b = only_b(w, left, i, np.int64(y))
                            z[k_end] = of_a if x > y else of_b
                    p_end -= np.uint64(x >= y)
                    q_end -= np.uint64(y >= x)
            union_runs(
                *(i, p, p_end, a_ids, a, a_keep, q, q_end, b_ids, b, b_keep),
                *(left, right, k, z_ids, z),
            )
