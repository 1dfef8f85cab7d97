// Which columns of a matrix are hubs, those that many entries have. Preamble: I (column ids).

// counts[k] = how many entries have column k; all zero before.
extern "C" __global__ void __launch_bounds__(256)
    column_counts(i64 nvals, const I* indices, u32* counts) {
    for (i64 e = thread_id(); e < nvals; e += thread_count()) atomicAdd(counts + indices[e], 1u);
}

// above[b] += how many columns have at least `least` << b entries, for each of `steps` b's.
extern "C" __global__ void __launch_bounds__(256)
    count_hubs(i64 n, const u32* counts, u32 least, int steps, u64* above) {
    // a warp takes 32 columns; all its lanes stay to the end
    for (i64 base = thread_id() & ~31ll; base < n; base += thread_count()) {
        const u32 count = base + lane_id() < n ? counts[base + lane_id()] : 0;
        for (int b = 0; b < steps; b++) {
            const u32 who = warp_ballot(count >> b >= least);
            if (!who) break;
            if (lane_id() == 0) atomicAdd(above + b, (u64)__popc(who));
        }
    }
}

// hub[k] = the number of column k among those of at least `least` entries, in any order; -1: not one.
extern "C" __global__ void __launch_bounds__(256)
    number_hubs(i64 n, const u32* counts, u32 least, u32* taken, int* hub) {
    for (i64 k = thread_id(); k < n; k += thread_count())
        hub[k] = counts[k] >= least ? (int)atomicAdd(taken, 1u) : -1;
}
