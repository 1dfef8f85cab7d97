// The power iteration x <- f(A, x) until x changes by at most a tolerance: one cooperative launch for all
// iterations, of one block of 1024 threads a multiprocessor. For graphs whose iterations are short;
// others use power_stepwise.cu.
//
// A hop is a product: y[i] = the sum of A[i, k] * u[k] over row i, u being the values of x times a
// scale. An iteration is one hop or two, then
//     z = factor * y + keep * x + (teleport + dangling * mass) * restart,    x = z / norm(z)
// where mass, the dangling mass, is the sum of the x whose scale is zero. Without a norm all of this is
// computed where a row is summed, so that an iteration has one barrier (1.2 us); u has two buffers for
// that. With a norm there is one barrier more.
//
// The time of such an iteration is that of loads which wait for each other, and of barriers. So a
// warp loads the entries of its next task (warp_tasks.cuh) and what belongs to its rows before it
// waits for what it gathers; tasks are dealt over all blocks in turn, so that warps get about as many
// entries each; and rows in pieces are added up at the end, by warps that wait for these pieces
// alone. Where 32 lanes gather from as many places, the cache takes as many cycles: so the values of
// hubs, the columns that most entries have, are copied into the shared memory of every block first.
//
// A first call waits for the compiler. So that there is little to compile, one program serves all
// numbers of hops and all norms, there is one place that a row's sum goes to, and loops that take no
// time are not unrolled.
//
// Preamble: as gather.cuh (FULL, not MASKED, Z double, plus); HUBS: whether there are any.

#include "gather.cuh"
#include "power_sums.cuh"
#include "warp_tasks.cuh"

// Steps of a task whose gathers are in flight at a time.
constexpr int IN_FLIGHT = 4;

// As power.py writes it: one 64-bit word each.
struct Hop {
    const Task* tasks;
    i64 count;          // below 2^31, as are the rows
    const int* columns; // of the entries, in the order of tasks
    const A* values;    // of the entries; ISO: one
    const int* rows;    // short ones
    const Split* splits;
    i64 split;       // how many rows are
    u32* arrived;    // how many pieces of each split row are summed; all zero at a barrier but the
                     // first
    double* partial; // the sums of pieces, by the numbers of their tasks
    i64 scale_mask;  // vertex i has scale[i & scale_mask], so that one may stand for all
    const double* scale;
    U* u;          // what the hop gathers; two buffers if it is the first
    i64 width;     // of a buffer: the values of all vertices, from hub_start on again those of hubs
    i64 hub_start; // their places are aligned to 16 bytes
    i64 hubs;      // how many there are
    const int* hub; // of each vertex its number among them, -1 for none; null without hubs
};
DEVICE int hub_of(const Hop& hop, i64 i) { return HUBS && hop.hub ? hop.hub[i] : -1; }
// One buffer of what a hop gathers has this value of vertex i, hub number `hub` if that is not -1.
DEVICE void store_gathered(const Hop& hop, U* u, i64 i, int hub, U value) {
    u[i] = value;
    if (HUBS && hub >= 0) u[hop.hub_start + hub] = value;
}
// All threads of the block call, after all have met behind the last use of `hubs`.
DEVICE void load_hubs(const Hop& hop, const U* u, Quad* hubs) {
    const Quad* from = reinterpret_cast<const Quad*>(u + hop.hub_start);
    const int quads = (int)((hop.hubs * sizeof(U) + 15) / 16);
#pragma unroll 1
    for (int k = threadIdx.x; k < quads; k += blockDim.x) copy_quad(hubs + k, from + k);
    copies_done();
    __syncthreads();
}

struct Constants {
    double factor, keep, teleport, dangling;
};

// What is known of a row's vertex besides the row: its value, if somebody asks for it, and the scale
// and the place of what is gathered next.
struct Vertex {
    double before, scale;
    int hub;
};

DEVICE Task task_at(const Hop& hop, i64 t) {
    return t < hop.count ? hop.tasks[t] : Task{0, 0, -1, WHOLE};
}
// The row whose sum this lane gets; -1 for none.
DEVICE int row_of(const Hop& hop, const Task& task) {
    if (task.kind == ROWS) return hop.rows[task.target + lane_id()];
    return task.kind == WHOLE && lane_id() == 0 ? task.target : -1;
}
DEVICE void load_columns(const Hop& hop, const Task& task, int from, int (&columns)[IN_FLIGHT]) {
    const int* p = hop.columns + ((i64)task.first + from) * 32 + lane_id();
#pragma unroll
    for (int j = 0; j < IN_FLIGHT; j++)
        columns[j] = from + j < task.steps ? load_once(p + 32 * j) : NONE;
}
// The products of the entries in `columns`, which are those of a task from step `from` on.
struct Gathered {
    U y[IN_FLIGHT];
    A x[IN_FLIGHT];
};
DEVICE void gather_columns(const Hop& hop, const Task& task, int from,
                           const int (&columns)[IN_FLIGHT], const U* u, const U* hubs,
                           Gathered& g) {
    const A* p = hop.values + ((i64)task.first + from) * 32 + lane_id();
#pragma unroll
    for (int j = 0; j < IN_FLIGHT; j++) {
        g.y[j] = columns[j] >= 0             ? u[columns[j]]
                 : HUBS && columns[j] < NONE ? hubs[hub_entry(columns[j])]
                                             : (U)0;
        if (!ISO) g.x[j] = from + j < task.steps ? load_once(p + 32 * j) : (A)0;
    }
}
DEVICE double add_gathered(double sum, A one, const int (&columns)[IN_FLIGHT], const Gathered& g) {
#pragma unroll
    for (int j = 0; j < IN_FLIGHT; j++)
        if (columns[j] != NONE) sum += product(0, 0, ISO ? one : g.x[j], g.y[j]);
    return sum;
}

// The sum of a split row in all lanes, from those of its pieces: waits for whoever has one of them.
DEVICE double join_pieces(const Hop& hop, i64 s, const Split& split) {
    if (lane_id() == 0) {
        u32* arrived = hop.arrived + s;
        while (load_acquire(arrived) != (u32)split.pieces) __nanosleep(20);
        store_relaxed(arrived, 0u);
        __threadfence();
    }
    warp_sync();
    double sum = 0;
#pragma unroll 4
    for (int p = lane_id(); p < split.pieces; p += 32)
        sum += load_relaxed(hop.partial + split.first + p);
    return warp_sum(sum);
}

// done(i, vertex, sum) for every row i, `vertex` being look(i). Which warp calls it is the same in
// every run: what is added up over rows is, too. All blocks call; none waits for another before all
// of its own warps have published their pieces, so that no two wait for each other.
template <class Look, class Done>
DEVICE void for_rows(const Hop& hop, const U* u, Quad* shared, Look look, Done done) {
    const U* hubs = reinterpret_cast<const U*>(shared);
    if (HUBS && hop.hubs) load_hubs(hop, u, shared);
    const int stride = (int)(thread_count() >> 5), count = (int)hop.count;
    const A one =
        ISO && hop.values ? hop.values[0] : (A)0; // a matrix without entries may have none
    int t = warp_id() * (int)gridDim.x + (int)blockIdx.x, from = 0;
    Task task = task_at(hop, t), next = task_at(hop, (i64)t + stride);
    int columns[IN_FLIGHT], i = row_of(hop, task);
    load_columns(hop, task, 0, columns);
    Vertex vertex = {0, 0, -1};
    double sum = 0;
#pragma unroll 1
    while (t < count) {
        Gathered g;
        int later[IN_FLIGHT];
        gather_columns(hop, task, from, columns, u, hubs, g);
        // all of these are under way before the first gathered value is waited for
        if (from == 0 && i >= 0) vertex = look(i);
        const bool more = from + IN_FLIGHT < task.steps;
        from = more ? from + IN_FLIGHT : 0;
        load_columns(hop, more ? task : next, from, later);
        sum = add_gathered(sum, one, columns, g);
#pragma unroll
        for (int j = 0; j < IN_FLIGHT; j++) columns[j] = later[j];
        if (more) continue;
        const Task after = task_at(hop, (i64)t + 2 * stride);
        const int below = row_of(hop, next);
        if (task.kind != ROWS) sum = warp_sum(sum);
        if (task.kind == PART && lane_id() == 0) {
            store_relaxed(hop.partial + t, sum);
            __threadfence();
            atomicAdd(hop.arrived + task.target, 1u);
        }
        if (i >= 0) done((i64)i, vertex, sum);
        warp_sync();
        t += stride; // fewer than 2^27: tasks have 32 rows or entries of a row
        task = next;
        next = after;
        i = below;
        sum = 0;
    }
    if (hop.split == 0) return;
    __syncthreads();
#pragma unroll 1
    for (i64 s = (i64)warp_id() * gridDim.x + blockIdx.x; s < hop.split; s += stride) {
        const Split split = hop.splits[s];
        sum = join_pieces(hop, s, split);
        if (lane_id() == 0) done((i64)split.row, look((i64)split.row), sum);
        warp_sync();
    }
}

// A barrier that adds up the sums of all blocks; false if it timed out.
DEVICE bool sum_over_blocks(const double (&mine)[SUMS], int norm, double* sums,
                            GridBarrier* barrier, double (&all)[SUMS]) {
    __shared__ double totals[SUMS];
    store_sums(mine, norm, sums);
    if (!grid_barrier(barrier, gridDim.x)) return false;
    const int warp = warp_id();
    if (warp < SUMS) {
        const double sum = sum_parts(sums, gridDim.x, warp, norm);
        if (lane_id() == 0) totals[warp] = sum;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < SUMS; k++) all[k] = totals[k];
    return true;
}

// All iterations; false if a barrier timed out.
DEVICE bool iterate(const Hop* hops, Quad* shared, int count, int norm, i64 n, double* x,
                    i64 begin_mask, const double* begin, double* z, Constants constants,
                    i64 restart_mask, const double* restart, double tol, i64 max_iter, double* sums,
                    GridBarrier* barrier, double* report) {
    const Hop& first = hops[0];
    const i64 area = (i64)SUMS * gridDim.x;
    double mine[SUMS], all[SUMS], shift = 0, divisor = 1;
    // whether somebody asks for the value that a vertex had
    const bool tracked = norm != NORM_NONE || tol >= 0 || constants.keep != 0;
    // vertex i has the value `value`; u[i] is what the next iteration gathers
    const auto settle = [&](i64 i, const Vertex& vertex, double before, double value, int buffer) {
        mine[CHANGE] += fabs(value - before);
        if (vertex.scale == 0) mine[DANGLING] += value;
        store_gathered(first, first.u + buffer * first.width, i, vertex.hub,
                       (U)(value * vertex.scale));
    };
#pragma unroll 1
    for (int h = 0; h < count; h++)
        for (i64 k = thread_id(); k < hops[h].split; k += thread_count()) hops[h].arrived[k] = 0;
    // iteration -1 writes what the first one gathers
    for (i64 iteration = -1; iteration < max_iter; iteration++) {
        const int from = iteration & 1, to = 1 - from;
        const bool stored = tracked || iteration == max_iter - 1;
        mine[CHANGE] = mine[DANGLING] = mine[SIZE] = 0;
        for (int h = 0; h < count && iteration >= 0; h++) {
            const Hop &hop = hops[h], &next = hops[count - 1];
            const bool last = h == count - 1;
            const auto look = [&](i64 i) {
                const Hop& then = last ? first : next;
                Vertex vertex = {0, then.scale[i & then.scale_mask], hub_of(then, i)};
                if (last && tracked) vertex.before = x[i];
                return vertex;
            };
            const auto done = [&](i64 i, const Vertex& vertex, double y) {
                if (!last) {
                    store_gathered(next, next.u, i, vertex.hub, (U)(y * vertex.scale));
                    return;
                }
                const double before = vertex.before;
                const double value = constants.factor * y + constants.keep * before +
                                     shift * restart[i & restart_mask];
                if (norm == NORM_NONE) {
                    settle(i, vertex, before, value, to);
                    if (stored) x[i] = value;
                } else {
                    z[i] = value;
                    mine[SIZE] = join(SIZE, norm, mine[SIZE], size_of(norm, value));
                }
            };
            for_rows(hop, hop.u + (h == 0 ? from * hop.width : 0), shared, look, done);
            if (!last && !grid_barrier(barrier, gridDim.x)) return false;
        }
        if (iteration >= 0 && norm != NORM_NONE) {
            if (!sum_over_blocks(mine, norm, sums + 2 * area, barrier, all)) return false;
            divisor = norm_of(norm, all[SIZE]);
        }
        if (iteration < 0 || norm != NORM_NONE) {
#pragma unroll 1
            for (i64 i = thread_id(); i < n; i += thread_count()) {
                const double before = iteration < 0 ? begin[i & begin_mask] : x[i];
                const double value = iteration < 0 ? before : z[i] / divisor;
                const Vertex vertex = {0, first.scale[i & first.scale_mask], hub_of(first, i)};
                settle(i, vertex, before, value, to);
                x[i] = value;
            }
        }
        // two areas take turns: some blocks may still read the sums of the last iteration
        if (!sum_over_blocks(mine, norm, sums + from * area, barrier, all)) return false;
        shift = constants.teleport + constants.dangling * all[DANGLING];
        if (iteration < 0) continue;
        if (thread_id() == 0) {
            report[0] = (double)(iteration + 1);
            report[1] = all[CHANGE];
        }
        if (all[CHANGE] <= tol) break;
    }
    return true;
}

extern "C" __global__ void __launch_bounds__(1024)
    power(const Hop* hops, int count, int norm, i64 n, double* x, i64 begin_mask,
          const double* begin, double* z, double factor, double keep, double teleport,
          double dangling, i64 restart_mask, const double* restart, double tol, i64 max_iter,
          double* sums, GridBarrier* barrier, double* report) {
    // every row reads some of these, and the cache of global memory is empty after a barrier
    __shared__ u64 words[2 * sizeof(Hop) / 8];
#pragma unroll 1
    for (u32 k = threadIdx.x; k < count * sizeof(Hop) / 8; k += blockDim.x)
        words[k] = ((const u64*)hops)[k];
    __syncthreads();
    extern __shared__ Quad hub_memory[];
    if (!iterate((const Hop*)words, hub_memory, count, norm, n, x, begin_mask, begin, z,
                 {factor, keep, teleport, dangling}, restart_mask, restart, tol, max_iter, sums,
                 barrier, report))
#pragma unroll 1
        for (i64 i = thread_id(); i < n; i += thread_count())
            x[i] = from_bits<double>(0x7ff8ull << 48);
}
