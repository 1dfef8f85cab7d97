// The order of a monoid that is min or max.

constexpr bool LEAST = ADD_KIND == ADD_MIN, GREATEST = ADD_KIND == ADD_MAX;

// a is strictly nearer to the end of a min or max; false where the monoid has no order.
DEVICE bool better(Z a, Z b) {
    if constexpr (LEAST) return a < b;
    if constexpr (GREATEST) return a > b;
    return false;
}
