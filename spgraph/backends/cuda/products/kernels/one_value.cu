// The value of all products of two operands, where it is the same for all.
// Preamble: types A B (values of the operands), Z, multiply.

extern "C" __global__ void __launch_bounds__(256) one_value(const A* a, const B* b, Z* z) {
    if (thread_id() == 0) *z = multiply(*a, *b, 0, 0, 0, 0);
}
