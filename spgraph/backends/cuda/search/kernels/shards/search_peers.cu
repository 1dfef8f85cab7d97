// A breadth-first search over the GPUs of one host: shard p of the vertices, its out-edges and
// its in-edges lie on GPU p, and one cooperative kernel on each runs all levels; see peers.cuh.
//
// Every GPU has the bitmap of the whole frontier, in which each shard begins at a word of its own,
// and all take the same decisions, from sums that they exchange when they meet. A level takes one
// of three forms:
//   pull   a GPU looks for the frontier among the in-edges of its open vertices, and writes its
//          part of the next frontier into the memory of all peers: one barrier;
//   push   it takes the out-edges of its part of the frontier, gathers what they reach in a bitmap,
//          with the sum of its products with each, and sends each peer its words and sums; each then
//          settles what has arrived and is new: two barriers;
//   small  thread block 0 alone runs level after level in shared memory and sends each peer the
//          peer's vertices that it has reached, as a list. It meets only the blocks 0 of the peers,
//          once a level: what arrives is looked at in the next level, and sizes are known a level
//          late. A level that turns out to be too large is done again in another form: a push takes
//          the list as its queue.
//
// Where multiply looks at the value of the vertex that an edge leaves, a pull begins with those of
// the frontier, which go to all peers: one barrier more.
//
// The preamble is that of search_common.cuh, and PADDED (bit positions are not ids).

#include "peers.cuh"
#include "search_common.cuh"
#include "given.cuh"

constexpr bool TRACE = true; // what a pull looks at is counted; rows are written where wanted
constexpr int SMALL_EDGES =
    8 * SMALL; // a small level with more edges than this is done by the grid
constexpr int ENTER_EDGES = 2 * SMALL;
constexpr int PIECE = 128;
#define KEEPS_PARENTS 0 // a neighbour has its number in the whole graph, a parent that in the shard
typedef u64 SmallEdges;
#include "search_small_frontier.cuh"

// What GPU p sends GPU q in small levels: one of q's vertices, and the product of an edge to it.
struct __align__(2 * (sizeof(Z) > sizeof(L) ? sizeof(Z) : sizeof(L))) Message {
    L vertex;
    Z product;
};

struct Control {   // of one GPU
    u64 packed;    // length and edges of the queue
    u64 long_rows; // rows that a pull leaves to the grid
    // what block 0 hands over after small levels; done may be LOST. If `queued`, the frontier of
    // this GPU is visited and lies in the queue; else it is claimed only
    i64 depth, left, open, vertices, edges, done, queued;
    u64 filled; // 1: the partial sums are nothing(), 0: they are zero
};

// What search_peers.py writes, in fields of 8 bytes.
struct Given : Rows {
    i64 me;
    i64 first[PEERS + 1], word[PEERS + 1]; // where shards begin: their vertices, their words
    i64 base, words;                       // the place of the first own word, how many there are
    u64 memory[PEERS];                     // of all GPUs
    i64 m, findable, symmetric;            // of the whole graph: edges, vertices with in-edges
    i64 warps;    // of the smallest grid: what words each takes at a time is the same on all GPUs
    const L* ids; // users' ids of all vertices, or null: the same
    // the own memory: first what peers write, at the same place in all
    Inbox* inbox;
    u32 *frontier, *next; // the bitmaps of all vertices
    Message* messages;
    u32* received;
    Z *partials, *frontier_value; // frontier_value: by bit position, of the frontier of a pull
    PeerBarrier* barrier;
    Control* control;
    // the next two are all zero when a launch begins and when it ends
    u32* visited;      // own part: visited; others': those that this GPU has heard of or sent there
    u32* visited_next; // that, and what this level reaches
    Z* partial;        // by bit position, of what this level reaches; else nothing()
    I* queue;          // own frontier
    O* offset;         // its degrees scanned
};

struct Search : Given {
    L* level; // results
    Z* value;
    i64* trace; // direction, frontier, edges looked at, ns; one row a level
    u64 since;
    // own ones, with their values: arrays, or one that the launch brings
    i64 number;
    const I* sources;
    const Z* source_values;
    I source;
    Z source_value;
};

union Work {
    Pull pull;
    u32 lanes[WARPS][32];
    SmallFrontier small[2];
};

__shared__ Search s;
__shared__ u64 block_sum[WORDS_SENT];

DEVICE bool is_symmetric() { return s.symmetric; }
DEVICE i64 words_of_pull() { return 0; } // an exchange, which a push needs, too, costs more
#include "search_driver.cuh"

DEVICE i64 first_word(int q) { return s.word[q]; }
// This GPU's part of the sums of the next barrier_all.
DEVICE u64* counts() { return s.barrier->mine; }
typedef I Q; // ids have room for bit positions
#include "search_shards.cuh"

DEVICE I source_at(i64 i) { return s.sources ? s.sources[i] : s.source; }
DEVICE Z value_at(i64 i) { return s.sources ? s.source_values[i] : s.source_value; }
// What the last level has claimed of own word w.
DEVICE u32 claimed_bits(i64 w) { return s.visited_next[s.base + w] & ~s.visited[s.base + w]; }

// Warps take these many neighbouring words of a part at a time: at most 32, equally often.
DEVICE i64 words_at_a_time(i64 words) {
    const i64 rounds = (words + 32 * s.warps - 1) / (32 * s.warps);
    return rounds ? (words + rounds * s.warps - 1) / (rounds * s.warps) : 1;
}

#include "search_peers_exchange.cuh"
#include "candidate.cuh"
#include "search_pull.cuh"

#include "search_shards_push.cuh"
#include "search_peers_levels.cuh"
#include "search_peers_push.cuh"
#include "search_peers_small.cuh"

// The sources are claimed as level 0.
CALLED void claim_sources() {
    for (i64 i = thread_id(); i < s.number; i += thread_count()) {
        const I v = source_at(i);
        s.level[v] = 0;
        if (VALUES) s.value[v] = value_at(i);
        atomicOr(&s.visited_next[s.base + (v >> 5)], 1u << (v & 31));
    }
}

#if VALUES
// The partial sums begin as none: memory that is new is zero.
CALLED void clear_partials() {
    for (i64 p = thread_id(); p < 32 * s.word[PEERS]; p += thread_count()) s.partial[p] = nothing();
}
#endif

// The result of a launch that did not come to its end.
DEVICE void leave(i64* result) {
    if (thread_id() == 0) result[2] = (i64)load_acquire_system(&inbox_of(peers.me)->lost);
}

// result: vertices visited, levels, and 0 or what was lost. `all_sources` are those of all GPUs.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    search_peers(const u64* given, L* level, Z* value, u32* visited, u32* visited_copy, i64* result,
                 const I* sources, const Z* values, i64 source, i64 source_value, i64 number,
                 i64 all_sources, int direction, i64 max_depth, u64 limit, i64* trace) {
    if (!given) return; // a first launch, so that the next one finds everything loaded
    read_given(static_cast<Given&>(s), given);
    set_peers(s.memory, s.me, s.barrier, limit);
    if (threadIdx.x == 0) {
        s.level = level;
        s.value = value;
        s.trace = trace;
        s.sources = sources;
        s.source_values = values;
        s.source = (I)source;
        s.source_value = from_bits<Z>((Bits<Z>)source_value);
        s.number = number;
        s.since = globaltimer();
    }
    const i64 thread = thread_id(), threads = thread_count();
    if (thread < 3) result[thread] = thread == 2 ? -1 : 0;
    __syncthreads();
    if (load_acquire_system(&inbox_of(peers.me)->lost)) return leave(result);
    Control* const control = s.control;

#if VALUES
    if (to_bits(nothing()) && !load_relaxed(&control->filled)) {
        clear_partials();
        if (barrier_local() == LOST) return leave(result);
        if (thread == 0) control->filled = 1;
    }
#endif

    i64 depth = 0, nf = all_sources, mf = 0, left = s.findable, open = s.m;
    bool small = all_sources <= ENTER && direction != PULL, from_sources = true;
    bool claimed = false; // the frontier is claimed by its owners, and no bitmap yet
    bool pushed = true;   // the last level was
    if (!small) {
        claim_sources();
        if (barrier_local() == LOST) return leave(result);
        announce();
        if (barrier_all() == LOST) return leave(result);
        swap_frontiers();
        mf = (i64)peers.total[1];
        left -= (i64)peers.total[2];
        open -= mf;
    }
    while (small || (nf > 0 && mf > 0 && left > 0 && depth < max_depth)) {
        bool queued = false;
        if (small) {
            if (blockIdx.x == 0)
                small_levels(from_sources, all_sources, depth, left, open, max_depth, direction);
            if (barrier_local() == LOST) return leave(result);
            const Control* const now = control;
            depth = load_relaxed(&now->depth);
            left = load_relaxed(&now->left);
            open = load_relaxed(&now->open);
            nf = load_relaxed(&now->vertices);
            mf = load_relaxed(&now->edges);
            const i64 done = load_relaxed(&now->done);
            if (done == LOST) return leave(result);
            if (done) break;
            queued = load_relaxed(&now->queued);
            claimed = !queued;
        }
        from_sources = false;
        const Form form = form_of_level(direction, pushed, small, nf, mf, left, open);
        const bool pull = form.pull;
        small = form.small;
        pushed = !pull;
        if (pull && claimed) {
            announce();
            if (barrier_all() == LOST) return leave(result);
            swap_frontiers();
        }
#if USES_X
        if (pull) {
            publish_values();
            if (barrier_all() == LOST) return leave(result);
        }
#endif
        if (!pull) {
            if (!queued) {
                convert(claimed, nf);
                if (barrier_local() == LOST) return leave(result);
            }
            if (small) continue;
            push_level(load_relaxed(&control->packed), 2 * left > s.findable);
            if (barrier_local() == LOST) return leave(result);
            send_claims();
            if (barrier_all() == LOST) return leave(result);
        }
        claimed = false;
        if (pull)
            pull_level((L)(depth + 1));
        else
            settle((L)(depth + 1));
        if (barrier_all() == LOST) return leave(result);
        i64 found = (i64)peers.total[0], edges = (i64)peers.total[1];
        i64 probes = (i64)peers.total[2];
        if (peers.total[3]) { // some GPU has left rows to all of its blocks
            const i64 rows = (i64)load_relaxed(&control->long_rows);
            pull_long_rows(rows, (L)(depth + 1));
            if (barrier_local() == LOST) return leave(result);
            publish_long_rows(rows);
            if (barrier_all() == LOST) return leave(result);
            found += (i64)peers.total[0];
            edges += (i64)peers.total[1];
            probes += (i64)peers.total[2];
        }
        swap_frontiers();
        if (thread == 0) record(depth, pull ? PULL : PUSH, nf, pull ? probes : mf);
        nf = found;
        mf = edges;
        left -= nf;
        open -= mf;
        depth++;
    }
    u64 num_visited = 0;
    for (i64 at = thread; at < s.word[PEERS]; at += threads) {
        const i64 w = at - s.base;
        if (w >= 0 && w < s.words) {
            const u32 bits = load_relaxed(&s.visited[at]);
            visited[w] = bits;
            if (VALUES) visited_copy[w] = bits;
            num_visited += __popc(bits);
        }
        s.visited[at] = s.visited_next[at] = 0; // as the next launch wants them
    }
    if (threadIdx.x == 0) block_sum[0] = 0;
    __syncthreads();
    warp_add(&block_sum[0], num_visited);
    __syncthreads();
    if (threadIdx.x == 0 && block_sum[0]) atomicAdd((u64*)&result[0], block_sum[0]);
    if (thread == 0) {
        control->packed = control->long_rows = 0;
        result[1] = depth;
        result[2] = (i64)load_acquire_system(&inbox_of(peers.me)->lost);
    }
}
