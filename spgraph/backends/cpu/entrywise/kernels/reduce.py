# The sum of all entries.
# Preamble: add, IDENTITY, TERMINAL, TERMINAL_VALUE, cast (to the type of the sum).


@inner
def entry(bits, u, i):
    """The entry at i, or the identity; written so that it compiles without a branch."""
    if bits.size == 0:
        return cast(u[i])
    return cast(u[i]) if (bits[i >> 5] >> np.uint32(i & 31)) & np.uint32(1) else IDENTITY


@kernel
def reduce(thread, threads, sync, bits, u, width, partial):
    # one partial sum for every `width` positions (a multiple of 32), so that the order of the
    # additions does not depend on the number of threads; eight chains a partial sum hide the
    # latency of the addition
    for c in range(partial.size * thread // threads, partial.size * (thread + 1) // threads):
        poll(sync)
        first = c * width
        last = min(first + width, u.size)
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = IDENTITY
        i = first
        while i + 8 <= last:
            s0 = add(s0, entry(bits, u, i))
            s1 = add(s1, entry(bits, u, i + 1))
            s2 = add(s2, entry(bits, u, i + 2))
            s3 = add(s3, entry(bits, u, i + 3))
            s4 = add(s4, entry(bits, u, i + 4))
            s5 = add(s5, entry(bits, u, i + 5))
            s6 = add(s6, entry(bits, u, i + 6))
            s7 = add(s7, entry(bits, u, i + 7))
            i += 8
            if TERMINAL == 2 and s0 == TERMINAL_VALUE:
                i = last
        while i < last:
            s0 = add(s0, entry(bits, u, i))
            i += 1
        low, high = add(add(s0, s1), add(s2, s3)), add(add(s4, s5), add(s6, s7))
        partial[c] = add(low, high)
