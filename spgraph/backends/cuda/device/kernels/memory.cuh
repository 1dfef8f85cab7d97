// What another block may change is read and written through these, never plainly.

// 16 bytes that move as one.
struct alignas(16) Quad {
    u32 x[4];
};

// The integers of so many bytes.
template <int BYTES>
DEVICE auto unsigned_of() {
    if constexpr (BYTES == 1)
        return u8();
    else if constexpr (BYTES == 2)
        return u16();
    else if constexpr (BYTES == 4)
        return u32();
    else if constexpr (BYTES == 8)
        return u64();
}
template <int BYTES>
DEVICE auto signed_of() {
    if constexpr (BYTES == 4)
        return int();
    else if constexpr (BYTES == 8)
        return i64();
}
template <class T>
using Bits = decltype(unsigned_of<sizeof(T)>());
// What holds a value and can be changed by atomics.
template <class T>
using Word = decltype(unsigned_of<(sizeof(T) < 4 ? 4 : sizeof(T))>());

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

#ifndef HOST_SHIM
#include "nvidia.cuh"
#endif

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

// A pointer into global memory, and the compiler knows that it is one: of a pointer that is loaded
// from shared memory it does not, and an atomic on it gets a branch for each kind of memory.
template <class T>
DEVICE T* global(T* pointer) {
#ifndef HOST_SHIM
    __builtin_assume(__isGlobal(pointer));
#endif
    return pointer;
}
