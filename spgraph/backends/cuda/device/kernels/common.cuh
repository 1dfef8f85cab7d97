// What every kernel may use. A program is: a generated preamble (types, operators, constants), this
// text, one kernel file.
//
// No header of CUDA is included: they cost more to compile than any kernel. The preamble may define
//   typedef ... I, O, A, U, Z;      column ids, row offsets, values of matrix, vector and result
//   Z add(Z, Z); Z multiply(...);   the operators
//   ADD_KIND                        one of AddKind; with it identity() and, where the preamble
//                                   defines TERMINAL, terminal()

#pragma nv_diag_suppress 177 // a program uses only some of these

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#define DEVICE static __device__ __forceinline__
#define CALLED static __device__ __noinline__ // instructions that are loaded once
#define MEMBER __device__ __forceinline__

#include "memory.cuh"

template <class T>
DEVICE void swap(T*& x, T*& y) {
    T* z = x;
    x = y;
    y = z;
}

// ---- bitmaps: bit i & 31 of word i >> 5 ---------------------------------------------------------

constexpr u32 ALL_BITS = 0xffffffffu;

DEVICE bool test_bit(const u32* words, i64 i) { return (words[i >> 5] >> (i & 31)) & 1; }

// Set bit i; true if it was clear. Costs no atomic where the bit is seen to be set.
DEVICE bool set_bit(u32* words, i64 i) {
    u32 bit = 1u << (i & 31);
    if (load_lagging(words + (i >> 5)) & bit) return false;
    return !(atomicOr(words + (i >> 5), bit) & bit);
}

// The bits of word w that are positions below n: the last word may be partial.
DEVICE u32 valid_bits(i64 w, i64 n) {
    i64 left = n - w * 32;
    return left >= 32 ? ALL_BITS : left <= 0 ? 0 : (1u << left) - 1;
}

// The first position of the ascending `ids` that is not below i; `count` if there is none.
template <class T>
DEVICE i64 lower_bound(const T* ids, i64 count, i64 i) {
    i64 low = 0, high = count;
    while (low < high) {
        i64 middle = (low + high) / 2;
        if ((i64)ids[middle] < i)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// ---- floats in the order of unsigned integers ---------------------------------------------------

// x < y exactly when ordered(x) < ordered(y); -0.0 is 0.0; NaN has no place.
DEVICE u32 ordered(float x) {
    u32 bits = to_bits(x + 0.0f);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
DEVICE u64 ordered(double x) {
    u64 bits = to_bits(x + 0.0);
    return bits >> 63 ? ~bits : bits | 1ull << 63;
}
DEVICE float from_ordered(u32 key) {
    return from_bits<float>(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}
DEVICE double from_ordered(u64 key) {
    return from_bits<double>(key >> 63 ? key & ~(1ull << 63) : ~key);
}

// ---- the thread's place -------------------------------------------------------------------------

DEVICE i64 thread_id() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }
DEVICE i64 thread_count() { return (i64)gridDim.x * blockDim.x; }

#include "warps.cuh"
#include "barrier.cuh"
#include "monoid.cuh"
