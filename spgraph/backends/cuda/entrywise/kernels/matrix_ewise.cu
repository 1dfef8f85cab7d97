// Two matrices entry by entry: their union or their intersection.
// Preamble: types O I U (offsets, columns, values of A), P J V (of B), Q N Z (of the result), L R
// (scalars), op, cast (to Z), UNION, FILL (scalars stand for what one of the two lacks), FLIP (op
// takes the value of B first).

#include "ewise_one.cuh"
#include "rows.cuh"

DEVICE Z of_both(U x, V y, i64 i, i64 j) {
    if constexpr (FLIP)
        return op(y, x, i, j, i, j);
    else
        return op(x, y, i, j, i, j);
}

// The place of an entry of one matrix in the same row i of another.
template <class T, class S, class D>
DEVICE i64 across(const T* from, i64 e, i64 i, const S* to, const D* ids, i64 j) {
    const i64 low = to[i], high = to[i + 1], first = from[i];
    return place_of(ids, low, high, j,
                    (i64)from[i + 1] - first == high - low ? low + e - first : -1);
}

// First step: the entries of A that meet one of B.
extern "C" __global__ void __launch_bounds__(256)
    count_common(const O* a_indptr, const I* a_indices, const i64* a_tiles, i64 a_count,
                 const P* b_indptr, const J* b_indices, u32* bits, i64* before) {
    keep_entries(
        a_indptr, a_tiles, a_count, bits, before, [=](i64 e) { return load_once(a_indices + e); },
        [=](I j, i64 e, i64 row) {
            const i64 q = across(a_indptr, e, row, b_indptr, b_indices, j);
            return q < (i64)b_indptr[row + 1] && (i64)b_indices[q] == (i64)j;
        });
}

// Second step. In a union the entry p of A comes after those of A before it and those of B before
// it, less those that were both; an entry of B likewise. `keep` is -1, or 0 where one value stands
// for all; no z where that is so of the result.
extern "C" __global__ void __launch_bounds__(256)
    ewise_matrix(const O* a_indptr, const I* a_indices, const i64* a_tiles, const U* a, i64 a_keep,
                 i64 a_count, const P* b_indptr, const J* b_indices, const i64* b_tiles, const V* b,
                 i64 b_keep, i64 b_count, L left, R right, i64 nrows, const u32* bits,
                 const i64* before, Q* z_indptr, N* z_indices, Z* z) {
    for (i64 t = thread_id(); t < a_count + (UNION ? b_count : 0); t += thread_count()) {
        if (t < a_count) {
            const i64 p = t;
            const bool meets = test_bit(bits, p);
            if (!UNION && !meets) continue;
            const i64 i = row_of(a_indptr, a_tiles, p), j = load_once(a_indices + p);
            const i64 q = across(a_indptr, p, i, b_indptr, b_indices, j);
            const i64 met = rank_of(bits, before, p), slot = UNION ? p + q - met : met;
            z_indices[slot] = (N)j;
            if (!z) continue;
            const U x = load_once(a + (p & a_keep));
            z[slot] = meets ? of_both(x, b[q & b_keep], i, j) : of_left(x, right, i, j);
        } else {
            const i64 q = t - a_count;
            const i64 i = row_of(b_indptr, b_tiles, q), j = load_once(b_indices + q);
            const i64 p = across(b_indptr, q, i, a_indptr, a_indices, j);
            if (p < (i64)a_indptr[i + 1] && (i64)a_indices[p] == j) continue;
            const i64 slot = p + q - rank_of(bits, before, p);
            z_indices[slot] = (N)j;
            if (z) z[slot] = of_right(left, load_once(b + (q & b_keep)), i, j);
        }
    }
    for (i64 i = thread_id(); i <= nrows; i += thread_count()) {
        const i64 met = rank_of(bits, before, a_indptr[i]);
        z_indptr[i] = (Q)(UNION ? (i64)a_indptr[i] + (i64)b_indptr[i] - met : met);
    }
}

// Two matrices of one value each: what entries of both would hold, those of A alone, those of B
// alone.
extern "C" __global__ void __launch_bounds__(256)
    ewise_values(const U* a, const V* b, L left, R right, Z* z) {
    if (thread_id() != 0) return;
    z[0] = of_both(a[0], b[0], 0, 0);
    z[1] = of_left(a[0], right, 0, 0);
    z[2] = of_right(left, b[0], 0, 0);
}
