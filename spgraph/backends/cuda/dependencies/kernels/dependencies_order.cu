// The vertices of a shard sorted by level, and a cleared workspace for dependencies_shard.cu.
//
// Preamble: types I (ids), O (offsets), L (levels, as a search gives them); EXTENDED, false.

#include "dependencies_steps.cuh"
#include "dependencies_order.cuh"

// Sort the shard's own vertices: 0 to own - 1 here, from `first` on in the whole graph of n. Where they
// have more than `most` levels, control->levels says how many, and nothing is sorted. `workspace` is
// that of dependencies_shard.cu; it is cleared, but for one path to the `source`.
extern "C" __global__ void __launch_bounds__(1024, 1)
    order_shard(i64 own, i64 first, i64 n, i64 source, const O* indptr, const O* t_indptr,
                const u32* visited, L* level, i64 most, I* order, O* offset, O* t_offset,
                LevelRange* ranges, u64* count, u64* sums, double* workspace, Control* control) {
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
             ranges,
             workspace + first,
             nullptr,
             &control->overflow,
             nullptr,
             false};
    for (i64 i = thread_id(); i <= 4 * n; i += thread_count())
        workspace[i] = i == source ? 1.0 : 0.0;
    for (i64 d = thread_id(); d < most; d += thread_count()) count[d] = 0;
    if (!grid_barrier(&control->barrier, gridDim.x)) return;
    order_by_level(visited, count, most, sums, control);
}
