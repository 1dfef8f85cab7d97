// Distances along given paths.
// No preamble.

// distance[i, j]: the sum of the edges along parents[i] from j back to i, or to where the path ends;
// `missing` where there is none. failed[0] = 1 where parents form a cycle or are no vertices.
extern "C" __global__ void __launch_bounds__(256)
    path_lengths(const double* graph, const int* parents, i64 n, double missing, double* distance,
                 u8* failed) {
    for (i64 k = thread_id(); k < n * n; k += thread_count()) {
        const i64 i = k / n;
        i64 v = k % n, steps = 0;
        double total = 0;
        while (v != i) {
            const i64 u = parents[i * n + v];
            if (u == -9999) break;
            if (u < 0 || u >= n || steps >= n) {
                failed[0] = 1;
                break;
            }
            total += graph[u * n + v];
            v = u;
            ++steps;
        }
        distance[k] = steps == 0 && k % n != i ? missing : total;
    }
}
