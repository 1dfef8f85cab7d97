// The leading neighbours of all rows: four entries of each that a pull looks at first, side by side, -1
// behind the last.
//
// A search that pulls looks for any entry of a row that lies in its frontier. The rows of a large
// graph lie scattered over gigabytes, and each new page costs an address translation; four ids a
// row fit in a few pages, and decide most rows.
//
// The preamble gives I (ids), O (offsets), HUBS (1: the entries of largest degree; 0: the row's
// first entries).

// entries of a row among which hubs are chosen: enough to find some, never a long row's cost
constexpr int CANDIDATES = 64;

extern "C" __global__ void leading_neighbours(i64 n, const O* indptr, const I* indices,
                                              const O* degree_indptr, I* out) {
    for (i64 v = thread_id(); v < n; v += thread_count()) {
        const O begin = indptr[v], end = indptr[v + 1];
        I id[4] = {-1, -1, -1, -1};
#if HUBS
        O degree[4] = {-1, -1, -1, -1};
        for (O e = begin; e < end && e < begin + CANDIDATES; e++) {
            I u = indices[e];
            O d = degree_indptr[u + 1] - degree_indptr[u];
#pragma unroll
            for (int k = 0; k < 4; k++) // insertion: ids of equal degree stay in their order
                if (d > degree[k]) {
                    const O other_degree = degree[k];
                    const I other = id[k];
                    degree[k] = d;
                    id[k] = u;
                    d = other_degree;
                    u = other;
                }
        }
#else
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (begin + k < end) id[k] = indices[begin + k];
#endif
#pragma unroll
        for (int k = 0; k < 4; k++) out[4 * v + k] = id[k];
    }
}
