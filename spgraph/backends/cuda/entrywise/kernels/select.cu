// The entries of a bitmap or full vector for which f is true.
// Preamble: types U S, f(value, i, 0, scalar).

// By position, a warp a word; what is not kept becomes 0.
extern "C" __global__ void __launch_bounds__(256)
    select(const u32* bits, const U* u, S scalar, i64 size, u32* z_bits, U* z) {
    write_bits(size, z_bits, [=](i64 i) {
        const bool keep = (!bits || test_bit(bits, i)) && f(u[i], i, 0, scalar);
        z[i] = keep ? u[i] : (U)0;
        return keep;
    });
}
