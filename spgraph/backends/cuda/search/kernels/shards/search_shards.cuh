// What the forms for several GPUs share, peers and rounds: whose a vertex is, where its bit lies in a
// bitmap of all vertices, what users call it, the products of edges, and what an Exchange has. Behind the
// state `s`, Q (bit positions), first_word(q), the word at which shard q begins, and counts(), where
// what a level finds is counted.

// Where shards begin, in registers.
struct Borders {
    I first[PEERS];
    Q shift[PEERS]; // how much further bit positions lie from ids than in the shard before
    MEMBER Borders() {
#pragma unroll
        for (int q = 1; q < PEERS; q++) {
            first[q] = (I)s.first[q];
            shift[q] =
                (Q)(32 * (first_word(q) - first_word(q - 1)) - (s.first[q] - s.first[q - 1]));
        }
    }
    MEMBER int owner(I v) const {
        int q = 0;
#pragma unroll
        for (int k = 1; k < PEERS; k++) q += v >= first[k];
        return q;
    }
    // the bit of vertex v in a bitmap of all vertices
    MEMBER Q position(I v) const {
        Q p = v;
#pragma unroll
        for (int k = 1; k < PEERS && PADDED; k++) p += v >= first[k] ? shift[k] : 0;
        return p;
    }
};

struct Totals; // none: what is counted of a level goes to `counts`, for all shards

// What peers and rounds have of an Exchange alike; the other members stand in the files of both.
struct ShardExchange : Borders {
    static constexpr bool DISTRIBUTED = true, COUNTS_OTHERS = true;
    // The sums of a block: vertices, their edges, and what else is counted.
    DEVICE void add(Totals*, const u64* sum) {
        if (threadIdx.x < 3 && sum[threadIdx.x])
            atomicAdd(&counts()[threadIdx.x], sum[threadIdx.x]);
    }
    // Where a neighbour lies in the bitmap of the frontier.
    MEMBER Q bit(I id) const { return position(id); }
    // Where a level that pushes claims vertices.
    DEVICE u32* claims() { return s.visited_next; }
    DEVICE u32 claimed(i64 w) { return load_lagging(&claims()[w]); }
};

#include "search_vertices.cuh"

// The user's ids of vertices, of all and of the own ones.
DEVICE L user_id(I v) { return s.ids ? s.ids[v] : (L)v; }
DEVICE L own_user_id(I v) { return user_id((I)(s.first[s.me] + v)); }

// That of in-edge number `edge` of own vertex v, from vertex u of any shard.
DEVICE Z in_product(const Borders& borders, i64 u, i64 v, i64 edge) {
    const Z x = USES_X ? s.frontier_value[borders.position((I)u)] : Z();
    return product_of(x, s.t_values, edge, user_id((I)u), own_user_id((I)v));
}
// That of an edge of own vertex u, to vertex v of any shard.
DEVICE Z out_product(i64 u, I v, i64 edge) {
    const Z x = USES_X ? load_relaxed(&s.value[u]) : Z();
    return product_of(x, s.values, edge, own_user_id((I)u), user_id(v));
}
