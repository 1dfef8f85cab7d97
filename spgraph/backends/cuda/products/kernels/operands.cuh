// The operands of a matrix product and its mask, as operands.py gives them.
// Preamble: types O I A (offsets, ids and values of A), P J B (of B), Q N M (of the mask).

#define OPERANDS                                                                                   \
    const O *a_indptr, const I *a_indices, const A *a, i64 a_keep, const P *b_indptr,              \
        const J *b_indices, const B *b, i64 b_keep, const Q *m_indptr, const N *m_indices,         \
        const M *m, i64 m_keep
#define OPERAND_VALUES                                                                             \
    a_indptr, a_indices, a, a_keep, b_indptr, b_indices, b, b_keep, m_indptr, m_indices, m, m_keep

// The value of entry p is a[p & a_keep]: a_keep is -1, or 0 where one value stands for all entries.
struct Operands {
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
};
