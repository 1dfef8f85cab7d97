// Runs CUDA kernels on a CPU, to test their logic where there is no GPU. Stands before a program
// (preamble, common.cuh, kernel file), which then compiles as C++.
//
// The threads of a block are fibers of one thread of the operating system, and give way to each
// other at every barrier and warp operation (by _longjmp: swapcontext calls the system each time);
// blocks run on several such threads, all of them at once when the launch is cooperative. Shared
// memory is the thread-local memory of a block's thread. A block whose fibers all wait is reported
// and ends the program: that would hang a GPU.
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>
#include <setjmp.h>
#include <ucontext.h>

#define HOST_SHIM 1
#define __device__
#define __global__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __noinline__ __attribute__((noinline))
#define __align__(bytes) alignas(bytes)
#define __shared__ thread_local

// hidden: calls of cuda_host_shim.cpp stay within the program
namespace shim __attribute__((visibility("hidden"))) {

struct Index {
    unsigned x = 0, y = 0, z = 0;
};

struct Warp {
    unsigned arrived = 0, left = 0;
    unsigned long long slots[32];
};

struct Fiber {
    ucontext_t context; // where it starts
    jmp_buf at;         // where it gave way
    Index thread;
    bool begun, done;
};

struct Block {
    Fiber* fibers; // of `threads`
    Warp* warps;
    unsigned threads;
    jmp_buf scheduler;
    void (*invoke)(void**);
    void** arguments;
    unsigned arrived, live, generation;
    int votes, vote;
    unsigned long long waits;
};

inline thread_local Block* block;
inline thread_local Fiber* current;
inline thread_local Index block_index;
inline thread_local Index block_size, grid_size;

// These are in cuda_host_shim.cpp, which is compiled once for all programs.

// Called where a kernel looks whether others have come.
void give_way();
// Let the next fiber run that has not ended.
void wait();
int sync_threads(int vote);
// Run a kernel's blocks, `concurrent` at a time.
void launch(void (*invoke)(void**), void** arguments, unsigned blocks, unsigned threads,
            unsigned concurrent);

// The lanes of `mask` meet; `act` runs between, when all have brought their value to the slots.
template <class F>
auto warp_exchange(unsigned mask, unsigned long long value, F act) {
    unsigned lane = current->thread.x & 31, bit = 1u << lane;
    Warp& w = block->warps[current->thread.x >> 5];
    if (!(mask & bit)) {
        std::fprintf(stderr, "host shim: lane %u is not in its mask %08x\n", lane, mask);
        std::abort();
    }
    while (w.arrived & bit) wait();
    w.slots[lane] = value;
    w.arrived |= bit;
    while ((w.arrived & mask) != mask) wait();
    auto result = act(w, lane);
    w.left |= bit;
    block->waits = 0;
    if ((w.left & mask) == mask) {
        w.left &= ~mask;
        w.arrived &= ~mask;
    }
    return result;
}

template <class T>
unsigned long long pack(T value) {
    unsigned long long bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    return bits;
}
template <class T>
T unpack(unsigned long long bits) {
    T value;
    std::memcpy(&value, &bits, sizeof(T));
    return value;
}

template <class... P, size_t... K>
void call(void (*kernel)(P...), void** arguments, std::index_sequence<K...>) {
    kernel(*static_cast<P*>(arguments[K])...);
}
template <class... P>
void call(void (*kernel)(P...), void** arguments) {
    call(kernel, arguments, std::index_sequence_for<P...>());
}

} // namespace shim

// The entry of a kernel for ctypes: pointers to its arguments, as a CUDA launch takes them.
#define KERNEL_ENTRY(NAME)                                                                         \
    extern "C" void launch_##NAME(unsigned blocks, unsigned threads, unsigned concurrent,          \
                                  void** arguments) {                                              \
        shim::launch([](void** given) { shim::call(NAME, given); }, arguments, blocks, threads,    \
                     concurrent);                                                                  \
    }

#define threadIdx (shim::current->thread)
#define blockIdx shim::block_index
#define blockDim shim::block_size
#define gridDim shim::grid_size

inline void __syncthreads() { shim::sync_threads(0); }
inline int __syncthreads_or(int vote) { return shim::sync_threads(vote != 0); }
inline void __threadfence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
inline void __threadfence_block() { std::atomic_thread_fence(std::memory_order_seq_cst); }
inline void __nanosleep(unsigned) { shim::give_way(); }

// the lanes of a warp, as in kernels/nvidia.cuh
constexpr int WARP = 32;
constexpr unsigned FULL_WARP = 0xffffffffu;
inline int lane_id() { return threadIdx.x % WARP; }
inline int warp_id() { return threadIdx.x / WARP; }
inline unsigned lanes_below() { return (1u << lane_id()) - 1; }
inline unsigned lanes_through(int lane) { return FULL_WARP >> (WARP - 1 - lane); }
inline unsigned lane_group(int width) {
    return FULL_WARP >> (WARP - width) << (lane_id() & ~(width - 1));
}
inline void warp_sync() {
    shim::warp_exchange(FULL_WARP, 0, [](shim::Warp&, unsigned) { return 0; });
}
inline unsigned warp_ballot(int vote, unsigned mask = FULL_WARP) {
    return shim::warp_exchange(mask, vote != 0, [mask](shim::Warp& w, unsigned) {
        unsigned votes = 0;
        for (int i = 0; i < WARP; i++)
            if (mask >> i & 1 && w.slots[i]) votes |= 1u << i;
        return votes;
    });
}
inline bool warp_any(bool vote, unsigned mask = FULL_WARP) { return warp_ballot(vote, mask) != 0; }
#define SHIM_REDUCE(NAME, SUM)                                                                     \
    inline unsigned NAME(unsigned value) {                                                         \
        return shim::warp_exchange(FULL_WARP, value, [](shim::Warp& w, unsigned) {                 \
            unsigned sum = w.slots[0];                                                             \
            for (int i = 1; i < WARP; i++) {                                                       \
                unsigned x = w.slots[i];                                                           \
                sum = SUM;                                                                         \
            }                                                                                      \
            return sum;                                                                            \
        });                                                                                        \
    }
SHIM_REDUCE(reduce_add, sum + x)
SHIM_REDUCE(reduce_or, sum | x)
template <class T>
T shuffle(T value, int source) {
    return shim::unpack<T>(
        shim::warp_exchange(FULL_WARP, shim::pack(value),
                            [=](shim::Warp& w, unsigned) { return w.slots[source % WARP]; }));
}
template <class T>
T shuffle_xor(T value, int distance) {
    return shim::unpack<T>(
        shim::warp_exchange(FULL_WARP, shim::pack(value), [=](shim::Warp& w, unsigned lane) {
            return w.slots[lane ^ distance];
        }));
}
template <class T>
T shuffle_up(T value, int distance) {
    return shim::unpack<T>(
        shim::warp_exchange(FULL_WARP, shim::pack(value), [=](shim::Warp& w, unsigned lane) {
            return w.slots[(int)lane >= distance ? lane - distance : lane];
        }));
}

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
inline unsigned __brev(unsigned x) {
    unsigned y = 0;
    for (int i = 0; i < 32; i++) y |= (x >> i & 1) << (31 - i);
    return y;
}
inline float __int_as_float(int x) { return shim::unpack<float>((unsigned)x); }
inline int __float_as_int(float x) { return (int)shim::pack(x); }
inline unsigned __float_as_uint(float x) { return (unsigned)shim::pack(x); }
inline double __longlong_as_double(long long x) { return shim::unpack<double>(x); }
inline long long __double_as_longlong(double x) { return (long long)shim::pack(x); }

#define SHIM_ATOMIC(NAME, TYPE, SUM)                                                               \
    inline TYPE NAME(TYPE* p, TYPE x) {                                                            \
        TYPE old, desired;                                                                         \
        __atomic_load(p, &old, __ATOMIC_RELAXED);                                                  \
        do desired = SUM;                                                                          \
        while (!__atomic_compare_exchange(p, &old, &desired, false, __ATOMIC_RELAXED,              \
                                          __ATOMIC_RELAXED));                                      \
        return old;                                                                                \
    }
#define SHIM_ATOMICS(TYPE)                                                                         \
    SHIM_ATOMIC(atomicAdd, TYPE, old + x)                                                          \
    SHIM_ATOMIC(atomicMin, TYPE, x < old ? x : old)                                                \
    SHIM_ATOMIC(atomicMax, TYPE, x > old ? x : old)                                                \
    SHIM_ATOMIC(atomicOr, TYPE, old | x)                                                           \
    SHIM_ATOMIC(atomicAnd, TYPE, old& x)                                                           \
    SHIM_ATOMIC(atomicXor, TYPE, old ^ x)                                                          \
    SHIM_ATOMIC(atomicExch, TYPE, x)                                                               \
    inline TYPE atomicCAS(TYPE* p, TYPE old, TYPE desired) {                                       \
        __atomic_compare_exchange(p, &old, &desired, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);   \
        return old;                                                                                \
    }
SHIM_ATOMICS(int)
SHIM_ATOMICS(unsigned)
SHIM_ATOMICS(unsigned long long)
SHIM_ATOMIC(atomicMin, long long, x < old ? x : old)
SHIM_ATOMIC(atomicMax, long long, x > old ? x : old)
SHIM_ATOMIC(atomicAdd, float, old + x)
SHIM_ATOMIC(atomicAdd, double, old + x)

#define SHIM_ACCESS(TYPE, WIDE)                                                                    \
    inline WIDE load_relaxed_bits(const TYPE* p) { return __atomic_load_n(p, __ATOMIC_RELAXED); }  \
    inline WIDE load_lagging_bits(const TYPE* p) { return __atomic_load_n(p, __ATOMIC_RELAXED); }  \
    inline WIDE load_acquire_bits(const TYPE* p) {                                                 \
        shim::give_way();                                                                          \
        return __atomic_load_n(p, __ATOMIC_ACQUIRE);                                               \
    }                                                                                              \
    inline TYPE load_once_bits(const TYPE* p) { return *p; }                                       \
    inline void store_relaxed_bits(TYPE* p, WIDE x) {                                              \
        __atomic_store_n(p, (TYPE)x, __ATOMIC_RELAXED);                                            \
    }                                                                                              \
    inline void store_release_bits(TYPE* p, WIDE x) {                                              \
        __atomic_store_n(p, (TYPE)x, __ATOMIC_RELEASE);                                            \
    }
SHIM_ACCESS(unsigned char, unsigned)
SHIM_ACCESS(unsigned short, unsigned)
SHIM_ACCESS(unsigned, unsigned)
SHIM_ACCESS(unsigned long long, unsigned long long)

// what several devices share; each of them is a launch of its own
inline unsigned long long load_acquire_system(const unsigned long long* p) {
    shim::give_way();
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}
inline void fence_system() { std::atomic_thread_fence(std::memory_order_acq_rel); }
inline void store_relaxed_system(unsigned long long* p, unsigned long long x) {
    __atomic_store_n(p, x, __ATOMIC_RELAXED);
}

// copies to shared memory, which a kernel waits for
template <class Q>
inline void copy_quad(Q* to, const Q* from) {
    *to = *from;
}
inline void copies_done() {}

// Time that this process used, an eighth of it since many threads spin: a limit of a wait does not
// run out while other processes have the processors.
inline unsigned long long globaltimer() {
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (now.tv_sec * 1000000000ull + now.tv_nsec) / 8;
}

// names that the C library has taken
#define select kernel_select
#define write kernel_write
