# Accumulate values into a vector at given positions, in order.
# Preamble: op, cast (to the type of z).


@kernel
def scatter(thread, threads, sync, ids, values, z_bits, z):
    # empty z_bits: z is full
    for k in range(ids.size):
        if k & 0xFFFF == 0:
            poll(sync)
        i = np.uint64(ids[k])
        w = i >> np.uint64(5)
        bit = np.uint32(1) << np.uint32(i & np.uint64(31))
        if z_bits.size == 0 or z_bits[w] & bit:
            z[i] = cast(op(z[i], values[k], 0, 0, 0, 0))
        else:
            z[i] = cast(values[k])
            z_bits[w] |= bit
