// Rounds that pull: own open vertices look for the frontier among their in-edges.

DEVICE void enter_pull(const u64* given, const u32* frontier, const Z* frontier_value) {
    if (threadIdx.x == 0) {
        s.frontier = frontier;
        s.frontier_value = frontier_value;
    }
    enter(given);
}

// The frontier becomes visited, and the own open vertices look for it. A warp takes `batch` words at
// a time.
extern "C" __global__ void __launch_bounds__(THREADS, 1024 / THREADS)
    pull(const u64* given, const u32* frontier, const Z* frontier_value, i64 batch, L depth,
         i64 round) {
    if (threadIdx.x == 0) s.batch = batch;
    enter_pull(given, frontier, frontier_value);
    for (i64 w = thread_id(); w < PEERS * s.words; w += thread_count())
        if (frontier[w] && w / s.words != s.me) s.visited[w] |= frontier[w];
    pull_level(depth);
    publish_counts(round);
}

// The rows that `pull` has left.
extern "C" __global__ void pull_rows(const u64* given, const u32* frontier, const Z* frontier_value,
                                     i64 rows, L depth, i64 round) {
    enter_pull(given, frontier, frontier_value);
    pull_long_rows(rows, depth);
    publish_counts(round);
}
