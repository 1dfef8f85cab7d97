// The entries of a row to look at first, -1 behind the last; see heads.cu.
struct __align__(4 * sizeof(I)) Heads {
    I id[4];
};
