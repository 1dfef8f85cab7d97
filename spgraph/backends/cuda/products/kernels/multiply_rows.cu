// Sparse times sparse, row by row (Gustavson 1978): row i of Z is the sum over the entries (i, k) of
// A of A[i, k] times row k of B. Preamble: types O I A (offsets, ids and values of A), P J B (of B),
// Q N M (of the mask), R K Z (of the result); COUNT, VALUES, MASKED, STRUCTURE; with VALUES the
// semiring.
//
// One text makes two programs: with COUNT it counts the entries of each row of Z, without it writes
// the rows. Rows of few products are summed in a hash table in shared memory
// (multiply_rows_hash.cuh), the others in dense accumulators in global memory, many rows and all
// blocks at a time (multiply_rows_dense.cuh).

#include "operands.cuh"

struct Masked : Operands {
    bool complement; // of the mask
};

// Whether the mask allows an entry in row i, column j; asked once or twice an entry, not for each
// product.
DEVICE bool allowed(const Masked& g, i64 i, i64 j) {
    if constexpr (!MASKED) return true;
    i64 start = g.m_indptr[i], count = (i64)g.m_indptr[i + 1] - start;
    i64 at = lower_bound(g.m_indices + start, count, j);
    bool in = at < count && (i64)g.m_indices[start + at] == j;
    if constexpr (!STRUCTURE) in = in && g.m[(start + at) & g.m_keep] != (M)0;
    return in != g.complement;
}

#if VALUES
// Entry p of A, in row i, times entry q of B, in column j.
DEVICE Z product(const Masked& g, i64 i, i64 p, i64 q, i64 j) {
    i64 k = g.a_indices[p];
    return multiply(g.a[p & g.a_keep], g.b[q & g.b_keep], i, k, k, j);
}
// What a sum begins with.
DEVICE Z nothing() { return ADD_KIND == ADD_ANY ? (Z)0 : identity(); }
#endif

#include "multiply_rows_hash.cuh"
#include "multiply_rows_dense.cuh"
