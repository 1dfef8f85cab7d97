// What all forms of the search share, whatever exchange they are compiled with. Stands before the
// state, which has THREADS, I and LONG_ROW.
//
// What a form does not bring itself (tests/backends/cuda/test_one_text.py) stands in
//   search_push.cuh, search_pull.cuh   levels that push or pull, of all forms, and candidate.cuh
//   search_driver.cuh                  decisions and the trace of those that run in one launch
//   search_small_frontier.cuh, _steps  small levels of the same: one GPU and peers
//   search_shards.cuh, _shards_push    ids, queues and terms between shards: peers and rounds

#include "nth_bit.cuh"

constexpr int WARPS = THREADS / 32;
constexpr int EACH = 4; // edges a thread has in flight

enum Direction { AUTO = 0, PUSH = 1, PULL = 2 };

// The entries of a row that a pull looks at first, -1 behind the last; see leading_neighbours.cu.
struct __align__(4 * sizeof(I)) Leading {
    I id[4];
};

struct Pull { // shared memory of each warp: the bits it has found, rows that wait for it
    u32 hit[WARPS][32];
    I waiting[WARPS][64];
};
