// The state of a closure in shared memory, and the buffers of its warps, for closure.cu,
// closure_peers.cu and closure_rounds.cu.

constexpr int WARPS = THREADS / 32;
constexpr int EACH = 8;            // values that a lane of a push has in flight
constexpr int AT_ONCE = 8;         // and where all vertices are looked at
constexpr int TRIES = BATCH + 128; // products that a warp buffers
constexpr int HEAVY = 32;          // a vertex with more edges is too much for ROW_LANES lanes
constexpr int RING = 64;           // vertices that a warp's own queue holds
constexpr int ROW_LANES = 4;       // lanes that relax the edges of one of them
// a threshold is set where the queue has THRESHOLD_EDGES edges, and this part (1 / 20) of all edges;
// where buckets are narrow, no queue has so many, and 1 / 100 will do
constexpr i64 THRESHOLD_SHARE = 20, NARROW_SHARE = 100;
// buckets become wider that have fewer edges than this part of all
constexpr i64 WIDENING_SHARE = 16;
constexpr int MAX_THRESHOLDS = 3; // so often in one closure
#ifndef STEPS                     // hops of a local step
#define STEPS 16
#endif
constexpr i64 LOCAL_SHARE = 2; // vertices that a warp starts from at least in a local step
// vertices and edges of a queue that warps relax by themselves
constexpr i64 LOCAL_VERTICES = 32768;
#ifndef LOCAL_EDGES
#define LOCAL_EDGES 131072
#endif
#ifndef PULL_AGAIN_SHARE // vertices behind a threshold that have up to 1 / 4 of all edges pull twice
#define PULL_AGAIN_SHARE 4
#endif
#ifndef MOST_TIES // that a closure with parents notes: the host gives it
#define MOST_TIES 0u
#endif
#ifndef THRESHOLD_EDGES
#define THRESHOLD_EDGES (1 << 21)
#endif

struct Control { // zero at launch
    GridBarrier barrier;
    i64 unsettled; // more rounds than there are vertices
    i64 reached;
    // by step modulo 3: queued vertices in the low bits, their edges in the high bits; the best far
    // value; whether some queued vertex has more than HEAVY edges
    u64 packed[3];
    Z best[3];
    u32 heavy[3];
    u32 undercut; // a vertex became better than `floor` while a threshold was set
    u32 ties;     // as closure_parents.cuh says, noted by the closure;
    u32 others;   // and those of them that are parents
};

// What a closure with parents notes: `value` came to `vertex`, and is not the least. And the parts of
// its values.
struct Tie {
    I vertex;
    Z value;
};
template <class T>
DEVICE float distance_of(T value) {
    return from_bits<float>((u32)(value >> 32));
}
template <class T>
DEVICE I parent_of(T value) {
    return (I)(u32)value;
}

struct Limits { // of buckets; the same on all GPUs
    Z limit;    // better values are near
    Z start;    // the limit of the bucket before
    Width width;
    Width reach; // how far beyond `limit` a threshold lies
    bool has_threshold;
    Z threshold; // products that are not better are not pushed; identity() where there is none
    Z floor;     // better values had been relaxed everywhere before the threshold was set
};

struct Progress { // likewise
    i64 rounds;   // of the bucket so far
    i64 edges;    // that they looked at
    int thresholds;
    bool bulk; // the bucket with a large share of all edges has come
};

// What the host gives to every closure, in fields of 8 bytes: `kernel_arrays` in closure.py.
struct Arrays {
    i64 m, count_bits; // edges of the whole graph; bits of the number of own vertices
    u64 every;         // the value of entry e is values[e & every]: 0 where one stands for all
    const O* indptr;   // out-edges of the own vertices
    const I* indices;
    const A* values;
    const O* t_indptr; // in-edges, or null
    const I* t_indices;
    const A* t_values;
    u32* bits;   // vertices of the whole graph that have, or had, an entry that is the identity
    u32* claims; // a bit for each vertex of the whole graph; two of them
    I* queues;   // for each own vertex; two of them
    O* offsets;  // likewise
};

// Rows are found by ids of the whole graph: those of the own vertices begin at `first`.
struct Closure : Limits, Arrays {
    Progress progress;
    i64 first, last; // the own vertices
    Z* x;
    u32* next_claims; // vertices of the next queue
    u32* claimed;     // vertices of the queue
    I* queue;
    O* offset;
    I* next_queue;
    O* next_offset;
    const O* rows; // the rows whose degrees the next queue holds: indptr or t_indptr
    u64* packed;
    Z* best;
    u32* heavy;
    Control* control;
    Tie* ties; // null without parents
    u32 step;
    i64 vertices, edges; // of the queue
    Z far;               // the best far value of the last step
    bool heavy_queue;
};

// The buffers of a warp: products to relax, or a queue of its own; and vertices to queue.
struct Products {
    union {
        Z value[TRIES];
        I vertex[TRIES]; // in a pull, which computes the products later
    };
    O entry[TRIES];
};
struct Ring {
    Z value[RING];
    O first[RING], last[RING];
    I vertex[RING];
    // Vertex v with value x and its edges, in a place that counts all vertices so far.
    __device__ __forceinline__ void put(u32 place, I v, Z x, O from, O to) {
        vertex[place % RING] = v;
        value[place % RING] = x;
        first[place % RING] = from;
        last[place % RING] = to;
    }
};
// Lengths of arrays are multiples of 32, so that there are no gaps: closure.py computes the size.
struct WarpWork {
    union {
        Products products;
        Ring ring;
    };
    I found[BATCH + 32];
    u32 lanes[32];
};

extern __shared__ u64 work_memory[];

DEVICE WarpWork& warp_work() { return reinterpret_cast<WarpWork*>(work_memory)[warp_id()]; }
