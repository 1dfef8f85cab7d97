// One step on the queue: relax its vertices, a small queue as closure_local.cuh says, a large one
// by a push, in which warps take equal shares of its edges.

// Relax `count` products that the warp holds, at most BATCH.
CALLED int relax(int from, int count, int held) {
    const Products& products = warp_work().products;
    I v[SHARE];
    Z z[SHARE], old[SHARE];
    bool open[SHARE];
    warp_sync();
    // all loads of a kind are issued before the first is waited for
#pragma unroll
    for (int k = 0; k < SHARE; k++) {
        const int i = 32 * k + lane_id();
        open[k] = i < count;
        z[k] = open[k] ? sum_of(products.value[from + i]) : identity();
        v[k] = open[k] ? load_once(global(s.indices) + products.entry[from + i]) : 0;
    }
#pragma unroll
    for (int k = 0; k < SHARE; k++) old[k] = open[k] ? load_lagging(&s.x[v[k]]) : identity();
#pragma unroll
    for (int k = 0; k < SHARE; k++) open[k] = open[k] && join(v[k], old[k], z[k]);
#pragma unroll
    for (int k = 0; k < SHARE; k++) held = claim(held, open[k], v[k]);
    warp_sync();
    return held;
}

// Takes edges of the queue's vertices, and keeps the products that are better than the threshold.
struct Pusher {
    Products& products;
    const A* values;
    Z threshold, x;
    I u;
    int tries, held;
    __device__ __forceinline__ void fetch(i64, bool) {}
    __device__ __forceinline__ O load(i64 i, int, O first, bool here) {
        if (!here) return 0;
        u = s.queue[i];
        x = load_relaxed(&s.x[u]);
        note_undercut(x);
        return (O)(s.indptr[u] - first);
    }
    template <bool ONE>
    __device__ __forceinline__ void take(const int (&owner)[EACH], const O (&entry)[EACH],
                                         const bool (&open)[EACH]) {
        const Z x_of_one = ONE ? shuffle(x, owner[0]) : x;
        const I u_of_one = ONE ? shuffle(u, owner[0]) : u;
        A a[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++)
            a[k] = open[k] ? load_once(values + (entry[k] & (i64)s.every)) : A();
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const i64 from = ONE ? u_of_one : shuffle(u, owner[k]);
            const i64 to = POSITIONAL && open[k] ? s.indices[entry[k]] : 0;
            const Z from_x = ONE ? x_of_one : shuffle(x, owner[k]);
            const Z z = multiply(from_x, a[k], (i64)0, from, from, to);
            const int place = place_after(open[k] && is_followed_from(from_x, z, threshold), tries);
            if (place >= 0) {
                products.value[place] = z;
                products.entry[place] = entry[k];
            }
            if (k % 4 == 3)
#pragma unroll 1
                while (tries >= BATCH) {
                    tries -= BATCH;
                    held = relax(tries, BATCH, held);
                }
        }
    }
};

// Relax the out-edges of the queue's vertices.
CALLED void push(i64 vertices, i64 edges) {
    Pusher pusher = {warp_work().products, global(s.values), s.threshold, identity(), 0, 0, 0};
    unclaim(vertices);
    walk_queue<true>(vertices, edges, pusher);
    if (pusher.tries) pusher.held = relax(0, pusher.tries, pusher.held);
    release_rest(pusher.held, NextQueue());
}

// Whether the queue is so small that warps relax it by themselves.
DEVICE bool is_local() {
    return !s.heavy_queue && s.vertices <= LOCAL_VERTICES && s.edges <= LOCAL_EDGES &&
           s.vertices <= warps_of_grid() * (RING / 2);
}

// One step on the queue; whether it was a push.
DEVICE bool relax_queue() {
    const bool local = is_local();
    if (local)
        follow(s.vertices);
    else
        push(s.vertices, s.edges);
    return !local;
}
