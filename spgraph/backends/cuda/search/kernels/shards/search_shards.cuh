// What the forms for several GPUs share, peers and rounds: whose a vertex is, where its bit lies in a
// bitmap of all vertices, and what users call it. Behind the state `s`, Q (bit positions) and
// first_word(q), the word at which shard q begins.

// A parent, so that the least is the greatest and 0 is none: max_label() less the user's id.
typedef Bits<L> Key;
DEVICE L max_label() { return (L)(~(u64)0 >> (65 - 8 * sizeof(L))); }
DEVICE Key key_of(L parent) { return (Key)(max_label() - parent); }
DEVICE L parent_of(Key key) { return max_label() - (L)key; }

// Where shards begin, in registers.
struct Borders {
    I first[PEERS];
    Q shift[PEERS]; // how much further bit positions lie from ids than in the shard before
    __device__ __forceinline__ Borders() {
#pragma unroll
        for (int q = 1; q < PEERS; q++) {
            first[q] = (I)s.first[q];
            shift[q] =
                (Q)(32 * (first_word(q) - first_word(q - 1)) - (s.first[q] - s.first[q - 1]));
        }
    }
    __device__ __forceinline__ int owner(I v) const {
        int q = 0;
#pragma unroll
        for (int k = 1; k < PEERS; k++) q += v >= first[k];
        return q;
    }
    // the bit of vertex v in a bitmap of all vertices
    __device__ __forceinline__ Q position(I v) const {
        Q p = v;
#pragma unroll
        for (int k = 1; k < PEERS && PADDED; k++) p += v >= first[k] ? shift[k] : 0;
        return p;
    }
    __device__ __forceinline__ I vertex(Q p) const {
        Q v = p, begin = 0;
#pragma unroll
        for (int k = 1; k < PEERS && PADDED; k++) {
            begin += shift[k];
            v -= p >= first[k] + begin ? shift[k] : 0;
        }
        return (I)v;
    }
};

#include "search_vertices.cuh"

// The user's ids of vertices, of all and of the own ones.
DEVICE L user_id(I v) { return s.ids ? s.ids[v] : (L)v; }
DEVICE L own_user_id(I v) { return user_id((I)(s.first[s.me] + v)); }

#if VALUES
// The product of a semiring that looks at the ids of vertices alone.
DEVICE Z in_product(i64 u, i64, i64) {
    const L id = user_id((I)u);
    return multiply(0, 0, 0, id, id, 0);
}
#endif
