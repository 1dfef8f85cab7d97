// The pull that ends a push-pull threshold: the vertices behind it are relaxed along their
// in-edges. On one GPU, if they have few, they then pull from each other, too: nearly all of them
// have their values after that, and those that have improved are relaxed until none does, instead
// of all of them bucket by bucket.

// Relax `count` in-edges that the warp holds, at most BATCH, of vertices better than the threshold.
CALLED int relax_in(int from, int count, int held) {
    const Products& products = warp_work().products;
    I v[SHARE], u[SHARE];
    O entry[SHARE];
    Z x[SHARE];
    bool open[SHARE];
    warp_sync();
#pragma unroll
    for (int k = 0; k < SHARE; k++) {
        const int i = 32 * k + lane_id();
        open[k] = i < count;
        entry[k] = open[k] ? products.entry[from + i] : 0;
        v[k] = open[k] ? products.vertex[from + i] : 0;
        u[k] = open[k] ? load_once(global(s.t_indices) + entry[k]) : 0;
    }
#pragma unroll
    for (int k = 0; k < SHARE; k++) x[k] = open[k] ? load_lagging(&s.x[u[k]]) : identity();
#pragma unroll
    for (int k = 0; k < SHARE; k++) {
        open[k] = open[k] && better(x[k], s.threshold);
        if (open[k]) {
            Z z = product(x[k], s.t_values, entry[k], u[k], v[k]);
            open[k] = join(v[k], load_lagging(&s.x[v[k]]), z);
        }
    }
    if constexpr (Exchange::PULLS_TWICE)
#pragma unroll
        for (int k = 0; k < SHARE; k++) held = claim_own(held, open[k], v[k]);
    warp_sync();
    return held;
}

// Takes in-edges of the queue's vertices. `bounded`: an edge whose product with the floor would be
// no improvement is skipped, and its vertex not loaded; unless nothing has reached the queue's
// vertex, which has an entry even if all products are the identity.
struct Puller {
    Z x;
    I v;
    bool bounded;
    int tries, held;
    __device__ __forceinline__ void fetch(i64, bool) {}
    __device__ __forceinline__ O load(i64 i, int, O first, bool here) {
        if (!here) return 0;
        v = s.queue[i];
        x = load_relaxed(&s.x[v]);
        if constexpr (PARENTS) x = greatest_with_distance_of(x);
        return (O)(s.t_indptr[v] - first);
    }
    template <bool>
    __device__ __forceinline__ void take(const int (&owner)[EACH], const O (&entry)[EACH],
                                         const bool (&open)[EACH]) {
        Products& products = warp_work().products;
        const A* const values = global(s.t_values);
        A a[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++)
            a[k] = bounded && open[k] ? load_once(values + (entry[k] & (i64)s.every)) : A();
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const I to = shuffle(v, owner[k]);
            const Z old = shuffle(x, owner[k]);
            const Z bound = multiply(s.floor, a[k], (i64)0, (i64)0, (i64)0, (i64)to);
            const bool wanted = !bounded || changes(old, bound) || is_in_no_bucket(old);
            const int place = place_after(open[k] && wanted, tries);
            if (place >= 0) {
                products.vertex[place] = to;
                products.entry[place] = entry[k];
            }
            if (k % 4 == 3)
#pragma unroll 1
                while (tries >= BATCH) {
                    tries -= BATCH;
                    held = relax_in(tries, BATCH, held);
                }
        }
    }
};

// Relax the in-edges of the queue's vertices.
CALLED void pull(i64 vertices, i64 edges, bool bounded) {
    Puller puller = {identity(), 0, bounded, 0, 0};
    walk_queue<false>(vertices, edges, puller);
    if (puller.tries) puller.held = relax_in(0, puller.tries, puller.held);
    if constexpr (Exchange::PULLS_TWICE) release_rest(puller.held, NextQueue());
}

// Queue the vertices behind the threshold that have in-edges, by whose number they are counted.
// False where a barrier failed.
CALLED bool open_vertices() {
    BLOCK_SETS(s.rows = s.t_indptr;)
    gather(
        [&](i64 v, Z x) { return !better(x, s.threshold) && s.t_indptr[v] < s.t_indptr[v + 1]; });
    Exchange::publish();
    if (!Exchange::meet_all(false)) return false;
    BLOCK_SETS(s.rows = s.indptr;)
    Exchange::count_step(s.edges);
    return true;
}

// The vertices behind the threshold pull from each other, and all that improve are near from then
// on. Those before it need nothing of them: of an edge that leads both ways, the one that is better
// has given its product to the other.
CALLED bool pull_from_each_other() {
    if (!open_vertices()) return false;
    BLOCK_SETS(s.floor = s.threshold; s.limit = identity(); drop_threshold(s);)
    pull(s.vertices, s.edges, true);
    return Exchange::meet_here();
}

// The vertices behind the threshold pull what was not pushed to them. False where a barrier failed.
CALLED bool pull_behind_threshold() {
    if (!open_vertices()) return false;
    const bool again = pulls_again(s, s.edges);
    pull(s.vertices, s.edges, !POSITIONAL && !Exchange::was_undercut());
    if (!Exchange::meet_here()) return false;
    if (again) return pull_from_each_other();
    BLOCK_SETS(drop_threshold(s);)
    return true;
}
