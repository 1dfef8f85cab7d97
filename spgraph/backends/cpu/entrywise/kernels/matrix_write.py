# The entries of a matrix that a mask allows.
# Preamble: the text of lower_bound.py.


@kernel
def matrix_allowed(
    thread, threads, sync, bounds, ticket, a_ptr, a_ids, m_ptr, m_ids, m, m_keep, complement, flags,
    sizes
):  # fmt: skip
    # flags[p] = whether entry p is allowed, sizes[i + 1] = how many of row i are
    one = np.uint64(1)
    while True:
        poll(sync)
        chunk = atomic_add(ticket, 0, 1)
        if chunk >= bounds.size - 1:
            break
        for i in range(bounds[chunk], bounds[chunk + 1]):
            start, p_end = np.uint64(a_ptr[i]), np.uint64(a_ptr[i + 1])
            q, q_end = np.uint64(m_ptr[i]), np.uint64(m_ptr[i + 1])
            p = start
            selected = 0
            if p_end - p > np.uint64(16) * (q_end - q):
                for s in range(p, p_end):
                    flags[s] = complement
                while q < q_end:
                    p = exponential_search(a_ids, p, p_end, m_ids[q])
                    if p == p_end:
                        break
                    if a_ids[p] == m_ids[q] and m[q & m_keep] != 0:
                        flags[p] = not complement
                        selected += 1
                    q += one
            else:
                many_m = q_end - q > np.uint64(16) * (p_end - p)
                while p < p_end and q < q_end:
                    if many_m:
                        q = exponential_search(m_ids, q, q_end, a_ids[p])
                        if q == q_end:
                            break
                    x = a_ids[p]
                    y = m_ids[q]
                    hit = (x == y) & (m[q & m_keep] != 0)
                    # written again until p moves on
                    flags[p] = hit != complement
                    selected += hit
                    p += np.uint64(x <= y)
                    q += np.uint64(y <= x)
                for s in range(p, p_end):
                    flags[s] = complement
            sizes[i + 1] = np.int64(p_end - start) - selected if complement else selected
