// Each group of values folded from the left.
// Preamble: types V (values), Z, T (starts), op, cast (to Z).

// Group g starts from first[g] where has_first[g] (no flags: nowhere), else from its own first
// value.
extern "C" __global__ void __launch_bounds__(256)
    fold(const T* starts, i64 groups, const V* values, i64 count, const bool* has_first,
         const Z* first, Z* z) {
    for (i64 g = thread_id(); g < groups; g += thread_count()) {
        i64 p = starts[g], stop = g + 1 < groups ? (i64)starts[g + 1] : count;
        Z sum = has_first && has_first[g] ? first[g] : cast(values[p++]);
        for (; p < stop; p++) sum = cast(op(sum, values[p], 0, 0, 0, 0));
        z[g] = sum;
    }
}
