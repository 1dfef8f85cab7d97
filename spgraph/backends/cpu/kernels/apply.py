# z = f of every entry.
# Preamble: f(value, index, scalar).


@njit(nogil=True, cache=True, error_model="numpy")
def apply(thread, threads, ids, bits, u, scalar, z):
    every = np.uint32(0xFFFFFFFF)
    total = (u.size + 31) // 32
    for w in range(total * thread // threads, total * (thread + 1) // threads):
        first = 32 * w
        last = min(first + 32, u.size)
        if ids.size:
            for p in range(first, last):
                z[p] = f(u[p], np.int64(ids[p]), scalar)
        elif bits.size == 0 or bits[w] == every:
            for i in range(first, last):
                z[i] = f(u[i], i, scalar)
        else:
            for i in range(first, last):
                if (bits[w] >> np.uint32(i & 31)) & np.uint32(1):
                    z[i] = f(u[i], i, scalar)
