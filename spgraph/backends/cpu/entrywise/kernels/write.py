# Accumulate and masked write: w<mask, replace> = Z with Z = w accum t. Where the mask allows (or
# without a mask) w gets the entry of Z, or none if Z has none; elsewhere it keeps its entry, unless
# `replace`. Preamble: both(w, t, i, j) in the type of w, cast (to it), ACCUM.


@kernel
def write(thread, threads, sync, w_bits, w, t_bits, t, mask, invert, replace):
    # by position, in place and therefore without `poll`; empty t_bits: t is full
    every = np.uint32(0xFFFFFFFF)
    total = w_bits.size
    for word in range(total * thread // threads, total * (thread + 1) // threads):
        in_w = w_bits[word]
        in_t = t_bits[word] if t_bits.size else every
        if 32 * word + 32 > w.size:
            tail = every >> np.uint32(32 * word + 32 - w.size)
            in_w &= tail
            in_t &= tail
        allowed = mask[word] ^ invert if mask.size else every
        kept = in_w & allowed if ACCUM else np.uint32(0)
        if not replace:
            kept |= in_w & ~allowed
        new = in_t & allowed
        w_bits[word] = kept | new
        if new == 0:
            continue
        common = new & in_w
        for i in range(32 * word, min(32 * word + 32, w.size)):
            bit = np.uint32(1) << np.uint32(i & 31)
            if common & bit:
                w[i] = both(w[i], t[i], i, 0)
            elif new & bit:
                w[i] = cast(t[i])


@kernel
def write_few(
    thread, threads, sync, cleared, t_ids, t, by_list, allowed, mask, invert, w_bits, w, counts
):
    # a sparse t into w by position, in place and therefore without `poll`: first the entries at
    # `cleared` are deleted. The mask is the list `allowed`, ascending as t_ids are, or words.
    change = 0
    for p in range(cleared.size):
        i = np.int64(cleared[p])
        bit = np.uint32(1) << np.uint32(i & 31)
        if w_bits[i >> 5] & bit:
            w_bits[i >> 5] ^= bit
            change -= 1
    at = 0
    for p in range(t_ids.size):
        i = np.int64(t_ids[p])
        bit = np.uint32(1) << np.uint32(i & 31)
        if by_list:
            while at < allowed.size and allowed[at] < i:
                at += 1
            if at == allowed.size:
                break
            if allowed[at] != i:
                continue
        elif mask.size and (mask[i >> 5] ^ invert) & bit == 0:
            continue
        if w_bits.size == 0 or w_bits[i >> 5] & bit:
            w[i] = both(w[i], t[p], i, 0)
        else:
            w[i] = cast(t[p])
            w_bits[i >> 5] |= bit
            change += 1
    counts[0] = change
