// Accumulate and masked write of a matrix: with Z = w accum t, w<mask, replace> = Z. A position that
// the mask (if there is one) allows takes Z's entry or loses its own; another keeps its own, or
// loses it under replace. Preamble: types O I W (offsets, columns, values of w), P J T (of t), X Y M
// (of the mask), Q N (offsets and columns of the result), combine_entries(w, t) in the type of w,
// cast (to it), ACCUM, MASKED, STRUCTURE (of the mask: its values do not count).

#include "rows.cuh"

DEVICE bool allows(const X* indptr, const Y* indices, const M* m, i64 keep, bool complement, i64 i,
                   i64 j) {
    if constexpr (!MASKED) return true;
    const i64 high = indptr[i + 1], at = place_of(indices, indptr[i], high, j, -1);
    bool found = at < high && (i64)indices[at] == j;
    if (!STRUCTURE) found = found && m[at & keep] != (M)0;
    return found != complement;
}

// First step: bits for the entries of w, then, from the next word on, for those of t: set where the
// result has an entry for it. An entry of both is w's.
extern "C" __global__ void __launch_bounds__(256)
    matrix_allowed(const O* w_indptr, const I* w_indices, const i64* w_tiles, i64 w_count,
                   const P* t_indptr, const J* t_indices, const i64* t_tiles, i64 t_count,
                   const X* m_indptr, const Y* m_indices, const M* m, i64 m_keep, bool complement,
                   bool replace, u32* bits, i64* before) {
    const i64 w_words = (w_count + 31) / 32, all = w_words + (t_count + 31) / 32;
    for (i64 word = thread_id() >> 5; word < all; word += thread_count() >> 5) {
        bool stays = false;
        if (word < w_words) {
            const i64 p = 32 * word + lane_id();
            if (p < w_count) {
                const i64 i = row_of(w_indptr, w_tiles, p), j = load_once(w_indices + p);
                if (!allows(m_indptr, m_indices, m, m_keep, complement, i, j)) {
                    stays = !replace;
                } else if (ACCUM) {
                    stays = true;
                } else {
                    const i64 high = t_indptr[i + 1];
                    const i64 at = place_of(t_indices, t_indptr[i], high, j, -1);
                    stays = at < high && (i64)t_indices[at] == j;
                }
            }
        } else {
            const i64 q = 32 * (word - w_words) + lane_id();
            if (q < t_count) {
                const i64 i = row_of(t_indptr, t_tiles, q), j = load_once(t_indices + q);
                if (allows(m_indptr, m_indices, m, m_keep, complement, i, j)) {
                    const i64 high = w_indptr[i + 1];
                    const i64 at = place_of(w_indices, w_indptr[i], high, j, -1);
                    stays = at >= high || (i64)w_indices[at] != j;
                }
            }
        }
        put_word(stays, word, bits, before);
    }
}

// Second step: an entry comes after all that stay of w and of t before it. `keep` is -1, or 0 where
// one value stands for all; no z where that is so of the result.
extern "C" __global__ void __launch_bounds__(256)
    write_matrix(const O* w_indptr, const I* w_indices, const i64* w_tiles, const W* w, i64 w_keep,
                 i64 w_count, const P* t_indptr, const J* t_indices, const i64* t_tiles, const T* t,
                 i64 t_keep, i64 t_count, const X* m_indptr, const Y* m_indices, const M* m,
                 i64 m_keep, bool complement, i64 nrows, const u32* bits, const i64* before,
                 Q* z_indptr, N* z_indices, W* z) {
    const i64 w_words = (w_count + 31) / 32, of_w = before[w_words];
    const u32* t_bits = bits + w_words;
    const i64* t_before = before + w_words;
    for (i64 s = thread_id(); s < w_count + t_count; s += thread_count()) {
        if (s < w_count) {
            const i64 p = s;
            if (!test_bit(bits, p)) continue;
            const i64 i = row_of(w_indptr, w_tiles, p), j = load_once(w_indices + p);
            const i64 high = t_indptr[i + 1], q = place_of(t_indices, t_indptr[i], high, j, -1);
            const i64 slot = rank_of(bits, before, p) + rank_of(t_bits, t_before, q) - of_w;
            z_indices[slot] = (N)j;
            if (!z) continue;
            const W x = load_once(w + (p & w_keep));
            const bool met = q < high && (i64)t_indices[q] == j &&
                             allows(m_indptr, m_indices, m, m_keep, complement, i, j);
            z[slot] = met ? combine_entries(x, t[q & t_keep]) : x;
        } else {
            const i64 q = s - w_count;
            if (!test_bit(t_bits, q)) continue;
            const i64 i = row_of(t_indptr, t_tiles, q), j = load_once(t_indices + q);
            const i64 p = place_of(w_indices, w_indptr[i], w_indptr[i + 1], j, -1);
            const i64 slot = rank_of(bits, before, p) + rank_of(t_bits, t_before, q) - of_w;
            z_indices[slot] = (N)j;
            if (z) z[slot] = cast(load_once(t + (q & t_keep)));
        }
    }
    for (i64 i = thread_id(); i <= nrows; i += thread_count())
        z_indptr[i] =
            (Q)(rank_of(bits, before, w_indptr[i]) + rank_of(t_bits, t_before, t_indptr[i]) - of_w);
}

// Two matrices of one value each: what an entry of w alone would hold, one of both, one of t alone.
extern "C" __global__ void __launch_bounds__(256) write_values(const W* w, const T* t, W* z) {
    if (thread_id() != 0) return;
    z[0] = w[0];
    z[1] = combine_entries(w[0], t[0]);
    z[2] = cast(t[0]);
}
