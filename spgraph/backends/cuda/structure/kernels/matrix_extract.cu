// z[k, l] = a[rows[k], columns[l]].
// Preamble: types O I V (offsets, columns and values of A; values as bits), S (starts of the taken
// rows), K (rows), C (columns), Q N (offsets and columns of the result).
//
// The entries of the rows taken, one row after the other, are a list of which starts[k] is the
// place of the first of row k; entry e of it is entry source(...) of A.

#include "rows.cuh"

// lengths[k + 1] = the entries of row rows[k].
extern "C" __global__ void __launch_bounds__(256)
    row_lengths(const O* indptr, const K* rows, i64 nrows, i64* lengths) {
    if (thread_id() == 0) lengths[0] = 0;
    for (i64 k = thread_id(); k < nrows; k += thread_count()) {
        const i64 i = rows[k];
        lengths[k + 1] = (i64)indptr[i + 1] - (i64)indptr[i];
    }
}

// Without `rows` all of them are taken, as they are.
DEVICE i64 source(const O* indptr, const K* rows, const S* starts, const i64* tiles, i64 e) {
    if (!rows) return e;
    const i64 k = row_of(starts, tiles, e);
    return e - (i64)starts[k] + (i64)indptr[(i64)rows[k]];
}

// Where column j stands among the ascending `columns`, looked up in `map` (-1: nowhere) if there is
// one; -1 if it does not.
DEVICE i64 new_column(const C* columns, i64 ncols, const N* map, i64 j) {
    if (map) return map[j];
    const i64 at = lower_bound(columns, ncols, j);
    return at < ncols && (i64)columns[at] == j ? at : -1;
}

// Which entries of the list have a column that is asked for.
extern "C" __global__ void __launch_bounds__(256)
    count_columns(const O* indptr, const I* indices, const K* rows, const S* starts,
                  const i64* tiles, i64 count, const C* columns, i64 ncols, const N* map, u32* bits,
                  i64* before) {
    for (i64 base = (thread_id() >> 5) * STEP; base < count; base += (thread_count() >> 5) * STEP) {
        i64 j[BATCH];
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            const i64 e = base + 32 * b + lane_id();
            j[b] = e < count ? load_once(indices + source(indptr, rows, starts, tiles, e)) : 0;
        }
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            if (base + 32 * b >= count) break;
            const i64 e = base + 32 * b + lane_id();
            put_word(e < count && new_column(columns, ncols, map, j[b]) >= 0, (base >> 5) + b, bits,
                     before);
        }
    }
}

// The list, less what is not kept; without bits all is. No values where one stands for all.
extern "C" __global__ void __launch_bounds__(256)
    take_rows(const O* indptr, const I* indices, const V* values, const K* rows, const S* starts,
              const i64* tiles, i64 nrows, i64 count, const C* columns, i64 ncols, const N* map,
              const u32* bits, const i64* before, Q* z_indptr, N* z_indices, V* z) {
    for (i64 base = (thread_id() >> 5) * STEP; base < count; base += (thread_count() >> 5) * STEP) {
        i64 from[BATCH];
        bool kept[BATCH];
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            const i64 e = base + 32 * b + lane_id();
            kept[b] = e < count && (!bits || test_bit(bits, e));
            from[b] = kept[b] ? source(indptr, rows, starts, tiles, e) : 0;
        }
        I j[BATCH];
        V x[BATCH];
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            if (!kept[b]) continue;
            j[b] = load_once(indices + from[b]);
            if (z) x[b] = load_once(values + from[b]);
        }
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            if (!kept[b]) continue;
            const i64 e = base + 32 * b + lane_id();
            const i64 slot = bits ? rank_of(bits, before, e) : e;
            z_indices[slot] = bits ? (N)new_column(columns, ncols, map, j[b]) : (N)j[b];
            if (z) z[slot] = x[b];
        }
    }
    for (i64 k = thread_id(); k <= nrows; k += thread_count())
        z_indptr[k] = (Q)(bits ? rank_of(bits, before, starts[k]) : (i64)starts[k]);
}
