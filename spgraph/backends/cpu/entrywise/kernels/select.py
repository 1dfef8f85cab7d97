# The entries of a bitmap or full vector for which f is true.
# Preamble: f(value, i, j, scalar).


@kernel
def select(thread, threads, sync, bits, u, scalar, z_bits, z):
    total = z_bits.size
    for w in range(total * thread // threads, total * (thread + 1) // threads):
        if w & 2047 == 0:
            poll(sync)
        present = bits[w] if bits.size else np.uint32(0xFFFFFFFF)
        kept = np.uint32(0)
        for i in range(32 * w, min(32 * w + 32, u.size)):
            bit = np.uint32(1) << np.uint32(i & 31)
            if present & bit and f(u[i], i, 0, scalar):
                kept |= bit
                z[i] = u[i]
        z_bits[w] = kept
