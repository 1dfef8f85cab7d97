// Distances and parents, from what closure.cu finds with PARENTS. Its preamble, and MOST.

#include "closure_state.cuh"

// Distances, the least parents, and a bit for each vertex that has both; the parent of the source is
// itself. `others` gets (v, u) for each other parent u of v, from its second element on: beyond MOST
// they are counted only.
extern "C" __global__ void __launch_bounds__(256)
    closure_paths(i64 n, const Z* x, const I* source, const Tie* ties, Control* control,
                  float* distance, I* parent, u32* bits, u32* parent_bits, I* others) {
    const I root = *source;
    u64 reached = 0;
    for (i64 base = thread_id() - lane_id(); base < n; base += thread_count()) {
        const i64 v = base + lane_id();
        const Z value = v < n ? x[v] : identity();
        const u32 here = warp_ballot(value != identity());
        if (v < n) {
            distance[v] = value == identity() ? from_bits<float>(0x7f800000u) : distance_of(value);
            parent[v] = v == root ? root : parent_of(value);
        }
        if (lane_id() == 0) bits[base >> 5] = parent_bits[base >> 5] = here;
        reached += __popc(here);
    }
    if (lane_id() == 0 && reached) atomicAdd((u64*)&control->reached, reached);
    const i64 noted = control->ties < MOST_TIES ? control->ties : MOST_TIES;
    for (i64 k = thread_id(); k < noted; k += thread_count()) {
        const Tie tie = ties[k];
        if (x[tie.vertex] >> 32 != tie.value >> 32) continue;
        const u32 place = atomicAdd(&control->others, 1u);
        if (place >= MOST) continue;
        others[1 + 2 * place] = tie.vertex;
        others[2 + 2 * place] = parent_of(tie.value);
    }
}
