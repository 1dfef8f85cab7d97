// Levels that push, of all forms: warps take equal shares of the frontier's edges.

#include "load_balance.cuh"

#if !VALUES
struct Row { // edges have no terms
    static constexpr bool ANY = false, TELLS = false;
    MEMBER void load(I, bool) {}
    MEMBER Row of(int) const { return {}; }
};
#endif

// Of edges of the frontier, for walk(): those to vertices that are not visited claim them, and
// combine into what is held of each until the level is settled. The form has
//   Row      what a row gives to its edges' terms, and how terms combine; TELLS: the sum alone tells
//            whether a term was the first
//   Found    what is done with a vertex by the edge that claims it first; WANTED: anything
//   partial()   by bit position, where terms are combined; claims(): the bitmap, which without values
//            has the visited vertices, too
struct Pusher {
    Exchange exchange;
    Found found;
    I vertex;         // of this lane, of the next 32
    Row row;          // of this lane
    const bool early; // most edges lead to vertices that are not visited
    MEMBER Pusher(const Found& found, bool early) : found(found), early(early) {}
    MEMBER void fetch(i64 i, bool here) { vertex = here ? s.queue[i] : 0; }
    MEMBER O load(i64, int from, O first, bool here) {
        const I u = shuffle(vertex, from);
        row.load(u, here);
        return here ? s.indptr[u] - first : 0;
    }
    template <bool ONE>
    MEMBER void take(const int (&owner)[EACH], const O (&entry)[EACH], const bool (&there)[EACH]) {
        constexpr bool ANY = Row::ANY, TELLS = Row::TELLS;
        // most edges of a graph that is worth several GPUs lead to visited vertices, and of those no
        // claim is looked at
        constexpr bool LATER = Exchange::DISTRIBUTED && VALUES && !TELLS;
        // each kind of access for all before the first is waited for
        Row from[EACH];
        I v[EACH];
        Q p[EACH];
        u32 word[EACH], claimed[EACH];
        bool open[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            if (Exchange::DISTRIBUTED) from[k] = row.of(owner[k]);
            v[k] = there[k] ? load_id(&s.indices[entry[k]]) : 0;
        }
        // behind the loads: 4 % fewer instructions on one GPU, between shards 2 % more
#pragma unroll
        for (int k = 0; k < EACH && !Exchange::DISTRIBUTED; k++) from[k] = row.of(owner[k]);
#if VALUES
        typename Row::Term old[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            p[k] = exchange.bit(v[k]);
            word[k] = s.visited[p[k] >> 5];
            old[k] =
                early && Row::ONE_WAY && there[k] ? load_lagging(&partial()[p[k]]) : Row::none();
        }
#else
#pragma unroll
        for (int k = 0; k < EACH; k++) p[k] = exchange.bit(v[k]);
#endif
#pragma unroll
        for (int k = 0; k < EACH; k++)
            claimed[k] = TELLS || LATER ? 0 : Exchange::claimed(p[k] >> 5) >> (p[k] & 31);
#pragma unroll
        for (int k = 0; k < EACH; k++)
            open[k] = there[k] && !(VALUES && (word[k] >> (p[k] & 31)) & 1u);
#pragma unroll
        for (int k = 0; k < EACH && LATER; k++)
            if (open[k]) claimed[k] = Exchange::claimed(p[k] >> 5) >> (p[k] & 31);
#if VALUES
        if constexpr (!ANY) {
            // a sum that moves one way only needs no atomic where even an old one absorbs the term;
            // on one GPU, what is not claimed yet is taken to have none
#pragma unroll
            for (int k = 0; k < EACH; k++)
                if (!early && Row::ONE_WAY && open[k] && (Exchange::DISTRIBUTED || claimed[k] & 1u))
                    old[k] = load_lagging(&partial()[p[k]]);
#pragma unroll
            for (int k = 0; k < EACH; k++) {
                if (!open[k]) continue;
                const typename Row::Term term = from[k].term(v[k], entry[k]);
                const bool changes = !Row::ONE_WAY || Row::changes(old[k], term);
                if (changes) Row::combine(&partial()[p[k]], term);
                if (TELLS) open[k] = changes && old[k] == Row::none();
            }
        }
#endif
        u32* const claims = Exchange::claims();
        bool any = false;
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            open[k] = open[k] && !(claimed[k] & 1u);
            any = any || open[k];
        }
        if constexpr (Found::WANTED || ANY) {
            // most edges of the last levels lead to visited vertices
            if (!warp_any(any)) return;
#pragma unroll
            for (int k = 0; k < EACH; k++)
                word[k] =
                    open[k] ? atomicOr(&claims[p[k] >> 5], 1u << (p[k] & 31)) >> (p[k] & 31) : 1u;
#pragma unroll
            for (int k = 0; k < EACH; k++) {
                const bool first = !(word[k] & 1u);
#if VALUES
                if (ANY && first) store_relaxed(&partial()[p[k]], from[k].term(v[k], entry[k]));
#endif
                found.add(first, v[k]);
            }
        } else { // the results are not used, so that no lane waits for these atomics
#pragma unroll
            for (int k = 0; k < EACH; k++)
                if (open[k]) atomicOr(&claims[p[k] >> 5], 1u << (p[k] & 31));
        }
    }
};

// The edges of the queue from number `first` up to `last`, by all warps, with 32 `lanes` of memory
// for each.
DEVICE void push_edges(i64 vertices, i64 first, i64 last, u32* lanes, Pusher& pusher) {
    const i64 warps = (i64)gridDim.x * WARPS, me = (i64)Exchange::warp() * gridDim.x + blockIdx.x;
    walk_share<EACH, Exchange::DISTRIBUTED>(s.offset, vertices, first, last, me, warps, lanes,
                                            pusher);
}
