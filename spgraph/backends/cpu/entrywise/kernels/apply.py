# z = f of every entry.
# Preamble: f(value, i, j, scalar).

# positions between two checks for signals
PIECE = np.uint64(1 << 16)


@kernel
def apply(thread, threads, sync, ids, bits, u, scalar, z):
    if bits.size == 0:
        # loops without branches over a share of the entries, which the compiler vectorises
        low = np.uint64(u.size * thread // threads)
        high = np.uint64(u.size * (thread + 1) // threads)
        if ids.size:
            for begin in range(low, high, PIECE):
                poll(sync)
                for p in range(begin, min(begin + PIECE, high)):
                    z[p] = f(u[p], np.int64(ids[p]), 0, scalar)
        else:
            for begin in range(low, high, PIECE):
                poll(sync)
                for p in range(begin, min(begin + PIECE, high)):
                    z[p] = f(u[p], np.int64(p), 0, scalar)
        return
    every = np.uint32(0xFFFFFFFF)
    for w in range(bits.size * thread // threads, bits.size * (thread + 1) // threads):
        if w & 2047 == 0:
            poll(sync)
        first = 32 * w
        last = min(first + 32, u.size)
        if bits[w] == every:
            for i in range(first, last):
                z[i] = f(u[i], i, 0, scalar)
        else:
            for i in range(first, last):
                if (bits[w] >> np.uint32(i & 31)) & np.uint32(1):
                    z[i] = f(u[i], i, 0, scalar)
