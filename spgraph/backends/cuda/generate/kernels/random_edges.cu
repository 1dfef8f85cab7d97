// Random edges straight into the rows of one shard: there is never a list of them.
//
// Every shard walks the whole stream of edges, since to generate one costs less than to fetch it
// from elsewhere would: once to count the entries of each row, once to put each entry into a slot
// of its row. Which slot is a matter of chance; the rows are sorted afterwards. The counters of a
// large graph lie scattered, so that atomics rarely collide; the largest row of a Kronecker graph
// gets a ten-thousandth of all entries.
//
// The preamble gives the functions of random_edges.CUDA_TEXT and generate_edge(state, e, p): edge e
// as row << 32 | column, where p are the parameters.

struct Ends {
    i64 row, column;
};

// The ends of edge e, relabelled unless `labels` is null.
DEVICE Ends ends_of(u64 state, u64 e, const i64* p, const int* labels) {
    const i64 key = generate_edge(state, e, p);
    const Ends ends = {key >> 32, key & 0xffffffffll};
    return labels ? Ends{labels[ends.row], labels[ends.column]} : ends;
}

// counts[v] becomes larger by the entries of row v that edges first..first + edges - 1 make.
extern "C" __global__ void count_rows(u64 state, const i64* p, u64 first, i64 edges,
                                      const int* labels, bool symmetric, bool self_loops,
                                      u64* counts) {
    for (i64 e = thread_id(); e < edges; e += thread_count()) {
        const Ends end = ends_of(state, first + e, p, labels);
        if (end.row == end.column && !self_loops) continue;
        atomicAdd(counts + end.row, 1);
        if (symmetric && end.row != end.column) atomicAdd(counts + end.column, 1);
    }
}

// Puts the columns of all entries whose rows are the shard's, places from..from + rows - 1, into
// free slots; next[r] is the next of row r. `places` says where a vertex's row is, unless it is
// null.
extern "C" __global__ void place_columns(u64 state, const i64* p, u64 first, i64 edges,
                                         const int* labels, bool symmetric, bool self_loops,
                                         const int* places, i64 from, i64 rows, u64* next,
                                         int* columns) {
    for (i64 e = thread_id(); e < edges; e += thread_count()) {
        const Ends end = ends_of(state, first + e, p, labels);
        if (end.row == end.column && !self_loops) continue;
        const u64 row = (places ? places[end.row] : end.row) - from;
        if (row < (u64)rows) columns[atomicAdd(next + row, 1)] = (int)end.column;
        if (!symmetric || end.row == end.column) continue;
        const u64 mirror = (places ? places[end.column] : end.column) - from;
        if (mirror < (u64)rows) columns[atomicAdd(next + mirror, 1)] = (int)end.row;
    }
}
