// Levels of the whole grid that push: warps take equal shares of the frontier's edges.

#include "load_balance.cuh"

// The edges from -> v of up to EACH frontier edges of this lane, `open` where there is one:
// combine, and claim v.
DEVICE void reach(I (&from)[EACH], I (&v)[EACH], O (&where)[EACH], bool (&open)[EACH], Stage& stage,
                  const Target& to) {
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
        stage.add(found, v[k], to);
    }
}

CALLED void push_level(i64 nf, i64 mf, L depth, u64* packed) {
    const Target to = {packed, s.next_queue, s.next_offset, depth};
    const int lane = lane_id();
    const i64 warps = (i64)gridDim.x * WARPS, me = (i64)warp_id() * gridDim.x + blockIdx.x;
    const i64 share = share_of(mf, warps);
    const i64 begin = me * share, end = begin + share < mf ? begin + share : mf;
    Stage stage;

    i64 edge = begin;
    for (i64 window = begin < end ? row_at(s.offset, nf, begin) : 0; edge < end; window += 32) {
        const i64 i = window + lane;
        O first = (O)mf, shift = 0;
        I u = 0;
        if (i < nf) {
            first = s.offset[i];
            u = s.queue[i];
            shift = s.indptr[u] - first;
        }
        const i64 next = window + 32 < nf ? (i64)s.offset[window + 32] : mf;
        const i64 stop = next < end ? next : end;
        for (; edge < stop; edge += 32 * EACH) {
            I v[EACH], from[EACH];
            O where[EACH];
            bool open[EACH];
            // a vertex of large degree owns all of these edges: then there is nothing to search
            const int one = warp_search(first, (O)edge);
            const O one_end = one < 31 ? shuffle(first, one + 1) : (O)next;
            const bool all = one_end - (O)edge >= 32 * EACH;
#pragma unroll
            for (int k = 0; k < EACH; k++) {
                const O x = (O)edge + 32 * k + lane;
                const int owner = all ? one : warp_search(first, x);
                where[k] = shuffle(shift, owner) + x;
                from[k] = shuffle(u, owner);
                open[k] = edge + 32 * k + lane < stop;
                v[k] = open[k] ? s.indices[where[k]] : 0;
            }
            reach(from, v, where, open, stage, to);
        }
        edge = stop;
    }
    stage.finish(to);
}
