// The limits of buckets, and the vertices between two limits, which are the next queue.

// The limit one width after `from`; the next value where the width is too small to change `from`.
template <class T>
DEVICE T limit_after_as(T from) {
    constexpr bool floating = (double)(T)0.5 == 0.5;
    typedef Bits<T> B;
    if (same(from, identity())) return from;
    if constexpr (floating) {
        const T to = LEAST ? from + s.width : from - s.width;
        if (better(from, to)) return to;
        return from_ordered((B)(LEAST ? ordered(from) + 1 : ordered(from) - 1));
    } else {
        const B ends = to_bits(identity()), at = to_bits(from), width = to_bits(s.width);
        const B left = LEAST ? (B)(ends - at) : (B)(at - ends);
        return left <= width ? identity() : from_bits<T>(LEAST ? (B)(at + width) : (B)(at - width));
    }
}
DEVICE Z limit_after(Z from) { return ORDERED ? limit_after_as<Z>(from) : from; }

DEVICE Z doubled(Z width) {
    constexpr bool floating = (double)(Z)0.5 == 0.5;
    const bool fits = floating ? width < (Z)1e30f : to_bits(width) >> (8 * sizeof(Z) - 3) == 0;
    return fits ? (Z)(width + width) : width;
}

// Queue the vertices that `wanted(v, x)` names; all own vertices are looked at.
template <class Wanted>
DEVICE void gather(Wanted wanted) {
    int held = 0;
    for (i64 base = s.first + (thread_id() >> 5) * 32 * AT_ONCE; base < s.last;
         base += thread_count() * AT_ONCE) {
        Z x[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            const i64 v = base + 32 * k + lane_id();
            x[k] = v < s.last ? load_relaxed(&s.x[v]) : identity();
        }
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            const i64 v = base + 32 * k + lane_id();
            held = enqueue(held, v < s.last && wanted(v, x[k]), (I)v);
        }
    }
    release_rest(held);
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

// Write the values of the sources, and find the best of them. Sources are counted from the first
// own vertex.
CALLED void begin(const I* sources, const Z* source_values, i64 count) {
    Z best = identity();
    for (i64 i = thread_id(); i < count; i += thread_count()) {
        const I v = (I)s.first + sources[i];
        const Z x = normal(source_values[i]);
        s.x[v] = x;
        reach(v, x);
        best = add(best, x);
    }
    if (ORDERED) combine_best(best);
}

// Queue the sources that are near, and those whose value is the identity, which no bucket has.
CALLED void begin_queue(const I* sources, i64 count) {
    int held = 0;
    for (i64 base = thread_id() - lane_id(); base < count; base += thread_count()) {
        const i64 i = base + lane_id();
        const I v = i < count ? (I)s.first + sources[i] : 0;
        const Z x = i < count ? s.x[v] : identity();
        held = enqueue(held, i < count && (is_near(x) || same(x, identity())), v);
    }
    release_rest(held);
}
