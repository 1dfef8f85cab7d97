// A search runs in one of three forms: on one GPU (search.cu), on several that write into each other's
// memory (search_peers.cu), and in rounds that the host drives (search_rounds.cu). This is what comes
// before the state of each. What they share beside it stands in
//   search_push.cuh, search_pull.cuh   levels that push or pull, of all forms, and candidate.cuh
//   search_driver.cuh                  decisions and the trace of those that run in one launch
//   search_small_frontier.cuh, _steps  small levels of the same: one GPU and peers
//   search_shards.cuh, _shards_push    ids, queues and terms between shards: peers and rounds
//
// The preamble gives to all forms
//   I (ids), O (offsets), L (levels; between shards users' ids, too), A (matrix values), Z (search
//   values), VALUES (0: levels only), for these multiply and the monoid of common.cuh, ISO,
//   FIRST (a row's first hit decides: for `any`, and the least id over sorted rows), and LONG_ROW
//   (in-edges one warp looks at before the grid takes the row);
// to those that run in one launch
//   SMALL (capacity of a frontier in shared memory), and what search_driver.cuh names;
// to those between shards
//   PEERS (how many), THREADS, PARENTS (1: values are the users' ids of parents, the least), USES_X and
//   USES_U (what multiply looks at: the value and the id of the vertex that an edge leaves).

#include "nth_bit.cuh"

constexpr int WARPS = THREADS / 32;
constexpr int EACH = 4; // edges a thread has in flight

enum Direction { AUTO = 0, PUSH = 1, PULL = 2 };

// The entries of a row that a pull looks at first, -1 behind the last; see leading_neighbours.cu.
struct __align__(4 * sizeof(I)) Leading {
    I id[4];
};

// Where the edges of the vertices are, between shards of the own ones.
struct Rows {
    i64 count_bits; // of a number of vertices
    i64 in_edges;
    const O* indptr; // out-edges
    const I* indices;
    const A* values;
    const O* t_indptr; // in-edges
    const I* t_indices;
    const A* t_values;
    const Leading* leading; // of the rows of in-edges, or null
    // vertices with in-edges, the others can only be sources; null where nothing pulls
    const u32* nonempty;
};

struct Pull { // shared memory of each warp: the bits it has found
    u32 hit[WARPS][32];
};
