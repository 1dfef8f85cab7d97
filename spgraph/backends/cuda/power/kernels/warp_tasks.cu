// Divide a matrix into tasks and write its entries in their order: five launches, in the order of the
// text. Preamble: types O I A, ISO (no values).
//
// The rows come in windows, each the work of one block, whose warps take equal shares of it. Short rows
// are sorted by length within their window, the longest first and those of one length as they come: by
// counting, since there are few lengths.

constexpr int WARPS = 32; // of the blocks of the first four

#include "block_scan.cuh"
#include "counting_sort.cuh"
#include "warp_tasks.cuh"

// Entries of the longest row that one lane sums; short rows are counted by SHORT - length.
constexpr int SHORT = 32, BINS = SHORT + 1;
// What else is counted, behind these; the key of what is no row.
constexpr int PIECES = BINS, SPLITS = BINS + 1, COUNTS = BINS + 2, NOWHERE = COUNTS;

// How long rows are cut: into pieces of `share` entries, or of more where these were more than `most`.
struct Cut {
    u32 share, most;
    __device__ __forceinline__ u32 piece(u32 length) const {
        const u32 least = (length + most * WARP - 1) / (most * WARP) * WARP;
        return least > share ? least : share;
    }
    // 0 of a short row
    __device__ __forceinline__ u32 pieces(u32 length) const {
        const u32 size = piece(length);
        return length <= SHORT ? 0 : (length + size - 1) / size;
    }
};
DEVICE u32 length_of(const O* indptr, i64 i) { return (u32)(indptr[i + 1] - indptr[i]); }

// A block a window: counts[3 * window + ...] += its short rows, tasks of long rows, rows in pieces.
extern "C" __global__ void __launch_bounds__(1024)
    warp_tasks_count(const O* indptr, i64 n, i64 window, u32 share, u32 most, u64* counts) {
    const Cut cut = {share, most};
    const i64 first = blockIdx.x * window, end = first + window < n ? first + window : n;
    u64 found[3] = {0, 0, 0};
#pragma unroll 1
    for (i64 i = first + threadIdx.x; i < end; i += blockDim.x) {
        const u32 length = length_of(indptr, i);
        const u32 pieces = cut.pieces(length);
        found[0] += length <= SHORT;
        found[1] += pieces;
        found[2] += pieces > 1;
    }
#pragma unroll 1
    for (int k = 0; k < 3; k++) warp_add(counts + 3 * blockIdx.x + k, found[k]);
}

// A block a window: write the tasks but for their first steps, `tasks` being all zero before, the split
// rows, and the `shorts` short rows, -1 behind the last. `longs` tasks are those of long rows.
extern "C" __global__ void __launch_bounds__(1024)
    warp_tasks_place(const O* indptr, i64 n, i64 window, u32 share, u32 most, const u64* counts,
                     i64 shorts, i64 longs, Task* tasks, Split* splits, int* rows) {
    __shared__ u64 before[3];         // what windows before this one have
    __shared__ u32 total[COUNTS];     // of this window; of the bins then: where they begin
    __shared__ u32 at[WARPS][COUNTS]; // what each warp has; then: where its next one goes
    const Cut cut = {share, most};
    const int warp = warp_id(), lane = lane_id();
#pragma unroll 1
    for (int k = threadIdx.x; k < WARPS * COUNTS; k += blockDim.x) at[0][k] = 0;
    if (threadIdx.x < 3) before[threadIdx.x] = 0;
    __syncthreads();
    u64 found[3] = {0, 0, 0};
#pragma unroll 1
    for (i64 k = threadIdx.x; k < (i64)blockIdx.x; k += blockDim.x)
#pragma unroll 1
        for (int j = 0; j < 3; j++) found[j] += counts[3 * k + j];
#pragma unroll 1
    for (int j = 0; j < 3; j++) warp_add(before + j, found[j]);
    const i64 each = (window + WARPS - 1) / WARPS, window_end = (blockIdx.x + 1) * window;
    const i64 first = blockIdx.x * window + warp * each;
    i64 end = first + each < window_end ? first + each : window_end;
    if (end > n) end = n;
#pragma unroll 1
    for (i64 i = first + lane; i < end; i += WARP) {
        const u32 length = length_of(indptr, i);
        const u32 pieces = cut.pieces(length);
        if (!pieces) atomicAdd(&at[warp][SHORT - (int)length], 1u);
        if (pieces) atomicAdd(&at[warp][PIECES], pieces);
        if (pieces > 1) atomicAdd(&at[warp][SPLITS], 1u);
    }
    scan_counts<BINS>(at, total);
#pragma unroll 1
    for (i64 from = first; from < end; from += WARP) {
        const i64 i = from + lane;
        const u32 length = i < end ? length_of(indptr, i) : 0;
        const u32 pieces = i < end ? cut.pieces(length) : 0;
        const int key = i >= end ? NOWHERE : pieces ? PIECES : SHORT - (int)length;
        const u32 alike = lanes_alike<6>(key);
        if (key < BINS) {
            const i64 place =
                before[0] + total[key] + at[warp][key] + __popc(alike & lanes_below());
            Task* task = tasks + longs + place / WARP;
            rows[place] = (int)i;
            atomicMax(&task->steps, (int)length);
            if (place % WARP == 0) {
                task->target = (int)place;
                task->kind = ROWS;
            }
        }
        const u32 split = warp_ballot(pieces > 1), through = warp_scan(pieces);
        if (pieces) {
            const i64 task = before[1] + at[warp][PIECES] + through - pieces;
            const u32 size = cut.piece(length);
            const int number = (int)(before[2] + at[warp][SPLITS] + __popc(split & lanes_below()));
#pragma unroll 1
            for (u32 k = 0; k < pieces; k++) {
                const u32 left = length - k * size, count = left < size ? left : size;
                Task* piece = tasks + task + k;
                piece->steps = (int)((count + WARP - 1) / WARP);
                piece->target = pieces > 1 ? number : (int)i;
                piece->kind = pieces > 1 ? PART : WHOLE;
            }
            if (pieces > 1) splits[number] = Split{(int)task, (int)pieces, (int)i, 0};
        }
        const u32 all_pieces = shuffle(through, WARP - 1);
        warp_sync(); // all have read their places
        if (key < BINS && !(alike & lanes_below())) at[warp][key] += __popc(alike);
        if (lane == 0) {
            at[warp][PIECES] += all_pieces;
            at[warp][SPLITS] += __popc(split);
        }
        warp_sync();
    }
    if (blockIdx.x == 0 && threadIdx.x < WARP) {
        const i64 behind = shorts + threadIdx.x;
        if (behind < (shorts + WARP - 1) / WARP * WARP) rows[behind] = -1;
    }
}

// One block: `to` are the tasks from `from`, those of short rows in another order. Warp w of `warps` has
// the tasks w, w + warps, ...: they are sorted, the longest first and those of one length as they
// come, and every other turn of the warps is reversed, so that who had more has less next.
extern "C" __global__ void __launch_bounds__(1024)
    warp_tasks_deal(const Task* from, i64 longs, i64 count, i64 warps, Task* to) {
    __shared__ u32 total[BINS];     // of the tasks of each length; then: where these begin
    __shared__ u32 at[WARPS][BINS]; // what each warp has; then: where its next one goes
    const int warp = warp_id(), lane = lane_id();
#pragma unroll 1
    for (i64 t = threadIdx.x; t < longs; t += blockDim.x) to[t] = from[t];
#pragma unroll 1
    for (int k = threadIdx.x; k < WARPS * BINS; k += blockDim.x) at[0][k] = 0;
    __syncthreads();
    const i64 each = (count - longs + WARPS - 1) / WARPS, first = longs + warp * each;
    const i64 end = first + each < count ? first + each : count;
#pragma unroll 1
    for (i64 t = first + lane; t < end; t += WARP) atomicAdd(&at[warp][SHORT - from[t].steps], 1u);
    scan_counts<BINS>(at, total);
#pragma unroll 1
    for (i64 base = first; base < end; base += WARP) {
        const bool there = base + lane < end;
        const Task task = there ? from[base + lane] : Task{0, 0, 0, ROWS};
        const int key = there ? SHORT - task.steps : NOWHERE;
        const u32 alike = lanes_alike<6>(key);
        if (there) {
            const i64 place = longs + total[key] + at[warp][key] + __popc(alike & lanes_below());
            const i64 turn = place / warps * warps, next = turn + warps;
            const i64 begin = turn > longs ? turn : longs, stop = next < count ? next : count;
            to[turn / warps % 2 ? begin + stop - 1 - place : place] = task;
        }
        warp_sync(); // all have read their places
        if (there && !(alike & lanes_below())) at[warp][key] += __popc(alike);
        warp_sync();
    }
}

// One block: the first step of each task, and how many steps there are.
extern "C" __global__ void __launch_bounds__(1024)
    warp_tasks_scan(Task* tasks, i64 count, i64* steps) {
    const i64 each = (count + blockDim.x - 1) / blockDim.x, first = threadIdx.x * each;
    const i64 end = first + each < count ? first + each : count;
    u32 sum = 0, before, all;
    O none, no;
#pragma unroll 1
    for (i64 t = first; t < end; t++) sum += tasks[t].steps;
    block_scan(sum, 0, before, none, all, no);
#pragma unroll 1
    for (i64 t = first; t < end; t++) {
        tasks[t].first = (int)before;
        before += tasks[t].steps;
    }
    if (threadIdx.x == 0) *steps = all;
}

// A warp a task: the entries in the order of the tasks. hub: of each column its number among the hubs,
// -1 for none; or null.
extern "C" __global__ void __launch_bounds__(256)
    warp_tasks_fill(const O* indptr, const I* indices, const A* a, u32 share, u32 most,
                    const Task* tasks, i64 count, const Split* splits, const int* rows,
                    const int* hub, int* columns, A* values) {
    const i64 t = thread_id() >> 5;
    if (t >= count) return;
    const Cut cut = {share, most};
    const int lane = lane_id();
    const Task task = tasks[t];
    i64 e, stop, step = 1;
    if (task.kind == ROWS) {
        const int row = rows[task.target + lane];
        e = row < 0 ? 0 : (i64)indptr[row];
        stop = row < 0 ? 0 : (i64)indptr[row + 1];
    } else {
        const int row = task.kind == PART ? splits[task.target].row : task.target;
        const i64 size = cut.piece(length_of(indptr, row));
        const i64 piece = task.kind == PART ? t - splits[task.target].first : 0;
        e = (i64)indptr[row] + piece * size;
        stop = e + size < (i64)indptr[row + 1] ? e + size : (i64)indptr[row + 1];
        e += lane;
        step = WARP;
    }
#pragma unroll 1
    for (int s = 0; s < task.steps; s++, e += step) {
        const i64 to = ((i64)task.first + s) * WARP + lane;
        const int column = e < stop ? (int)indices[e] : NONE;
        const int number = hub && column != NONE ? hub[column] : -1;
        columns[to] = number >= 0 ? hub_entry(number) : column;
        if (!ISO) values[to] = e < stop ? a[e] : (A)0;
    }
}
