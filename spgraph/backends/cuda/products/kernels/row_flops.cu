// flops[i] += the products that row i of A times B sums: the lengths of the rows of B that its
// columns name. Preamble: types O I (offsets and ids of A), P (offsets of B).
//
// A warp takes SHARE entries of A, wherever rows begin and end: no row is too long for one.
constexpr int SHARE = 1024;

extern "C" __global__ void __launch_bounds__(256)
    row_flops(const O* indptr, const I* indices, i64 nrows, const P* b_indptr, u64* flops) {
    const i64 nvals = indptr[nrows], first = (thread_id() >> 5) * SHARE;
    if (first >= nvals) return;
    const i64 last = first + SHARE < nvals ? first + SHARE : nvals;
    // the row that holds `first`: the last one that does not begin after it
    i64 i = lower_bound(indptr, nrows + 1, first + 1) - 1;
    for (i64 start = first; start < last; i++) {
        i64 stop = indptr[i + 1];
        if (stop > last) stop = last;
        u64 sum = 0;
        for (i64 p = start + lane_id(); p < stop; p += 32) {
            i64 k = indices[p];
            sum += (u64)((i64)b_indptr[k + 1] - (i64)b_indptr[k]);
        }
        if (stop > start) sum = warp_sum(sum);
        if (stop > start && lane_id() == 0 && sum) atomicAdd(flops + i, sum);
        start = stop;
    }
}
