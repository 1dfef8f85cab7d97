// The vertices between the limits of a bucket, which are the next queue.

// each(v, x) for the own vertices, by whole warps: x[k] is the value of v + 32 * k, which is no vertex
// where it is not below s.last.
template <class Each>
DEVICE void for_each_own(Each each) {
    for (i64 base = s.first + (thread_id() >> 5) * 32 * AT_ONCE; base < s.last;
         base += thread_count() * AT_ONCE) {
        const i64 v = base + lane_id();
        Z x[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            x[k] = v + 32 * k < s.last ? load_relaxed(&s.x[v + 32 * k]) : identity();
        each(v, x);
    }
}

// Queue the vertices that `wanted(v, x)` names; all own vertices are looked at.
template <class Wanted>
DEVICE void gather(Wanted wanted) {
    int held = 0;
    for_each_own([&](i64 v, const Z(&x)[AT_ONCE]) {
        u32 mine = 0;
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            mine |= (u32)(v + 32 * k < s.last && wanted(v + 32 * k, x[k])) << k;
        for (u32 rest = reduce_or(mine); rest; rest &= rest - 1) {
            const int k = __ffs(rest) - 1;
            held = enqueue(held, mine >> k & 1, (I)(v + 32 * k), NextQueue());
        }
    });
    release_rest(held, NextQueue());
}

// Combine the best far values of the lanes of a warp with the best of all.
DEVICE void combine_best(Z best) {
    best = warp_combine(best);
    if (lane_id() == 0 && !same(best, identity())) combine(s.best, best);
}

// Queue the vertices from the limit up to the new limit, and find the best value after that.
CALLED void next_bucket(Z limit) {
    Z best = identity();
    gather([&](i64, Z x) {
        if (better(x, s.limit) || same(x, identity())) return false;
        if (better(x, limit)) return true;
        best = add(best, x);
        return false;
    });
    combine_best(best);
}

// Of n vertices none is reached, none is queued; `claims` has two bitmaps. All blocks call.
CALLED void clear(i64 n, Z* x, u32* bits, u32* claims) {
    const i64 words = (n + 31) / 32;
    for (i64 v = thread_id(); v < n; v += thread_count()) x[v] = identity();
    for (i64 w = thread_id(); w < words; w += thread_count())
        bits[w] = claims[w] = claims[words + w] = 0;
}

// Copy the values of the own vertices, and write a bit for each that has an entry; how many bits
// this warp has set. `values` and `bits` may be where they come from.
CALLED u64 copy_own(const Z* x, const u32* have, i64 first, i64 own, Z* values, u32* bits) {
    return write_bits(own, bits, [=](i64 i) {
        const i64 v = first + i;
        const Z value = load_relaxed(&x[v]);
        const u32 known = load_relaxed(&have[v >> 5]) >> (v & 31) & 1;
        if (values != x) values[i] = value;
        return known || !same(value, identity());
    });
}

// Write the values of the sources, and find the best of them. Sources are counted from the first
// own vertex.
CALLED void begin(const I* sources, const Z* source_values, i64 count) {
    Z best = identity();
    for (i64 i = thread_id(); i < count; i += thread_count()) {
        const I v = (I)s.first + sources[i];
        const Z x = normal(source_values[i]);
        s.x[v] = x;
        if (is_in_no_bucket(x)) set_bit(s.bits, v); // it has an entry, whatever it becomes
        best = add(best, x);
    }
    if (ORDERED) combine_best(best);
}

// Queue the sources that are near, and those that are in no bucket.
CALLED void begin_queue(const I* sources, i64 count) {
    int held = 0;
    for (i64 base = thread_id() - lane_id(); base < count; base += thread_count()) {
        const i64 i = base + lane_id();
        const I v = i < count ? (I)s.first + sources[i] : 0;
        const Z x = i < count ? s.x[v] : identity();
        const bool wanted = i < count && is_followed(x, s.limit);
        held = enqueue(held, wanted, v, NextQueue());
    }
    release_rest(held, NextQueue());
}
