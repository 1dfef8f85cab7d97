// What a union holds at (i, j) where one of two operands has no entry.
// Preamble: types U V Z L R, op, cast, FILL: whether scalars stand for what one of the two lacks.

DEVICE Z of_left(U x, R right, i64 i, i64 j) {
    if constexpr (FILL)
        return op(x, right, i, j, i, j);
    else
        return cast(x);
}
DEVICE Z of_right(L left, V y, i64 i, i64 j) {
    if constexpr (FILL)
        return op(left, y, i, j, i, j);
    else
        return cast(y);
}
