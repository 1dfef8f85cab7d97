// What the state says of own vertices.

DEVICE O degree_of(i64 v) { return s.indptr[v + 1] - s.indptr[v]; }
DEVICE bool can_be_found(i64 v) { return !s.nonempty || test_bit(s.nonempty, v); }
