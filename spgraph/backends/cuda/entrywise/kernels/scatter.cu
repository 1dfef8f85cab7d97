// Values folded into a vector at positions in any order and with repeats.
// Preamble: types V (values), J (positions), the monoid over Z, start(): what a position without an
// entry holds before its first value.

// By position: the entries that there are, start() where there is none.
extern "C" __global__ void __launch_bounds__(256)
    scatter_start(const u32* bits, const Z* w, i64 size, Z* z) {
    for (i64 i = thread_id(); i < size; i += thread_count())
        z[i] = bits && !test_bit(bits, i) ? start() : w[i];
}

// No bits: every position holds an entry.
extern "C" __global__ void __launch_bounds__(256)
    scatter(const J* ids, const V* values, i64 count, u32* bits, Z* z) {
    for (i64 k = thread_id(); k < count; k += thread_count()) {
        const i64 i = ids[k];
        combine(z + i, (Z)values[k]);
        if (bits) set_bit(bits, i);
    }
}

// What is absent becomes 0.
extern "C" __global__ void __launch_bounds__(256) scatter_end(const u32* bits, i64 size, Z* z) {
    for (i64 i = thread_id(); i < size; i += thread_count())
        if (!test_bit(bits, i)) z[i] = (Z)0;
}
