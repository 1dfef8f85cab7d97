// Accumulate and masked write: with Z = w accum t, w<mask, replace> = Z. A position that the mask
// (if there is one) allows takes Z's entry or loses its own; another keeps its own, or loses it
// under replace. Preamble: types W T N (ids), combine_entries(w, t) in the type of w, cast (to it),
// ACCUM.

DEVICE bool allows(const u32* mask, u32 invert, i64 i) {
    return !mask || ((mask[i >> 5] ^ invert) >> (i & 31)) & 1;
}

// By position, values in place, a warp a word; no bits mean that every position holds an entry.
extern "C" __global__ void __launch_bounds__(256)
    write(const u32* w_bits, W* w, const u32* t_bits, const T* t, const u32* mask, u32 invert,
          bool replace, i64 size, u32* z_bits) {
    for (i64 word = thread_id() >> 5; word < (size + 31) / 32; word += thread_count() >> 5) {
        u32 valid = valid_bits(word, size), bit = 1u << lane_id();
        u32 in_w = w_bits ? w_bits[word] : valid, in_t = t_bits ? t_bits[word] : valid;
        u32 allowed = mask ? mask[word] ^ invert : ALL_BITS;
        u32 kept = ACCUM ? in_w & allowed : 0;
        if (!replace) kept |= in_w & ~allowed;
        u32 arrived = in_t & allowed;
        if (lane_id() == 0) z_bits[word] = kept | arrived;
        i64 i = 32 * word + lane_id();
        if (arrived & in_w & bit)
            w[i] = combine_entries(w[i], t[i]);
        else if (arrived & bit)
            w[i] = cast(t[i]);
        // what lies under an absent bit must not differ from run to run
        else if (in_w & ~kept & bit)
            w[i] = (W)0;
    }
}

// Both sparse, first step: stays[p] = 1 where entry p of w followed by t, as one list, has an entry
// of its own in the result.
extern "C" __global__ void __launch_bounds__(256)
    write_stays(const N* w_ids, i64 w_count, const N* t_ids, i64 t_count, const u32* mask,
                u32 invert, bool replace, i64* stays) {
    for (i64 p = thread_id(); p < w_count + t_count; p += thread_count()) {
        bool of_w = p < w_count;
        i64 i = of_w ? w_ids[p] : t_ids[p - w_count];
        bool allowed = allows(mask, invert, i);
        i64 at = of_w ? lower_bound(t_ids, t_count, i) : lower_bound(w_ids, w_count, i);
        bool in_both = of_w ? at < t_count && t_ids[at] == i : at < w_count && w_ids[at] == i;
        // an entry of both is w's
        stays[p] = of_w ? (allowed ? ACCUM || in_both : !replace) : allowed && !in_both;
    }
}

// Second step: `through` is the running sum of `stays`. An entry's slot is the number of those that
// stay and come before it.
extern "C" __global__ void __launch_bounds__(256)
    write_sparse(const N* w_ids, const W* w, i64 w_count, const N* t_ids, const T* t, i64 t_count,
                 const u32* mask, u32 invert, const i64* through, N* z_ids, W* z) {
    for (i64 p = thread_id(); p < w_count + t_count; p += thread_count()) {
        i64 own = p ? through[p - 1] : 0;
        if (through[p] == own) continue;
        bool of_w = p < w_count;
        i64 i = of_w ? w_ids[p] : t_ids[p - w_count];
        i64 at = of_w ? lower_bound(t_ids, t_count, i) : lower_bound(w_ids, w_count, i);
        // of the other list: those that stay among its first `at`
        i64 from_w = w_count ? through[w_count - 1] : 0;
        i64 slot = of_w ? own + (w_count + at ? through[w_count + at - 1] : 0) - from_w
                        : own - from_w + (at ? through[at - 1] : 0);
        z_ids[slot] = i;
        bool in_both = of_w && at < t_count && t_ids[at] == i && allows(mask, invert, i);
        z[slot] = in_both ? combine_entries(w[p], t[at]) : of_w ? w[p] : cast(t[p - w_count]);
    }
}

DEVICE bool holds(const N* ids, i64 count, i64 i) {
    const i64 at = lower_bound(ids, count, i);
    return at < count && ids[at] == i;
}

// A sparse t into w by position, all in place: the first `cleared` positions of the list `allowed`
// lose their entries where t has none, then come the entries of t. The mask is that list or, not
// `by_list`, words. No two threads meet at a position; the bits of several share a word.
extern "C" __global__ void __launch_bounds__(256)
    write_few(const N* t_ids, const T* t, i64 count, bool by_list, const N* allowed, i64 list_size,
              i64 cleared, const u32* mask, u32 invert, u32* w_bits, W* w, i64* change) {
    for (i64 p = thread_id(); p < cleared + count; p += thread_count()) {
        const i64 q = p - cleared, i = q < 0 ? allowed[p] : t_ids[q];
        const u32 bit = 1u << (i & 31);
        if (q < 0) {
            if (holds(t_ids, count, i) || !(atomicAnd(w_bits + (i >> 5), ~bit) & bit)) continue;
            w[i] = (W)0;
            atomicAdd((u64*)change, ~0ull);
            continue;
        }
        if (by_list ? !holds(allowed, list_size, i) : !allows(mask, invert, i)) continue;
        if (!w_bits || atomicOr(w_bits + (i >> 5), bit) & bit) {
            w[i] = combine_entries(w[i], t[q]);
        } else {
            w[i] = cast(t[q]);
            atomicAdd((u64*)change, 1ull);
        }
    }
}
