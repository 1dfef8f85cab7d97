// The state of a search on one GPU, in the shared memory of each block: where its arrays are, and Control,
// what blocks tell each other. The preamble is that of search_common.cuh.

constexpr int THREADS = 1024;
constexpr int BATCH = 128; // found vertices that a warp queues at a time
// a frontier in shared memory: in pieces of PIECE edges its heavy vertices, of SMALL_EDGES at most
constexpr int SMALL_EDGES = 8192;
constexpr int PIECE = 256;
#define KEEPS_PARENTS 1
constexpr int ENTER_EDGES = 4096;
constexpr int RECENT = 2 * SMALL; // places for what small levels have found; a power of 2
typedef u32 SmallEdges;
#include "search_small_frontier.cuh"

#include "search_common.cuh"

struct __align__(32) Totals { // of a level
    u64 packed;               // found vertices in the low bits, their edges in the high bits
    u64 long_rows;            // rows left to the grid
    u64 probes;               // in-edges looked at (TRACE)
};

struct Control {      // zero at launch
    Totals totals[3]; // in turn
    u64 converted;    // as `packed`, for a frontier that is turned from bitmap to queue
    GridBarrier barrier;
    u64 covered; // sources that have in-edges
    // what block 0 hands over after small levels: vertices, edges, depth, open vertices, open edges
    i64 state[5];
    i64 depth, num_visited;
};

struct Search : Rows {
    i64 m, words, max_depth;
    L* level;
    Z* value;
    u32* visited;
    u32* frontier;
    u32* next;
    I* queue;
    O* offset;
    I* next_queue;
    O* next_offset;
    Control* control;
    i64* trace; // direction, frontier, edges looked at, ns; one row a level
    u64 since;
    i64 pushed; // of a level that is pushed in parts: the edges of those before
};

union Work {
    struct {
        I found[WARPS][BATCH + 32];
        u32 lanes[WARPS][32];
    } push;
    Pull pull;
    struct {
        SmallFrontier frontier[2];
        I recent[RECENT];
    } small;
};

__shared__ Search s;
__shared__ u64 block_sum[3];
__shared__ SmallCount small_count[3];

// A barrier of all blocks. True when one of them did not come: the kernel must then return.
CALLED bool barrier_failed() { return !grid_barrier(&s.control->barrier, gridDim.x); }

// Every block exchanges the roles of its arrays, between two barriers of its threads.
DEVICE void swap_queues() {
    __syncthreads();
    if (threadIdx.x == 0) {
        swap(s.queue, s.next_queue);
        swap(s.offset, s.next_offset);
    }
    __syncthreads();
}

#include "search_vertices.cuh"

// That of vertex u's value and an edge u -> v.
DEVICE Z product(const A* values, i64 u, i64 v, i64 edge) {
    return product_of(load_relaxed(&s.value[u]), values, edge, u, v);
}

typedef I Q; // bit positions are ids
#include "search_none.cuh"

DEVICE Z in_product(Exchange, i64 u, i64 v, i64 edge) { return product(s.t_values, u, v, edge); }

#include "candidate.cuh"

DEVICE bool is_symmetric() { return s.t_indptr == s.indptr; }
DEVICE i64 words_of_pull() { return s.words; }
#include "search_driver.cuh"
