// What a union holds at (i, j) where one of two operands has no entry.
// Preamble: types U V Z L R, op, cast, FILL: whether scalars stand for what one of the two lacks.

DEVICE Z of_left(U x, R beta, i64 i, i64 j) {
    if constexpr (FILL)
        return op(x, beta, i, j, i, j);
    else
        return cast(x);
}
DEVICE Z of_right(L alpha, V y, i64 i, i64 j) {
    if constexpr (FILL)
        return op(alpha, y, i, j, i, j);
    else
        return cast(y);
}
