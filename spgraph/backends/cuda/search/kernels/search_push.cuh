// Levels of the whole grid that push: warps take equal shares of the frontier's edges.

#include "load_balance.cuh"

// The edges from -> v of up to EACH frontier edges of this lane, `open` where there is one:
// combine, and claim v.
DEVICE void reach(I (&from)[EACH], I (&v)[EACH], O (&where)[EACH], bool (&open)[EACH], int& held,
                  const Queue& to) {
    // each kind of access for all before the first is waited for
    u32 word[EACH];
#pragma unroll
    for (int k = 0; k < EACH; k++) word[k] = s.visited[v[k] >> 5];
#if VALUES
    u32 claimed[EACH];
#pragma unroll
    for (int k = 0; k < EACH; k++) claimed[k] = load_lagging(&s.next[v[k] >> 5]);
#endif
#pragma unroll
    for (int k = 0; k < EACH; k++) open[k] = open[k] && !((word[k] >> (v[k] & 31)) & 1u);
#if VALUES
    if constexpr (ADD_KIND != ADD_ANY) {
        // a sum that only moves one way needs no atomic where even an old one absorbs the product
        constexpr bool settles =
            ADD_KIND == ADD_MIN || ADD_KIND == ADD_MAX || ADD_KIND == ADD_OR || ADD_KIND == ADD_AND;
        Z old[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++)
            old[k] = settles && open[k] ? load_lagging(&s.value[v[k]]) : nothing();
#pragma unroll
        for (int k = 0; k < EACH; k++)
            if (open[k]) {
                const Z z = product(s.values, from[k], v[k], where[k]);
                if (!settles || add(old[k], z) != old[k]) combine(&s.value[v[k]], z);
            }
    }
    u32* claims = s.next;
#pragma unroll
    for (int k = 0; k < EACH; k++) open[k] = open[k] && !((claimed[k] >> (v[k] & 31)) & 1u);
#else
    u32* claims = s.visited;
#endif
#pragma unroll
    for (int k = 0; k < EACH; k++)
        word[k] = open[k] ? atomicOr(&claims[v[k] >> 5], 1u << (v[k] & 31)) >> (v[k] & 31) : 1u;
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        const bool found = !(word[k] & 1u);
#if VALUES
        if constexpr (ADD_KIND == ADD_ANY)
            if (found) store_relaxed(&s.value[v[k]], product(s.values, from[k], v[k], where[k]));
#endif
        held = enqueue(held, found, v[k], to);
    }
}

// Of edges of the frontier, for walk().
struct Pusher {
    const Queue to;
    int held = 0;
    I vertex = 0; // of this lane's row
    __device__ __forceinline__ Pusher(const Queue& to) : to(to) {}
    __device__ __forceinline__ O load(i64 i, bool here) {
        vertex = here ? s.queue[i] : 0;
        return here ? s.indptr[vertex] - s.offset[i] : 0;
    }
    template <bool ONE>
    __device__ __forceinline__ void take(const int (&owner)[EACH], O (&entry)[EACH],
                                         bool (&open)[EACH]) {
        I v[EACH], from[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            from[k] = VALUES ? shuffle(vertex, owner[k]) : 0;
            v[k] = open[k] ? s.indices[entry[k]] : 0;
        }
        reach(from, v, entry, open, held, to);
    }
};

CALLED void push_level(i64 nf, i64 mf, L depth, u64* packed) {
    const i64 warps = (i64)gridDim.x * WARPS, me = (i64)warp_id() * gridDim.x + blockIdx.x;
    const i64 share = share_of(mf, warps);
    const i64 begin = me * share, end = begin + share < mf ? begin + share : mf;
    Pusher pusher({packed, s.next_queue, s.next_offset, depth});
    if (begin < end) {
        i64 window = row_at(s.offset, nf, begin);
        walk<EACH, false>(s.offset, nf, mf, window, begin, end, work().push.lanes[warp_id()],
                          pusher);
    }
    release_rest(pusher.held, pusher.to);
}
