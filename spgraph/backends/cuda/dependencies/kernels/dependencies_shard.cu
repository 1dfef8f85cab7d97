// Dependencies as in dependencies.cu, of a graph in shards on several devices: the steps of one level,
// a launch each.
//
// Every device keeps a workspace for all n vertices of the whole graph: two rows of paths, for even and
// for odd levels, two of shares, and a word that is not zero when some number of paths leaves float64.
// The sums of a level are added up in a row of paths: on the device that owns a vertex where edges are
// pulled along, on every device where they are pushed along. Its owner adds up those of all devices, and
// writes the vertex's value, its number of paths or its share, into the workspaces of all `shards`
// devices. Where devices cannot write into each other's workspaces `shards` is 1, and the values of a
// level travel as lists: `out`, `received`, pack and unpack.
//
// No row that is read is written in the same step: a level reads the row of the neighbouring level,
// which is the other one, and what lies there at other vertices is zero until their turn comes.
//
// Preamble: types I (ids), O (offsets), L (levels that a push looks at), S (levels of a search);
// EXTENDED, false.

#include "dependencies_steps.cuh"
#include "take.cuh"

DEVICE Team whole_grid() {
    return {(i64)warp_id() * gridDim.x + blockIdx.x, (i64)gridDim.x * warps_of_block()};
}

// Publish the levels of the shard's own vertices, as a search found them: on all devices, `at` bytes
// behind the beginning of each workspace, or in `out`.
extern "C" __global__ void publish_levels(i64 own, i64 first, const S* level, int shards,
                                          const u64* workspaces, i64 at, L* out) {
    for (i64 v = thread_id(); v < own; v += thread_count()) {
        const L mine = (L)level[v]; // -1 is the largest of unsigned types
        if (out)
            out[v] = mine;
        else
            for (int p = 0; p < shards; p++) ((L*)(workspaces[p] + at))[first + v] = mine;
    }
}

// sums[v] += x[u] over the edges of the rows v = order[from] to order[to - 1], which are the edges from
// number `begin` to `end` of `offset`.
extern "C" __global__ void __launch_bounds__(256)
    pull_level(i64 from, i64 to, i64 begin, i64 end, const O* indptr, const I* indices,
               const I* order, const O* offset, const double* x, double* sums) {
    const Puller<AllValues> worker = {indptr, offset, order, indices, {x}, sums};
    share_edges(whole_grid(), from, to, begin, end, worker);
}

// The same of those u whose bit is set in `marks`.
extern "C" __global__ void __launch_bounds__(256)
    pull_marked(i64 from, i64 to, i64 begin, i64 end, const O* indptr, const I* indices,
                const I* order, const O* offset, const double* x, double* sums, const u32* marks) {
    const Puller<MarkedValues> worker = {indptr, offset, order, indices, {x, marks}, sums};
    share_edges(whole_grid(), from, to, begin, end, worker);
}

// marks: a bit for each vertex, set where its level is `depth`.
extern "C" __global__ void mark_level(i64 n, const L* level, i64 depth, u32* marks) {
    const u64 same = 0x0101010101010101ull * (u8)depth;
    for (i64 w = thread_id(); 32 * w < n; w += thread_count()) {
        u32 bits = 0;
        if (sizeof(L) == 1 && 32 * w + 32 <= n) {
#pragma unroll
            for (int k = 0; k < 4; k++) { // the words' bytes that are zero
                const u64 x = ((const u64*)level)[4 * w + k] ^ same;
#pragma unroll
                for (int j = 0; j < 8; j++) bits |= (u32)((x >> 8 * j & 255) == 0) << (8 * k + j);
            }
        } else {
            for (int k = 0; k < 32 && 32 * w + k < n; k++)
                bits |= (u32)(level[32 * w + k] == (L)depth) << k;
        }
        marks[w] = bits;
    }
}

// The running sum of the lengths of one of `phases` equal parts of each of `rows` rows, whose edges are
// counted by `offset`, from `begin` on.
extern "C" __global__ void cut_rows(i64 rows, const O* offset, i64 begin, int phases, O* part) {
    for (i64 i = thread_id(); i <= rows; i += thread_count())
        part[i] = (O)((offset[i] - begin) / phases);
}

// pull_level in phases: the first parts of all rows, then all second parts, and so on. Columns ascend,
// so that the values that a phase reads lie close together, and in the cache. `edges`: of a phase.
extern "C" __global__ void __launch_bounds__(256)
    pull_phases(i64 rows, i64 edges, const O* indptr, const I* indices, const I* order,
                const O* part, int phases, const double* x, double* sums) {
    for (int q = 0; q < phases; q++) {
        const Puller<AllValues, true> worker = {indptr, part, order, indices, {x}, sums, q};
        share_edges(whole_grid(), 0, rows, 0, edges, worker);
    }
    for (i64 i = thread_id(); i < rows; i += thread_count()) { // the edges that rounding has left
        const I v = order[i];
        double sum = 0.0;
        for (O e = indptr[v] + phases * (part[i + 1] - part[i]); e < indptr[v + 1]; e++)
            sum += x[indices[e]];
        if (sum != 0.0) atomicAdd(sums + v, sum);
    }
}

// sums[v] += x[u] over the edges of the rows u = order[from] to order[to - 1] that lead to vertices v of
// level `depth`.
extern "C" __global__ void __launch_bounds__(256)
    push_level(i64 from, i64 to, i64 begin, i64 end, const O* indptr, const I* indices,
               const I* order, const O* offset, const double* x, double* sums, const L* level,
               i64 depth) {
    const Pusher worker = {indptr, offset, order, indices, x, 0.0, sums, level, (L)depth};
    share_edges(whole_grid(), from, to, begin, end, worker);
}

// Backward rather than forward; sums lie on all devices; values are published; values of the
// neighbouring level are read in the workspaces of their owners.
enum { BACK = 1, COLLECT = 2, PUBLISH = 4, READ = 8 };

// A level of a shard: its parameters, and where its values and those of its neighbour lie.
struct ShardLevel {
    i64 first, n, depth; // the shard's first vertex; the vertices of the whole graph
    int how, shards;
    double* const* workspaces;
    double* mine; // the shard's own workspace
    double* out;  // where workspaces are not shared: values, in the order of the level
    double* score;
    MEMBER bool back() const { return how & BACK; }
    MEMBER i64 row() const { return depth & 1; }
    MEMBER i64 sums() const { return (back() ? 1 - row() : row()) * n; }
    MEMBER i64 values() const { return (back() ? 2 + row() : row()) * n; }
    MEMBER i64 beside() const { return (back() ? 3 - row() : 1 - row()) * n; }
    // whether some number of paths leaves float64: it is known once all paths are counted
    MEMBER bool over() const { return back() && mine[4 * n] != 0.0; }
    // Write the value of vertex v, number i of the level, from its sum.
    MEMBER void settle(i64 i, I v, double sum, bool lost) const {
        const i64 at = first + v;
        double value = sum;
        if (back()) {
            const double own = mine[row() * n + at];
            value = sum + 1.0 / own;
            if (!lost) score[v] += own * sum;
        } else if (too_many(sum)) {
            for (int p = 0; p < shards; p++) workspaces[p][4 * n] = 1.0;
        }
        mine[values() + at] = value;
        if (!(how & PUBLISH)) return;
        if (out) out[i] = value;
        for (int p = 0; p < shards; p++)
            if (workspaces[p] != mine) workspaces[p][values() + at] = value;
    }
};

// The values of the vertices order[begin] to order[end - 1], of level `depth`, from their sums: paths
// forward, shares and dependencies backward. `received`: the sums, where they came as a list.
extern "C" __global__ void __launch_bounds__(256)
    settle_shard(i64 begin, i64 end, const I* order, i64 first, i64 n, i64 depth, int how,
                 int shards, double* const* workspaces, double* mine, double* out, double* score,
                 u8* report, const double* received) {
    const ShardLevel level = {first, n, depth, how, shards, workspaces, mine, out, score};
    const bool lost = level.over();
    if (report && thread_id() == 0) *report = lost;
    for (i64 i = begin + thread_id(); i < end; i += thread_count()) {
        const I v = order[i];
        const i64 at = level.sums() + first + v;
        double sum = 0.0;
        if (received)
            sum = received[i - begin];
        else if (how & COLLECT)
            for (int p = 0; p < shards; p++) sum += workspaces[p][at];
        else
            sum = mine[at];
        level.settle(i - begin, v, sum, lost);
    }
}

// The same, with a pull of the sums along the `edges` edges of the level, where these are few: groups
// of lanes take rows. Shard p owns the vertices from firsts[p] on.
extern "C" __global__ void __launch_bounds__(256)
    small_level(i64 begin, i64 end, const I* order, i64 first, i64 n, i64 depth, int how,
                int shards, double* const* workspaces, double* mine, double* out, double* score,
                u8* report, i64 edges, const O* indptr, const I* indices, const i64* firsts) {
    if (threadIdx.x == 0) s.order = const_cast<I*>(order);
    __syncthreads();
    const ShardLevel level = {first, n, depth, how, shards, workspaces, mine, out, score};
    const bool lost = level.over();
    if (report && thread_id() == 0) *report = lost;
    const i64 row = level.beside();
    gather(
        whole_grid(), indptr, indices, begin, end, edges,
        [&](const I(&u)[EACH]) {
            if (!(how & READ)) return sum_at(mine + row, u);
            double sum = 0.0;
#pragma unroll
            for (int k = 0; k < EACH; k++) {
                if (u[k] < 0) continue;
                int p = 0;
                while (p + 1 < shards && u[k] >= firsts[p + 1]) p++;
                sum += workspaces[p][row + u[k]];
            }
            return sum;
        },
        [](I) { return 0; },
        [&](i64 i, i64 v, int, double sum) { level.settle(i - begin, (I)v, sum, lost); });
}

// ---- levels as lists ----------------------------------------------------------------------------

// Join the vertices of all shards by level to one list by level. `every` has the lists of the shards,
// one after the other, as numbers within a shard: that of shard p, which owns the vertices from
// firsts[p] on, begins at lists[p]; starts[p * (levels + 1) + d] of these lie before level d, and
// targets[d * shards + p] is where those of level d go.
extern "C" __global__ void join_orders(i64 count, const I* every, int shards, i64 levels,
                                       const i64* firsts, const i64* lists, const i64* starts,
                                       const i64* targets, I* ids) {
    for (i64 i = thread_id(); i < count; i += thread_count()) {
        int p = 0;
        while (p + 1 < shards && i >= lists[p + 1]) p++;
        const i64 place = i - lists[p];
        const i64* own = starts + p * (levels + 1);
        // the last level that begins at or before `place`
        const i64 d = lower_bound(own, levels, place + 1) - 1;
        ids[targets[d * shards + p] + place - own[d]] = (I)(every[i] + firsts[p]);
    }
}

// The values of some vertices as a list.
extern "C" __global__ void pack(i64 count, const I* ids, const double* row, double* out) {
    take(count, ids, row, out);
}

// The values of some vertices from a list. `flag`, which becomes 1 where a number of paths leaves
// float64, is null where values are shares.
extern "C" __global__ void unpack(i64 count, const I* ids, const double* received, double* row,
                                  double* flag) {
    for (i64 i = thread_id(); i < count; i += thread_count()) {
        row[ids[i]] = received[i];
        if (flag && too_many(received[i])) *flag = 1.0;
    }
}
