// The vertices that a block of a graph owns, by level; and room for what dependencies_shard.cu adds up.
//
// Preamble: types I (ids), O (offsets), L (levels, as a search gives them); EXTENDED, false.

#include "dependencies_steps.cuh"
#include "dependencies_order.cuh"

// The block's own vertices are 0 to own - 1 here, `first` and on in the whole of n. Their levels are
// counted up to `most`: where there are more, control->levels says so and nothing is arranged. `room` is
// as in dependencies_shard.cu, with one path to the `source`.
extern "C" __global__ void __launch_bounds__(1024, 1)
    arrange_block(i64 own, i64 first, i64 n, i64 source, const O* indptr, const O* t_indptr,
                  const u32* seen, L* level, i64 most, I* order, O* offset, O* t_offset,
                  Rung* rungs, u64* count, u64* sums, double* room, Control* control) {
    if (threadIdx.x == 0)
        s = {own,
             indptr,
             nullptr,
             t_indptr,
             nullptr,
             level,
             order,
             offset,
             t_offset,
             rungs,
             room + first,
             nullptr,
             &control->overflow,
             false};
    for (i64 i = thread_id(); i <= 4 * n; i += thread_count()) room[i] = i == source ? 1.0 : 0.0;
    for (i64 d = thread_id(); d < most; d += thread_count()) count[d] = 0;
    if (!grid_barrier(&control->barrier, gridDim.x)) return;
    arrange(seen, count, most, sums, control);
}
