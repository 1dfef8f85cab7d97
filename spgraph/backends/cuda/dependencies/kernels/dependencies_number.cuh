// The numbers that dependencies are made of: float64, or, where EXTENDED, float64 with an exponent of
// 64 bits, for numbers of paths that float64 does not hold.

#ifndef MOST
#define MOST 0x1p1000 // paths
#endif

#if EXTENDED
// x * 2**p; a zero has any exponent.
struct alignas(16) N {
    double x;
    i64 p;
};
DEVICE int bounded(i64 p) { return p < -4000 ? -4000 : p > 4000 ? 4000 : (int)p; }
DEVICE N plus(N a, N b) {
    if (b.x == 0.0) return a;
    if (a.x == 0.0) return b;
    if (a.p >= b.p) return N{a.x + ldexp(b.x, bounded(b.p - a.p)), a.p};
    return N{ldexp(a.x, bounded(a.p - b.p)) + b.x, b.p};
}
// The same value with a mantissa below 1.
DEVICE N normal(N a) {
    int exponent;
    const double fraction = frexp(a.x, &exponent);
    return N{fraction, a.p + exponent};
}
DEVICE N number(double x) { return normal(N{x, 0}); }
DEVICE N inverse(N a) { return N{1.0 / a.x, -a.p}; }
DEVICE double product(N a, N b) { return ldexp(a.x * b.x, bounded(a.p + b.p)); }
DEVICE bool too_many(N) { return false; }
DEVICE double& plain(N& a) { return a.x; }
DEVICE N shuffle_xor_number(N a, int distance) {
    return N{shuffle_xor(a.x, distance), shuffle_xor(a.p, distance)};
}
#else
typedef double N;
DEVICE N plus(N a, N b) { return a + b; }
DEVICE N normal(N a) { return a; }
DEVICE N number(double x) { return x; }
DEVICE N inverse(N a) { return 1.0 / a; }
DEVICE double product(N a, N b) { return a * b; }
// Float64 has to hold reciprocals of paths and their sums, too.
DEVICE bool too_many(N a) { return !(a <= MOST); }
DEVICE double& plain(N& a) { return a; }
DEVICE N shuffle_xor_number(N a, int distance) { return shuffle_xor(a, distance); }
#endif
