// The least fixed point of  x = start (+) x (+.x) A, by one cooperative launch.
//
// Any order of relaxations gives the result; this one needs little work and few steps:
//   buckets    where the monoid has an order (min, max), only the vertices nearer than `limit` are
//              relaxed; the others are far. When none is near, `limit` moves on by `width`
//              (near-far, Davidson et al. 2014). There is no list of far vertices: their values say
//              which they are;
//   push       a large frontier: warps take equal shares of its edges;
//   local      a small one: every warp takes some vertices, and then the vertices that these
//              improve, for STEPS hops, before the next barrier; a road network has thousands of
//              hops;
//   threshold  while a bucket with a large share of all edges is near, products that are not better
//              than the push-pull threshold are not pushed: nearly all of them would improve
//              nothing, and each costs a look at its vertex. Then the vertices behind the
//              threshold, most of which have few edges, pull along their in-edges what was not
//              pushed to them (Chakaravarthy et al. 2014); the values of the entries tell which
//              edges cannot matter.
// The loop is in closure_resident.cuh, its decisions are in closure_decisions.cuh.
//
// A vertex enters a queue once, by its bit in `claims`; queues never hold more than n vertices.
//
// The preamble gives: I (ids), O (offsets), A (values of the matrix), Z (values of the vector), Width
// (of buckets); multiply and the monoid of common.cuh; ORDERED (0: a plain worklist), POSITIONAL
// (multiply looks at positions), PARENTS (closure_parents.cuh says what values are then), THREADS
// (of a block), BATCH.
//
// As in search.cu, loading instructions that miss their cache costs more than running them: so
// functions are not inlined, and find the state in shared memory.

#include "closure_state.cuh"
#include "closure_none.cuh"
#include "closure_improve.cuh"
#include "closure_decisions.cuh"
#include "load_balance.cuh"
#include "closure_steps.cuh"
#include "closure_buckets.cuh"
#include "closure_local.cuh"
#include "closure_pull.cuh"
#include "closure_relax.cuh"
#include "closure_resident.cuh"

__device__ __forceinline__ bool Exchange::meet_here() { return meet_blocks(); }

__device__ __forceinline__ bool Exchange::settle() {
    while (s.vertices > 0 && !is_unsettled(s.progress.rounds, s.last)) {
        BLOCK_SETS(count_round(s.progress, s.edges); consider_threshold(s, s.progress, s.edges, s);)
        relax_queue();
        if (!meet_here()) return false;
    }
    return true;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    closure(i64 n, i64 m, i64 count_bits, u64 every, const O* indptr, const I* indices,
            const A* values, const O* t_indptr, const I* t_indices, const A* t_values, u32* bits,
            u32* claims, I* queues, O* offsets, Z* x, const I* sources, const Z* source_values,
            i64 number_of_sources, Control* control, Width width, Width reach, Tie* ties) {
    if (threadIdx.x == 0) {
        const Arrays given = {m,         count_bits, every, indptr, indices, values, t_indptr,
                              t_indices, t_values,   bits,  claims, queues,  offsets};
        take_arrays(given, x, 0, n, n, control, 0);
        no_limits(s, width, reach);
        s.progress = Progress{};
        s.ties = ties;
    }
    __syncthreads();
    clear(n, x, bits, claims);
    if (!run(sources, source_values, number_of_sources)) return;
    if (Exchange::gave_up() && thread_id() == 0) control->unsettled = 1;

    if constexpr (PARENTS) return; // closure_paths follows
    const u64 reached = copy_own(x, bits, 0, n, x, bits);
    if (lane_id() == 0 && reached) atomicAdd((u64*)&control->reached, reached);
}
