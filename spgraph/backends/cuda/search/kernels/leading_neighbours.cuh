// The entries of a row that a pull looks at first, -1 behind the last; see leading_neighbours.cu.
struct __align__(4 * sizeof(I)) Leading {
    I id[4];
};
