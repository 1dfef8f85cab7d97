// What every kernel may use. A program is: a generated preamble (types, operators, constants), this
// text, one kernel file.
//
// There are no includes: the CUDA headers cost more to compile than any kernel. The preamble may
// define
//   typedef ... I, O, A, U, Z;      column ids, row offsets, values of matrix, vector and result
//   Z add(Z, Z); Z multiply(...);   the operators
//   ADD_KIND                        one of AddKind; with it identity() and, where the preamble
//                                   defines TERMINAL, terminal()
// What depends on the monoid exists only where the preamble defines ADD_KIND.

#pragma nv_diag_suppress 177 // a program uses only some of these

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#define DEVICE static __device__ __forceinline__
#define FULL_WARP 0xffffffffu

// ---- memory: what another block may change is read and written through these, never plainly -----

// The shim that runs kernels on a CPU (tests/cuda_host_shim.h) brings its own of what is inline PTX
// here.
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

// ---- bitmaps: bit i & 31 of word i >> 5 ---------------------------------------------------------

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
    return left >= 32 ? FULL_WARP : left <= 0 ? 0 : (1u << left) - 1;
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

DEVICE int lane_id() { return threadIdx.x & 31; }
DEVICE i64 thread_id() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }
DEVICE i64 thread_count() { return (i64)gridDim.x * blockDim.x; }

// ---- warps: all 32 lanes call, or the `WIDTH` aligned lanes of each group named by `mask` -------

template <class T>
DEVICE T shuffle(T value, int source, int width = 32, u32 mask = FULL_WARP) {
    if constexpr (sizeof(T) == 8)
        return from_bits<T>(__shfl_sync(mask, to_bits(value), source, width));
    else
        return from_bits<T>((Bits<T>)__shfl_sync(mask, (u32)to_bits(value), source, width));
}
template <class T>
DEVICE T shuffle_xor(T value, int distance, u32 mask = FULL_WARP) {
    if constexpr (sizeof(T) == 8)
        return from_bits<T>(__shfl_xor_sync(mask, to_bits(value), distance));
    else
        return from_bits<T>((Bits<T>)__shfl_xor_sync(mask, (u32)to_bits(value), distance));
}
template <class T>
DEVICE T shuffle_up(T value, int distance) {
    if constexpr (sizeof(T) == 8)
        return from_bits<T>(__shfl_up_sync(FULL_WARP, to_bits(value), distance));
    else
        return from_bits<T>((Bits<T>)__shfl_up_sync(FULL_WARP, (u32)to_bits(value), distance));
}

// The sum of `value` over the lanes up to this one, itself included.
template <class T>
DEVICE T warp_scan(T value) {
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
        T below = shuffle_up(value, distance);
        if (lane_id() >= distance) value += below;
    }
    return value;
}
template <class T>
DEVICE T warp_sum(T value) {
#pragma unroll
    for (int distance = 16; distance; distance /= 2) value += shuffle_xor(value, distance);
    return value;
}

// With `keys` ascending over the lanes: the last lane whose key is <= x (lane 0 if there is none).
template <class T>
DEVICE int warp_search(T keys, T x) {
    int found = 0;
#pragma unroll
    for (int step = 16; step; step /= 2) {
        T key = shuffle(keys, found + step);
        if (key <= x) found += step;
    }
    return found;
}

// ---- queues -------------------------------------------------------------------------------------

// Where a lane's entry goes: its slot in the queue and the number of edges before it.
struct Place {
    u64 slot, edge;
};

// A place in a queue for each lane that wants one, with one atomic for the warp. `packed` holds the
// queue's length in its low `count_bits` bits and the sum of the degrees above, so the scanned
// degrees of the queue come for free. All 32 lanes call.
DEVICE Place queue_allocate(bool wanted, u64 degree, u64* packed, u32 count_bits) {
    u32 wanting = __ballot_sync(FULL_WARP, wanted);
    if (!wanting) return Place{0, 0};
    if (!wanted) degree = 0;
    u64 through = warp_scan(degree), total = shuffle(through, 31), base = 0;
    if (lane_id() == 0) base = atomicAdd(packed, (total << count_bits) + (u64)__popc(wanting));
    base = shuffle(base, 0);
    u32 below = wanting & ((1u << lane_id()) - 1);
    return Place{(base & ((1ull << count_bits) - 1)) + (u64)__popc(below),
                 (base >> count_bits) + through - degree};
}
DEVICE u64 queue_count(u64 packed, u32 count_bits) { return packed & ((1ull << count_bits) - 1); }
DEVICE u64 queue_edges(u64 packed, u32 count_bits) { return packed >> count_bits; }

// ---- a barrier of all blocks of a cooperative launch --------------------------------------------

// All zero before its first use; reusable after, by launches of any size, unless `error` was set.
struct GridBarrier {
    u32 arrived;   // the top bit flips when all have arrived
    u32 error;     // non-zero: some block waited too long or gave up; who waits for it leaves too
    u64 heartbeat; // a block that works for long while others wait changes it now and then
};

#ifndef BARRIER_LIMIT
#define BARRIER_LIMIT 20000000000ull // nanoseconds
#endif
enum BarrierError { BARRIER_TIMEOUT = 1 };

// Every thread of every one of the `blocks` blocks calls. What was written before is visible after,
// to every block. False when the wait failed, in every thread of the block alike: the kernel must
// then return.
DEVICE bool grid_barrier(GridBarrier* state, u32 blocks) {
    __syncthreads();
    bool failed = false;
    if (threadIdx.x == 0) {
        __threadfence();
        // the last arrival, whichever it is, makes the sum of all shares 0x80000000
        u32 share = blockIdx.x == 0 ? 0x80000000u - (blocks - 1) : 1u;
        u32 before = atomicAdd(&state->arrived, share);
        u64 start = 0, beat = 0;
        for (u32 spins = 1; !((before ^ load_acquire(&state->arrived)) & 0x80000000u); spins++) {
            if (spins & 255) continue;
            __nanosleep(100); // the wait is long: leave the memory to the blocks that work
            u64 now = globaltimer(), alive = load_relaxed(&state->heartbeat);
            if (start == 0 || alive != beat) start = now;
            beat = alive;
            if (now - start > BARRIER_LIMIT) atomicCAS(&state->error, 0u, (u32)BARRIER_TIMEOUT);
            failed = load_relaxed(&state->error) != 0;
            if (failed) break;
        }
        __threadfence();
    }
    return !__syncthreads_or(failed);
}

// ---- the monoid ---------------------------------------------------------------------------------

enum AddKind {
    ADD_OTHER, // whatever add() does
    ADD_ANY,   // either operand
    ADD_PLUS,
    ADD_MIN,
    ADD_MAX,
    ADD_OR, // bitwise; also the logical ones over bool, whose values are 0 and 1
    ADD_AND,
    ADD_XOR
};

#ifdef ADD_KIND

// Whether some sum can be known before its last term.
#ifdef TERMINAL
constexpr bool ENDS = true;
#else
constexpr bool ENDS = ADD_KIND == ADD_ANY;
#endif

// No further term can change `value`.
DEVICE bool is_terminal(Z value) {
    if constexpr (ADD_KIND == ADD_ANY) return true;
#ifdef TERMINAL
    return value == terminal();
#else
    return false;
#endif
}

// *address = add(*address, value) by compare and swap on the word of type W that holds it from bit
// `shift` on.
template <class W>
DEVICE void combine_in_word(W* word, int shift, Z value) {
    const W field = (W)(Bits<Z>)~(Bits<Z>)0 << shift;
    W old = load_relaxed(word);
    for (;;) {
        Z sum = add(from_bits<Z>((Bits<Z>)(old >> shift)), value);
        W desired = (old & ~field) | ((W)to_bits(sum) << shift);
        if (desired == old) return;
        W seen = atomicCAS(word, old, desired);
        if (seen == old) return;
        old = seen;
    }
}

template <class T>
DEVICE void combine_as(T* address, T value) {
    constexpr bool floating = (double)(T)0.5 == 0.5, negative = (T)-1 < (T)0;
    constexpr bool least = ADD_KIND == ADD_MIN, greatest = ADD_KIND == ADD_MAX;
    constexpr bool bitwise = ADD_KIND == ADD_OR || ADD_KIND == ADD_AND || ADD_KIND == ADD_XOR;
    if constexpr (ADD_KIND == ADD_ANY) {
        store_relaxed(address, value);
    } else if constexpr (bitwise || sizeof(T) < 4) {
        // the aligned word around it: an allocation never ends inside one
        typedef Bits<T> B;
        typedef typename BitsOf<(sizeof(T) < 4 ? 4 : sizeof(T))>::type W;
        u64 place = (u64)address;
        W* word = (W*)(place & ~(u64)(sizeof(W) - 1));
        int shift = (int)(place & (sizeof(W) - 1)) * 8;
        W bits = (W)to_bits(value) << shift, others = ~((W)(B) ~(B)0 << shift);
        if constexpr (ADD_KIND == ADD_OR) {
            if (bits & ~load_lagging(word)) atomicOr(word, bits);
        } else if constexpr (ADD_KIND == ADD_AND) {
            if (load_lagging(word) & ~(bits | others)) atomicAnd(word, bits | others);
        } else if constexpr (ADD_KIND == ADD_XOR) {
            if (bits) atomicXor(word, bits);
        } else {
            combine_in_word(word, shift, value);
        }
    } else if constexpr (ADD_KIND == ADD_PLUS && floating) {
        atomicAdd(address, value);
    } else if constexpr (ADD_KIND == ADD_PLUS) {
        atomicAdd((Bits<T>*)address, to_bits(value));
    } else if constexpr (least || greatest) {
        typedef typename SignedOf<sizeof(T)>::type S;
        typedef Bits<T> B;
        // false for NaN
        T seen = load_lagging(address);
        if (!(least ? value < seen : value > seen)) return;
        if constexpr (floating) {
            // the bits of floats ascend as signed integers where positive, descend as unsigned ones
            // where negative
            value = value + (T)0;
            if (value >= 0)
                least ? atomicMin((S*)address, (S)to_bits(value))
                      : atomicMax((S*)address, (S)to_bits(value));
            else
                least ? atomicMax((B*)address, to_bits(value))
                      : atomicMin((B*)address, to_bits(value));
        } else if constexpr (negative) {
            least ? atomicMin((S*)address, (S)value) : atomicMax((S*)address, (S)value);
        } else {
            least ? atomicMin((B*)address, (B)value) : atomicMax((B*)address, (B)value);
        }
    } else {
        combine_in_word((Bits<T>*)address, 0, value);
    }
}

// *address = add(*address, value), atomically and unordered. *address holds identity() or such a
// sum before. Min and max over floats omit NaN and take -0.0 for 0.0.
DEVICE void combine(Z* address, Z value) { combine_as<Z>(address, value); }

// The sum over the lanes of the aligned groups of `width` lanes (a power of 2), in every lane of
// the group; `mask` names all lanes that call. Lanes without a term bring identity().
DEVICE Z warp_combine(Z value, int width = 32, u32 mask = FULL_WARP) {
    for (int distance = width / 2; distance; distance /= 2)
        value = add(value, shuffle_xor(value, distance, mask));
    return value;
}

#endif
