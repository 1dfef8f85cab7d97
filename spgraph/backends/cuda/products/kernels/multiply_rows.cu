// Sparse times sparse, row by row (Gustavson 1978): row i of Z is the sum over the entries (i, k) of
// A of A[i, k] times row k of B. Preamble: types O I A (offsets, ids and values of A), P J B (of B),
// Q N M (of the mask), R K Z (of the result); COUNT, VALUES, MASKED, STRUCTURE; with VALUES the
// semiring.
//
// One text makes two programs. With COUNT it finds how many entries each row of Z has, from an upper
// bound: the number of its products. Without, it makes the rows, in place. Rows of few products live
// in a hash table in shared memory (multiply_tables.cuh), the others as all of their columns in
// global memory, many rows and all blocks at a time (multiply_wide.cuh).

#define OPERANDS                                                                                   \
    const O *a_indptr, const I *a_indices, const A *a, i64 a_keep, const P *b_indptr,              \
        const J *b_indices, const B *b, i64 b_keep, const Q *m_indptr, const N *m_indices,         \
        const M *m, i64 m_keep, bool complement
#define GIVEN                                                                                      \
    {a_indptr, a_indices, a,         a_keep, b_indptr, b_indices, b,                               \
     b_keep,   m_indptr,  m_indices, m,      m_keep,   complement}

// The operands; one value for all entries is read by keeping none of the bits of a position.
struct Given {
    const O* a_indptr;
    const I* a_indices;
    const A* a;
    i64 a_keep;
    const P* b_indptr;
    const J* b_indices;
    const B* b;
    i64 b_keep;
    const Q* m_indptr;
    const N* m_indices;
    const M* m;
    i64 m_keep;
    bool complement;
};

// Whether the mask lets row i have column j; asked once for an entry or two, not for each product.
DEVICE bool allowed(const Given& g, i64 i, i64 j) {
    if constexpr (!MASKED) return true;
    i64 start = g.m_indptr[i], count = (i64)g.m_indptr[i + 1] - start;
    i64 at = lower_bound(g.m_indices + start, count, j);
    bool in = at < count && (i64)g.m_indices[start + at] == j;
    if constexpr (!STRUCTURE) in = in && g.m[(start + at) & g.m_keep] != (M)0;
    return in != g.complement;
}

#if VALUES
// Entry p of A, in row i, times entry q of B, in column j.
DEVICE Z product(const Given& g, i64 i, i64 p, i64 q, i64 j) {
    i64 k = g.a_indices[p];
    return multiply(g.a[p & g.a_keep], g.b[q & g.b_keep], i, k, k, j);
}
// What a sum begins with.
DEVICE Z nothing() { return ADD_KIND == ADD_ANY ? (Z)0 : identity(); }
#endif

#include "multiply_tables.cuh"
#include "multiply_wide.cuh"
