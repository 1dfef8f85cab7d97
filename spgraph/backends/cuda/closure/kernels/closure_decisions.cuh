// What a closure decides from totals over all GPUs, so that all of them decide alike, and programs of
// every exchange do: pure functions, but for the limits and the progress that they are given.

// The limit one width after `from`; the next value where the width is too small to change `from`.
template <class T>
DEVICE T limit_after_as(T from, T width) {
    constexpr bool floating = (double)(T)0.5 == 0.5;
    typedef Bits<T> B;
    if (same(from, identity())) return from;
    if constexpr (floating) {
        const T to = LEAST ? from + width : from - width;
        if (better(from, to)) return to;
        return from_ordered((B)(LEAST ? ordered(from) + 1 : ordered(from) - 1));
    } else {
        const B ends = to_bits(identity()), at = to_bits(from), step = to_bits(width);
        const B left = LEAST ? (B)(ends - at) : (B)(at - ends);
        return left <= step ? identity() : from_bits<T>(LEAST ? (B)(at + step) : (B)(at - step));
    }
}
DEVICE Z limit_after(Z from, Width width) {
    if constexpr (PARENTS) return limit_after_distance(from, width);
    return ORDERED ? limit_after_as<Z>(from, width) : from;
}

DEVICE Width doubled(Width width) {
    constexpr bool floating = (double)(Width)0.5 == 0.5;
    const bool fits =
        floating ? width < (Width)1e30f : to_bits(width) >> (8 * sizeof(Width) - 3) == 0;
    return fits ? (Width)(width + width) : width;
}

// Whether queues of so many edges have a large share of all m: after their bucket, little is left.
// Narrow buckets have a lesser share at a time.
DEVICE bool is_bulk(const Limits& at, i64 edges, i64 m) {
    const bool narrow = ORDERED && !(doubled(at.width) > at.reach);
    return edges >= THRESHOLD_EDGES && edges * (narrow ? NARROW_SHARE : THRESHOLD_SHARE) >= m;
}

// Whether a bucket has had more rounds than it can need if it settles at all.
DEVICE bool is_unsettled(i64 rounds, i64 n) { return rounds > Exchange::ROUNDS_PER_VERTEX * n; }

// ---- the push-pull threshold --------------------------------------------------------------------

// A round has looked at so many edges.
DEVICE void count_round(Progress& progress, i64 edges) {
    progress.rounds++;
    progress.edges += edges;
}

DEVICE void set_threshold(Limits& at) {
    at.threshold = limit_after(at.limit, at.reach);
    at.floor = at.start;
    at.has_threshold = !same(at.threshold, identity());
}

// Begin a threshold where the queues have so many edges that they are worth one; notes the bulk of
// the edges.
DEVICE void consider_threshold(Limits& at, Progress& progress, i64 edges, const Arrays& given) {
    const bool large = is_bulk(at, edges, given.m);
    progress.bulk = progress.bulk || large;
    if (!ORDERED || !given.t_indptr || at.has_threshold || !large) return;
    if (progress.thresholds == MAX_THRESHOLDS) return;
    progress.thresholds++;
    set_threshold(at);
}

// Whether the vertices behind the threshold pull, after a bucket that has settled.
DEVICE bool ends_threshold(const Limits& at) {
    return at.has_threshold && !better(at.limit, at.threshold);
}

// Whether the vertices behind the threshold, with so many in-edges, pull from each other: where A is
// its own transpose.
DEVICE bool pulls_again(const Arrays& given, i64 edges) {
    return Exchange::PULLS_TWICE && !POSITIONAL && given.t_indices == given.indices &&
           edges <= given.m / PULL_AGAIN_SHARE;
}
DEVICE void drop_threshold(Limits& at) {
    at.has_threshold = false;
    at.threshold = identity();
}

// ---- buckets ------------------------------------------------------------------------------------

// Before the sources are known.
DEVICE void no_limits(Limits& at, Width width, Width reach) {
    at.limit = at.start = at.threshold = at.floor = identity();
    at.width = width;
    at.reach = reach;
    at.has_threshold = false;
}

// The first bucket begins at the best of the sources.
DEVICE void begin_buckets(Limits& at, Z best) {
    at.start = best;
    at.limit = limit_after(best, at.width);
}

// Whether buckets become wider, after one that has settled: the largest has come, and rounds have
// few edges, or all of them a small part of all m.
DEVICE bool widens(const Progress& progress, i64 m) {
    return progress.bulk && progress.rounds > 0 &&
           (progress.edges < Exchange::WIDENING_EDGES * Exchange::SHARDS * progress.rounds ||
            progress.edges * WIDENING_SHARE < m);
}
DEVICE void end_bucket(Limits& at, Progress& progress, i64 m) {
    if (widens(progress, m)) at.width = doubled(at.width);
    progress.rounds = progress.edges = 0;
}

// The end of the next bucket, which does not cross the threshold.
DEVICE Z next_limit(const Limits& at) {
    const Z next = limit_after(at.limit, at.width);
    return at.has_threshold && better(at.threshold, next) ? at.threshold : next;
}

// Whether a bucket was the last: `empty`, with `best` the best value behind it.
DEVICE bool is_last(const Limits& at, bool empty, Z best) {
    return empty && same(best, identity()) && !at.has_threshold;
}

// The bucket up to `next` is the one to settle; where it is empty, the one after it begins at the
// best value that is left, or at the threshold if all are beyond it.
DEVICE void move_on(Limits& at, bool empty, Z best, Z next) {
    const bool all_beyond = at.has_threshold && !better(best, at.threshold);
    at.start = at.limit;
    at.limit = !empty ? next : all_beyond ? at.threshold : best;
}
