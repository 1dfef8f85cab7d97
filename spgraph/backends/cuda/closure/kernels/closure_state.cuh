// The state of a closure, and what its warps hold, for closure.cu and closure_peers.cu.

constexpr int WARPS = THREADS / 32;
constexpr int EACH = 8;            // values a lane of a push has in flight
constexpr int TRIES = BATCH + 128; // products a warp holds back
constexpr int HEAVY = 32;          // a vertex with more edges is no work for four lanes
constexpr int RING = 64;           // vertices that a warp's own queue holds
constexpr int ROW_LANES = 4;       // lanes that walk the edges of one of them
constexpr i64 CUT_SHARE = 20;      // a cut begins at this part of all edges,
constexpr int CUTS = 3;            // this often at most
constexpr i64 THIN = 16384; // after the bulk: edges of a round below which buckets grow wider
#ifndef STEPS
#define STEPS 16
#endif
#ifndef LOCAL_VERTICES // of a frontier that warps follow by themselves
#define LOCAL_VERTICES 32768
#endif
#ifndef LOCAL_EDGES
#define LOCAL_EDGES 131072
#endif
#ifndef LOCAL_SHARE // vertices that a warp starts from at least
#define LOCAL_SHARE 2
#endif
#ifndef CUT_EDGES // a cut pays from so many on
#define CUT_EDGES (1 << 21)
#endif

enum Step { START = 0, PUSH = 1, LOCAL = 2, BUCKET = 3, PULL = 4 }; // in the trace

struct Control { // zero at launch
    GridBarrier barrier;
    i64 unsettled; // it went on for more rounds than there are vertices
    i64 reached;
    i64 steps; // rows of the trace
    u64 packed
        [3];      // by step modulo 3: queued vertices in the low bits, their edges in the high bits
    Z best[3];    // by step modulo 3: the best value that stayed far
    u32 heavy[3]; // by step modulo 3: some queued vertex has more than HEAVY edges
    u32 undercut; // a vertex became better than `floor` while a cut was on
};

struct Closure {
    i64 first, last, m; // its vertices, and the edges of all
    u64 every;          // all bits set, or none where all entries have the value of the first
    const O* indptr;
    const I* indices;
    const A* values;
    const O* t_indptr; // in-edges, or null
    const I* t_indices;
    const A* t_values;
    Z* x;
    u32* bits;    // vertices that have an entry of the value identity, or had one
    u32* claims;  // vertices of the next queue
    u32* claimed; // vertices of the queue
    I* queue;
    O* offset;
    I* next_queue;
    O* next_offset;
    const O* rows; // whose degrees the next queue is about
    u64* packed;
    Z* best;
    u32* heavy;
    Control* control;
    i64* trace; // kind, vertices, edges, ns; a row a step
    i64 trace_rows;
    u64 since;
    u32 count_bits, step;
    i64 vertices, edges; // of the queue
    Z far;               // the best value that the last step saw far
    bool heavy_queue;
    Z limit; // what is better is near
    Z start; // the limit before
    Z width;
    bool cutting;
    Z cut;   // what is not better is not followed; identity() where nothing is cut off
    Z floor; // what is better had been followed to everywhere before the cut
};

// What a warp holds: products to try, or a queue of its own; and vertices to hand on.
struct Products {
    union {
        Z value[TRIES];
        I vertex[TRIES]; // in a pull, where the value is not known yet
    };
    O entry[TRIES];
};
struct Ring {
    Z value[RING];
    O first[RING], last[RING];
    I vertex[RING];
};
// Arrays are multiples of 32 long, so that there are no gaps: closure.py knows the size.
struct WarpWork {
    union {
        Products products;
        Ring ring;
    };
    I found[BATCH + 32];
    u32 lanes[32];
};

__shared__ u64 block_base;
__shared__ u32 warp_count[WARPS];
__shared__ O warp_edges[WARPS];
extern __shared__ u64 work_memory[];

#define CALLED static __device__ __noinline__

DEVICE WarpWork& warp_work() { return reinterpret_cast<WarpWork*>(work_memory)[threadIdx.x >> 5]; }

// A pointer out of shared memory is one that the compiler knows nothing about: this tells it which
// memory it leads to, without which an atomic takes a branch for every kind.
template <class T>
DEVICE T* global(T* pointer) {
#ifndef HOST_SHIM
    __builtin_assume(__isGlobal(pointer));
#endif
    return pointer;
}
