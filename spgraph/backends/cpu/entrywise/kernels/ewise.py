# Two vectors position by position: their union or their intersection.
# Preamble: both(x, y, i, j), only_a(x, right, i, j), only_b(y, left, i, j), UNION.

# positions between two checks for signals
PIECE = np.uint64(1 << 16)


@kernel
def ewise_sparse(thread, threads, sync, u_ids, u, v_ids, v, left, right, z_ids, z, counts):
    # both sparse: merge
    p = q = present = 0
    while p < u_ids.size and q < v_ids.size:
        if p & 0xFFFF == 0:
            poll(sync)
        i = np.int64(u_ids[p])
        j = np.int64(v_ids[q])
        if i == j:
            z_ids[present] = i
            z[present] = both(u[p], v[q], i, 0)
            present += 1
        elif UNION:
            z_ids[present] = min(i, j)
            z[present] = only_a(u[p], right, i, 0) if i < j else only_b(v[q], left, j, 0)
            present += 1
        if i <= j:
            p += 1
        if j <= i:
            q += 1
    if UNION:
        while p < u_ids.size:
            z_ids[present] = u_ids[p]
            z[present] = only_a(u[p], right, np.int64(u_ids[p]), 0)
            present += 1
            p += 1
        while q < v_ids.size:
            z_ids[present] = v_ids[q]
            z[present] = only_b(v[q], left, np.int64(v_ids[q]), 0)
            present += 1
            q += 1
    counts[0] = present


@kernel
def ewise(thread, threads, sync, u_bits, u, v_bits, v, left, right, z_bits, z):
    # by position; empty bits: every position has an entry
    if u_bits.size == 0 and v_bits.size == 0:
        low = np.uint64(z.size * thread // threads)
        high = np.uint64(z.size * (thread + 1) // threads)
        for begin in range(low, high, PIECE):
            poll(sync)
            for k in range(begin, min(begin + PIECE, high)):
                z[k] = both(u[k], v[k], np.int64(k), 0)
        return
    every = np.uint32(0xFFFFFFFF)
    total = (z.size + 31) // 32
    for w in range(total * thread // threads, total * (thread + 1) // threads):
        if w & 2047 == 0:
            poll(sync)
        in_u = u_bits[w] if u_bits.size else every
        in_v = v_bits[w] if v_bits.size else every
        common = in_u & in_v
        some = in_u | in_v if UNION else common
        if z_bits.size:
            z_bits[w] = some
        if common == every and 32 * w + 32 <= z.size:
            for i in range(32 * w, 32 * w + 32):
                z[i] = both(u[i], v[i], i, 0)
            continue
        for i in range(32 * w, min(32 * w + 32, z.size)):
            bit = np.uint32(1) << np.uint32(i & 31)
            if common & bit:
                z[i] = both(u[i], v[i], i, 0)
            elif some & bit:
                z[i] = only_a(u[i], right, i, 0) if in_u & bit else only_b(v[i], left, i, 0)
