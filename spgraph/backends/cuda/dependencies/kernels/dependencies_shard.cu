// Dependencies as in dependencies.cu, of a graph in blocks of vertices on several devices: the steps of
// one level, a launch each.
//
// Every device keeps a room for all n vertices of the whole: two rows of paths, for even and for odd
// levels, two of shares, and a word that is not zero when some vertex has more paths than float64 can
// tell. A level's sums come together in a row of paths, on the device that owns a vertex where its edges
// are pulled along, on every device where edges are pushed along; its owner then adds those up, and
// writes what the vertex is worth into the rooms of all `parts` devices. Where devices do not reach each
// other's rooms `parts` is 1, and levels travel as lists of values: `out`, `came`, pack and unpack.
//
// No row that is read is written in the same step: a level reads the row of the level beside it, which
// is the other one, and what lies there at further vertices is zero until their turn comes.
//
// Preamble: types I (ids), O (offsets), L (levels that a push looks at), S (levels of a search);
// EXTENDED, false.

#include "dependencies_steps.cuh"

DEVICE Team whole_grid() {
    return {(i64)warp_id() * gridDim.x + blockIdx.x, (i64)gridDim.x * warps_of_block()};
}

// The levels of the block's own vertices, from a search's, for all devices: `at` bytes behind the
// beginning of a room, or in `out`.
extern "C" __global__ void give_levels(i64 own, i64 first, const S* level, int parts,
                                       const u64* rooms, i64 at, L* out) {
    for (i64 v = thread_id(); v < own; v += thread_count()) {
        const L mine = (L)level[v]; // -1 is the largest of unsigned types
        if (out)
            out[v] = mine;
        else
            for (int p = 0; p < parts; p++) ((L*)(rooms[p] + at))[first + v] = mine;
    }
}

// sums[v] += x[u] over the edges `begin` to `end` of the rows order[from] to order[to - 1], which are v's.
extern "C" __global__ void __launch_bounds__(256)
    pull_level(i64 from, i64 to, i64 begin, i64 end, const O* indptr, const I* indices,
               const I* order, const O* offset, const double* x, double* sums) {
    const Puller<AnyWorth> worker = {indptr, offset, order, indices, {x}, sums};
    share_edges(whole_grid(), from, to, begin, end, worker);
}

// The same of marked u alone.
extern "C" __global__ void __launch_bounds__(256)
    pull_marked(i64 from, i64 to, i64 begin, i64 end, const O* indptr, const I* indices,
                const I* order, const O* offset, const double* x, double* sums, const u32* marks) {
    const Puller<MarkedWorth> worker = {indptr, offset, order, indices, {x, marks}, sums};
    share_edges(whole_grid(), from, to, begin, end, worker);
}

// Marks of the vertices of level `depth`.
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

// Where the parts of `rows` rows begin if each is cut into `phases` of them; offset[0] is number `begin`.
extern "C" __global__ void cut_rows(i64 rows, const O* offset, i64 begin, int phases, O* part) {
    for (i64 i = thread_id(); i <= rows; i += thread_count())
        part[i] = (O)((offset[i] - begin) / phases);
}

// pull_level for rows so long that all first parts are walked, then all second ones, and so on: columns
// ascend, so that what is looked up together lies together, and in the cache.
extern "C" __global__ void __launch_bounds__(256)
    pull_phases(i64 rows, i64 parts, const O* indptr, const I* indices, const I* order,
                const O* part, int phases, const double* x, double* sums) {
    for (int q = 0; q < phases; q++) {
        const Puller<AnyWorth, true> worker = {indptr, part, order, indices, {x}, sums, q};
        share_edges(whole_grid(), 0, rows, 0, parts, worker);
    }
    for (i64 i = thread_id(); i < rows; i += thread_count()) { // what rounding has left
        const I v = order[i];
        double sum = 0.0;
        for (O e = indptr[v] + phases * (part[i + 1] - part[i]); e < indptr[v + 1]; e++)
            sum += x[indices[e]];
        if (sum != 0.0) atomicAdd(sums + v, sum);
    }
}

// sums[v] += x[u] over the edges of the rows that are u's, to vertices v of level `depth`.
extern "C" __global__ void __launch_bounds__(256)
    push_level(i64 from, i64 to, i64 begin, i64 end, const O* indptr, const I* indices,
               const I* order, const O* offset, const double* x, double* sums, const L* level,
               i64 depth) {
    const Pusher worker = {indptr, offset, order, indices, x, sums, level, (L)depth, 0.0};
    share_edges(whole_grid(), from, to, begin, end, worker);
}

// Backward; sums lie on all devices; values go to all; values are read where their owners keep them.
enum { BACK = 1, COLLECT = 2, GIVE = 4, READ = 8 };

// What all vertices of a level have in common.
struct BlockLevel {
    i64 first, n, depth; // of the block's vertices the first; those of the whole
    int how, parts;
    double* const* rooms;
    double* mine; // the block's own room
    double* out;  // where rooms are not shared: values, in the order of the level
    double* score;
    __device__ __forceinline__ bool back() const { return how & BACK; }
    __device__ __forceinline__ i64 row() const { return depth & 1; }
    __device__ __forceinline__ i64 sums() const { return (back() ? 1 - row() : row()) * n; }
    __device__ __forceinline__ i64 values() const { return (back() ? 2 + row() : row()) * n; }
    __device__ __forceinline__ i64 beside() const { return (back() ? 3 - row() : 1 - row()) * n; }
    // some vertex has more paths than float64 can tell; which is known when paths are
    __device__ __forceinline__ bool over() const { return back() && mine[4 * n] != 0.0; }
    // What `sum` makes of vertex v, number i of the level.
    __device__ __forceinline__ void settle(i64 i, I v, double sum, bool lost) const {
        const i64 at = first + v;
        double value = sum;
        if (back()) {
            const double own = mine[row() * n + at];
            value = sum + 1.0 / own;
            if (!lost) score[v] += own * sum;
        } else if (too_many(sum)) {
            for (int p = 0; p < parts; p++) rooms[p][4 * n] = 1.0;
        }
        mine[values() + at] = value;
        if (!(how & GIVE)) return;
        if (out) out[i] = value;
        for (int p = 0; p < parts; p++)
            if (rooms[p] != mine) rooms[p][values() + at] = value;
    }
};

// What the vertices order[begin] to order[end - 1], of level `depth`, are worth, when their sums are
// there: paths forward, shares and dependencies back. `came` are sums that came as a list.
extern "C" __global__ void __launch_bounds__(256)
    settle_block(i64 begin, i64 end, const I* order, i64 first, i64 n, i64 depth, int how,
                 int parts, double* const* rooms, double* mine, double* out, double* score,
                 u8* report, const double* came) {
    const BlockLevel level = {first, n, depth, how, parts, rooms, mine, out, score};
    const bool lost = level.over();
    if (report && thread_id() == 0) *report = lost;
    for (i64 i = begin + thread_id(); i < end; i += thread_count()) {
        const I v = order[i];
        const i64 at = level.sums() + first + v;
        double sum = 0.0;
        if (came)
            sum = came[i - begin];
        else if (how & COLLECT)
            for (int p = 0; p < parts; p++) sum += rooms[p][at];
        else
            sum = mine[at];
        level.settle(i - begin, v, sum, lost);
    }
}

// The same with what comes along the `edges` edges of the level, if these are few: groups of lanes take
// rows. Block p owns the vertices from firsts[p] on.
extern "C" __global__ void __launch_bounds__(256)
    small_level(i64 begin, i64 end, const I* order, i64 first, i64 n, i64 depth, int how, int parts,
                double* const* rooms, double* mine, double* out, double* score, u8* report,
                i64 edges, const O* indptr, const I* indices, const i64* firsts) {
    if (threadIdx.x == 0) s.order = const_cast<I*>(order);
    __syncthreads();
    const BlockLevel level = {first, n, depth, how, parts, rooms, mine, out, score};
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
                while (p + 1 < parts && u[k] >= firsts[p + 1]) p++;
                sum += rooms[p][row + u[k]];
            }
            return sum;
        },
        [](I) { return 0; },
        [&](i64 i, i64 v, int, double sum) { level.settle(i - begin, (I)v, sum, lost); });
}

// ---- levels as lists ----------------------------------------------------------------------------

// The vertices that the blocks own, block after block and each by level, as one list by level. Block p
// owns those from firsts[p] on, and lists[p] is where its own begin in `every`; starts[p * (levels + 1)
// + d] of these lie before level d, and targets[d * parts + p] is where that level's go.
extern "C" __global__ void join_orders(i64 count, const I* every, int parts, i64 levels,
                                       const i64* firsts, const i64* lists, const i64* starts,
                                       const i64* targets, I* ids) {
    for (i64 i = thread_id(); i < count; i += thread_count()) {
        int p = 0;
        while (p + 1 < parts && i >= lists[p + 1]) p++;
        const i64 place = i - lists[p];
        const i64* own = starts + p * (levels + 1);
        // the last level that begins at or before `place`
        const i64 d = lower_bound(own, levels, place + 1) - 1;
        ids[targets[d * parts + p] + place - own[d]] = (I)(every[i] + firsts[p]);
    }
}

extern "C" __global__ void pack(i64 count, const I* ids, const double* row, double* out) {
    for (i64 i = thread_id(); i < count; i += thread_count()) out[i] = row[ids[i]];
}

// `flag` is null where values are not numbers of paths.
extern "C" __global__ void unpack(i64 count, const I* ids, const double* came, double* row,
                                  double* flag) {
    for (i64 i = thread_id(); i < count; i += thread_count()) {
        row[ids[i]] = came[i];
        if (flag && too_many(came[i])) *flag = 1.0;
    }
}
