// What all forms of the search share, whatever exchange they are compiled with. Stands before the
// state, which has THREADS, I and LONG_ROW.

#include "nth_bit.cuh"

constexpr int WARPS = THREADS / 32;
constexpr int EACH = 4; // edges a thread has in flight

enum Direction { AUTO = 0, PUSH = 1, PULL = 2 };

#define CALLED static __device__ __noinline__

// The entries of a row that a pull looks at first, -1 behind the last; see leading_neighbours.cu.
struct __align__(4 * sizeof(I)) Leading {
    I id[4];
};

struct Pull { // shared memory of each warp: the bits it has found, rows that wait for it
    u32 hit[WARPS][32];
    I waiting[WARPS][64];
};
