// What power iterations begin and end with: out-degrees inverted, a vector divided by its norm.
// Without a preamble: one program for all types of offsets.

#include "power_sums.cuh"

// scale[i] = 1 / the entries of row i, 0 where there is none; `wide`: offsets are of 64 bits.
extern "C" __global__ void __launch_bounds__(256)
    scales_degrees(const void* indptr, int wide, i64 n, double* scale) {
    const int* narrow_at = (const int*)indptr;
    const i64* wide_at = (const i64*)indptr;
#pragma unroll 1
    for (i64 i = thread_id(); i < n; i += thread_count()) {
        const i64 degree = wide ? wide_at[i + 1] - wide_at[i] : narrow_at[i + 1] - narrow_at[i];
        scale[i] = degree ? 1.0 / (double)degree : 0.0;
    }
}

extern "C" __global__ void __launch_bounds__(256) scales_fill(double value, i64 n, double* x) {
#pragma unroll 1
    for (i64 i = thread_id(); i < n; i += thread_count()) x[i] = value;
}

// The parts of all blocks of the sum that the norm of x is made of.
extern "C" __global__ void __launch_bounds__(256)
    scales_parts(const double* x, i64 n, int norm, double* parts) {
    double mine[SUMS] = {0, 0, 0};
#pragma unroll 1
    for (i64 i = thread_id(); i < n; i += thread_count()) mine[SIZE] += size_of(norm, x[i]);
    store_sums(mine, norm, parts);
}

// y = x / norm(x), of the parts of so many blocks; zeros stay zeros.
extern "C" __global__ void __launch_bounds__(256)
    scales_divide(const double* x, i64 n, int norm, const double* parts, i64 blocks, double* y) {
    const double size = sum_parts(parts, blocks, SIZE, norm);
    const double root = norm == NORM_TWO ? sqrt(size) : size, divisor = root == 0 ? 1 : root;
#pragma unroll 1
    for (i64 i = thread_id(); i < n; i += thread_count()) y[i] = x[i] / divisor;
}
