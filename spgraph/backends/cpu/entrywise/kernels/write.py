# Accumulate and masked write: w<mask, replace> = Z with Z = w accum t. Where the mask allows (or
# without a mask) w gets the entry of Z, or none if Z has none; elsewhere it keeps its entry, unless
# `replace`. Preamble: combine(w, t) in the type of w, cast (to it), ACCUM.


@kernel
def write_sparse(
    thread, threads, sync, w_ids, w, t_ids, t, mask, invert, replace, z_ids, z, counts
):
    # both sparse: merge into new arrays
    p = q = present = 0
    while p < w_ids.size or q < t_ids.size:
        if present & 0xFFFF == 0:
            poll(sync)
        in_w = p < w_ids.size and (q == t_ids.size or w_ids[p] <= t_ids[q])
        in_t = q < t_ids.size and (p == w_ids.size or t_ids[q] <= w_ids[p])
        i = np.int64(w_ids[p]) if in_w else np.int64(t_ids[q])
        allowed = (
            mask.size == 0 or ((mask[i >> 5] ^ invert) >> np.uint32(i & 31)) & np.uint32(1) != 0
        )
        kept = in_w and (ACCUM if allowed else not replace)
        if kept or (allowed and in_t):
            z_ids[present] = i
            if not (allowed and in_t):
                z[present] = w[p]
            elif in_w:
                z[present] = combine(w[p], t[q])
            else:
                z[present] = cast(t[q])
            present += 1
        if in_w:
            p += 1
        if in_t:
            q += 1
    counts[0] = present


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
        both = new & in_w
        for i in range(32 * word, min(32 * word + 32, w.size)):
            bit = np.uint32(1) << np.uint32(i & 31)
            if both & bit:
                w[i] = combine(w[i], t[i])
            elif new & bit:
                w[i] = cast(t[i])


@kernel
def write_few(thread, threads, sync, cleared, t_ids, t, mask, invert, w_bits, w, counts):
    # a sparse t into w by position, in place and therefore without `poll`: first the entries at
    # `cleared` are deleted
    change = 0
    for p in range(cleared.size):
        i = np.int64(cleared[p])
        bit = np.uint32(1) << np.uint32(i & 31)
        if w_bits[i >> 5] & bit:
            w_bits[i >> 5] ^= bit
            change -= 1
    for p in range(t_ids.size):
        i = np.int64(t_ids[p])
        bit = np.uint32(1) << np.uint32(i & 31)
        if mask.size and (mask[i >> 5] ^ invert) & bit == 0:
            continue
        if w_bits.size == 0 or w_bits[i >> 5] & bit:
            w[i] = combine(w[i], t[p])
        else:
            w[i] = cast(t[p])
            w_bits[i >> 5] |= bit
            change += 1
    counts[0] = change
