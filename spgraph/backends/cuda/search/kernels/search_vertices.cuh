// Of any form of the search, by its state `s`: degrees of own vertices, which of them can be found, and
// products.

// The empty sum.
DEVICE Z nothing() {
#if VALUES
    return identity();
#else
    return Z();
#endif
}

// The product of edge number `edge`, from vertex u to vertex v of the user's, where u has the value
// x. What multiply does not look at is not loaded.
DEVICE Z product_of(Z x, const A* values, i64 edge, i64 u, i64 v) {
#if VALUES
    return multiply(x, values[ISO ? 0 : edge], (i64)0, u, u, v);
#else
    return Z();
#endif
}

DEVICE O degree_of(i64 v) { return s.indptr[v + 1] - s.indptr[v]; }
DEVICE bool can_be_found(i64 v) { return !s.nonempty || test_bit(s.nonempty, v); }

// The sum of the degrees of vertices, one after the other: each is added when the next one comes, so
// that no lane waits for it.
struct Degrees {
    u64 sum = 0;
    O first = 0, last = 0;
    MEMBER void add(i64 v) {
        sum += (u64)(last - first);
        first = s.indptr[v];
        last = s.indptr[v + 1];
    }
    MEMBER u64 total() const { return sum + (u64)(last - first); }
};
