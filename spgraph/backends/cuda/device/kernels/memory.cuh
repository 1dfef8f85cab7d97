// What another block may change is read and written through these, never plainly.

// The shim that runs kernels on a CPU (tests/helpers/cuda_host_shim.h) brings its own of what is
// inline PTX here.
#ifndef HOST_SHIM

#define MEMORY_ACCESS(NAME, ORDER)                                                                 \
    DEVICE u32 NAME##_bits(const u8* p) {                                                          \
        u32 x;                                                                                     \
        asm volatile("ld." ORDER ".u8 %0, [%1];" : "=r"(x) : "l"(p) : "memory");                   \
        return x;                                                                                  \
    }                                                                                              \
    DEVICE u32 NAME##_bits(const u16* p) {                                                         \
        u32 x;                                                                                     \
        asm volatile("ld." ORDER ".u16 %0, [%1];" : "=r"(x) : "l"(p) : "memory");                  \
        return x;                                                                                  \
    }                                                                                              \
    DEVICE u32 NAME##_bits(const u32* p) {                                                         \
        u32 x;                                                                                     \
        asm volatile("ld." ORDER ".u32 %0, [%1];" : "=r"(x) : "l"(p) : "memory");                  \
        return x;                                                                                  \
    }                                                                                              \
    DEVICE u64 NAME##_bits(const u64* p) {                                                         \
        u64 x;                                                                                     \
        asm volatile("ld." ORDER ".u64 %0, [%1];" : "=l"(x) : "l"(p) : "memory");                  \
        return x;                                                                                  \
    }
MEMORY_ACCESS(load_relaxed, "relaxed.gpu")
MEMORY_ACCESS(load_acquire, "acquire.gpu")
MEMORY_ACCESS(load_lagging, "relaxed.cta")
#undef MEMORY_ACCESS

#define MEMORY_ACCESS(NAME, ORDER)                                                                 \
    DEVICE void NAME##_bits(u8* p, u32 x) {                                                        \
        asm volatile("st." ORDER ".u8 [%0], %1;" ::"l"(p), "r"(x) : "memory");                     \
    }                                                                                              \
    DEVICE void NAME##_bits(u16* p, u32 x) {                                                       \
        asm volatile("st." ORDER ".u16 [%0], %1;" ::"l"(p), "r"(x) : "memory");                    \
    }                                                                                              \
    DEVICE void NAME##_bits(u32* p, u32 x) {                                                       \
        asm volatile("st." ORDER ".u32 [%0], %1;" ::"l"(p), "r"(x) : "memory");                    \
    }                                                                                              \
    DEVICE void NAME##_bits(u64* p, u64 x) {                                                       \
        asm volatile("st." ORDER ".u64 [%0], %1;" ::"l"(p), "l"(x) : "memory");                    \
    }
MEMORY_ACCESS(store_relaxed, "relaxed.gpu")
MEMORY_ACCESS(store_release, "release.gpu")
#undef MEMORY_ACCESS

// *p for memory that no one writes during the launch and that is read once: it takes no place in
// the cache.
#define LOAD_ONCE(TYPE, WIDTH, FORMAT)                                                             \
    DEVICE TYPE load_once_bits(const TYPE* p) {                                                    \
        TYPE x;                                                                                    \
        asm("ld.global.nc.L1::no_allocate." WIDTH " %0, [%1];" : FORMAT(x) : "l"(p));              \
        return x;                                                                                  \
    }
LOAD_ONCE(u16, "u16", "=h")
LOAD_ONCE(u32, "u32", "=r")
LOAD_ONCE(u64, "u64", "=l")
#undef LOAD_ONCE
DEVICE u8 load_once_bits(const u8* p) {
    u32 x;
    asm("ld.global.nc.L1::no_allocate.u8 %0, [%1];" : "=r"(x) : "l"(p));
    return (u8)x;
}

// Nanoseconds of the device's clock; it ticks about once a microsecond.
DEVICE u64 globaltimer() {
    u64 t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

#endif

template <int BYTES>
struct BitsOf;
template <>
struct BitsOf<1> {
    typedef u8 type;
};
template <>
struct BitsOf<2> {
    typedef u16 type;
};
template <>
struct BitsOf<4> {
    typedef u32 type;
};
template <>
struct BitsOf<8> {
    typedef u64 type;
};
template <int BYTES>
struct SignedOf;
template <>
struct SignedOf<4> {
    typedef int type;
};
template <>
struct SignedOf<8> {
    typedef i64 type;
};
template <class T>
using Bits = typename BitsOf<sizeof(T)>::type;

// The bits of a value as an unsigned integer of its width, and back.
template <class T>
DEVICE Bits<T> to_bits(T value) {
    Bits<T> bits;
    memcpy(&bits, &value, sizeof(T));
    return bits;
}
template <class T>
DEVICE T from_bits(Bits<T> bits) {
    T value;
    memcpy(&value, &bits, sizeof(T));
    return value;
}

// *p as some block wrote it: unordered, but never from this multiprocessor's own cache.
template <class T>
DEVICE T load_relaxed(const T* p) {
    return from_bits<T>((Bits<T>)load_relaxed_bits((const Bits<T>*)p));
}
// The same, ordered before every access that follows.
template <class T>
DEVICE T load_acquire(const T* p) {
    return from_bits<T>((Bits<T>)load_acquire_bits((const Bits<T>*)p));
}
// *p, or an older value of it that lies in this multiprocessor's cache. Enough to see that a value
// which changes one way only (a bit that is set, a minimum that falls) needs no atomic any more;
// much cheaper where many look at one address.
template <class T>
DEVICE T load_lagging(const T* p) {
    return from_bits<T>((Bits<T>)load_lagging_bits((const Bits<T>*)p));
}
template <class T>
DEVICE void store_relaxed(T* p, T value) {
    store_relaxed_bits((Bits<T>*)p, to_bits(value));
}
// The same, ordered after every access that precedes.
template <class T>
DEVICE void store_release(T* p, T value) {
    store_release_bits((Bits<T>*)p, to_bits(value));
}

template <class T>
DEVICE T load_once(const T* p) {
    return from_bits<T>(load_once_bits((const Bits<T>*)p));
}
