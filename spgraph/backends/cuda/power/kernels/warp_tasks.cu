// Write the entries of a matrix in the order of its tasks. Preamble: types O I A, ISO (no values).

#include "warp_tasks.cuh"

// A warp a task. `starts` and `counts` are the entries of the tasks that are no short rows, which are
// the first tasks; rows[task.target + lane] is a short row, -1 for none.
extern "C" __global__ void __launch_bounds__(256)
    warp_tasks(const O* indptr, const I* indices, const A* a, const Task* tasks, i64 count,
               const int* rows, const i64* starts, const i64* counts, int* columns, A* values) {
    const i64 t = thread_id() >> 5;
    if (t >= count) return;
    const int lane = lane_id();
    const Task task = tasks[t];
    i64 e, stop, step;
    if (task.kind == ROWS) {
        const int row = rows[task.target + lane];
        e = row < 0 ? 0 : (i64)indptr[row];
        stop = row < 0 ? 0 : (i64)indptr[row + 1];
        step = 1;
    } else {
        e = starts[t] + lane;
        stop = starts[t] + counts[t];
        step = 32;
    }
    for (int s = 0; s < task.steps; s++, e += step) {
        const i64 to = ((i64)task.first + s) * 32 + lane;
        columns[to] = e < stop ? (int)indices[e] : -1;
        if (!ISO) values[to] = e < stop ? a[e] : (A)0;
    }
}
