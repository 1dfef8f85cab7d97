// What is NVIDIA's own: the width of a warp, what its lanes do together, and inline PTX. None of it
// stands anywhere else in the kernels' texts. The shim that runs kernels on a CPU
// (tests/helpers/shim/cuda_host_shim.h) brings its own of what stands here.

// ---- the lanes of a warp ------------------------------------------------------------------------

constexpr int WARP = 32;
constexpr u32 FULL_WARP = 0xffffffffu;

DEVICE int lane_id() { return threadIdx.x & (WARP - 1); }
DEVICE int warp_id() { return threadIdx.x / WARP; }

// Masks, a bit a lane: the lanes before this one, the lanes up to `lane`, and the aligned group of
// `width` lanes (a power of 2) that this one belongs to.
DEVICE u32 lanes_below() { return (1u << lane_id()) - 1u; }
DEVICE u32 lanes_through(int lane) { return FULL_WARP >> (WARP - 1 - lane); }
DEVICE u32 lane_group(int width) {
    return width == WARP ? FULL_WARP : ((1u << width) - 1) << (lane_id() & ~(width - 1));
}

// What the lanes of a warp do together: all call, or those named by `mask`.
DEVICE void warp_sync() { __syncwarp(); }
DEVICE u32 warp_ballot(int vote) { return __ballot_sync(FULL_WARP, vote); }
DEVICE bool warp_any(bool vote, u32 mask = FULL_WARP) { return __any_sync(mask, vote); }
DEVICE u32 reduce_add(u32 value) { return __reduce_add_sync(FULL_WARP, value); }
DEVICE u32 reduce_or(u32 value) { return __reduce_or_sync(FULL_WARP, value); }
template <class T>
DEVICE T shuffle(T value, int source) {
    return from_bits<T>((Bits<T>)__shfl_sync(FULL_WARP, (Word<T>)to_bits(value), source));
}
template <class T>
DEVICE T shuffle_xor(T value, int distance) {
    return from_bits<T>((Bits<T>)__shfl_xor_sync(FULL_WARP, (Word<T>)to_bits(value), distance));
}
template <class T>
DEVICE T shuffle_up(T value, int distance) {
    return from_bits<T>((Bits<T>)__shfl_up_sync(FULL_WARP, (Word<T>)to_bits(value), distance));
}

// ---- memory that other threads, blocks and GPUs change ------------------------------------------

// A type in memory, the register that holds it, and what PTX calls both.
#define ALL_WIDTHS(ACCESS, NAME, ORDER)                                                            \
    ACCESS(NAME, ORDER, u8, u32, "u8", "r")                                                        \
    ACCESS(NAME, ORDER, u16, u32, "u16", "r")                                                      \
    ACCESS(NAME, ORDER, u32, u32, "u32", "r")                                                      \
    ACCESS(NAME, ORDER, u64, u64, "u64", "l")
#define LOAD(NAME, ORDER, TYPE, WIDE, WIDTH, REGISTER)                                             \
    DEVICE WIDE NAME##_bits(const TYPE* p) {                                                       \
        WIDE x;                                                                                    \
        asm volatile("ld." ORDER "." WIDTH " %0, [%1];" : "=" REGISTER(x) : "l"(p) : "memory");    \
        return x;                                                                                  \
    }
#define STORE(NAME, ORDER, TYPE, WIDE, WIDTH, REGISTER)                                            \
    DEVICE void NAME##_bits(TYPE* p, WIDE x) {                                                     \
        asm volatile("st." ORDER "." WIDTH " [%0], %1;" ::"l"(p), REGISTER(x) : "memory");         \
    }
ALL_WIDTHS(LOAD, load_relaxed, "relaxed.gpu")
ALL_WIDTHS(LOAD, load_acquire, "acquire.gpu")
ALL_WIDTHS(LOAD, load_lagging, "relaxed.cta")
ALL_WIDTHS(STORE, store_relaxed, "relaxed.gpu")
ALL_WIDTHS(STORE, store_release, "release.gpu")
#undef LOAD
#undef STORE

// *p for memory that no one writes during the launch and that is read once: it takes no place in
// the cache.
#define LOAD_ONCE(TYPE, WIDE, WIDTH, REGISTER)                                                     \
    DEVICE TYPE load_once_bits(const TYPE* p) {                                                    \
        WIDE x;                                                                                    \
        asm("ld.global.nc.L1::no_allocate." WIDTH " %0, [%1];" : "=" REGISTER(x) : "l"(p));        \
        return (TYPE)x;                                                                            \
    }
LOAD_ONCE(u8, u32, "u8", "r")
LOAD_ONCE(u16, u16, "u16", "h")
LOAD_ONCE(u32, u32, "u32", "r")
LOAD_ONCE(u64, u64, "u64", "l")
#undef LOAD_ONCE

// Nanoseconds of the device's clock; it ticks about once a microsecond.
DEVICE u64 globaltimer() {
    u64 t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

// What peers see and write, in the memory of any GPU.
DEVICE u64 load_acquire_system(const u64* p) {
    u64 x;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(x) : "l"(p) : "memory");
    return x;
}
DEVICE void store_relaxed_system(u64* p, u64 x) {
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(p), "l"(x) : "memory");
}
DEVICE void fence_system() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

// ---- shared memory, and copies to it ------------------------------------------------------------

// As load_once.
DEVICE Quad load_quad(const Quad* p) {
    Quad q;
    asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(q.x[0]), "=r"(q.x[1]), "=r"(q.x[2]), "=r"(q.x[3])
        : "l"(p));
    return q;
}
// The lower or the upper 16 bits of a word: a byte permutation, which leaves a shift of what it returns
// to the addition that follows, where compilers would shift and mask before.
DEVICE u32 half_of(u32 word, int k) { return __byte_perm(word, 0, k ? 0x4432 : 0x4410); }
// Have the L2 load the 128 bytes around an address.
DEVICE void prefetch(const void* p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }
// Start a copy to shared memory; copies_done waits for all that this thread has started.
DEVICE void copy_quad(Quad* to, const Quad* from) {
    asm volatile("{\n"
                 ".reg .u64 wide;\n"
                 ".reg .u32 place;\n"
                 "cvta.to.shared.u64 wide, %0;\n"
                 "cvt.u32.u64 place, wide;\n"
                 "cp.async.cg.shared.global [place], [%1], 16;\n"
                 "}\n" ::"l"(to),
                 "l"(from)
                 : "memory");
}
DEVICE void copies_done() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// An address in shared memory. A pointer would be converted wherever it is used, by four instructions.
typedef u32 Shared;
DEVICE Shared shared_address(const void* p) {
    u32 address;
    asm volatile("{\n"
                 ".reg .u64 wide;\n"
                 "cvta.to.shared.u64 wide, %1;\n"
                 "cvt.u32.u64 %0, wide;\n"
                 "}\n"
                 : "=r"(address)
                 : "l"(p));
    return address;
}
#define LOAD(NAME, ORDER, TYPE, WIDE, WIDTH, REGISTER)                                             \
    DEVICE WIDE NAME##_bits(Shared p, TYPE) {                                                      \
        WIDE x;                                                                                    \
        asm volatile("ld." ORDER "." WIDTH " %0, [%1];" : "=" REGISTER(x) : "r"(p) : "memory");    \
        return x;                                                                                  \
    }
#define STORE(NAME, ORDER, TYPE, WIDE, WIDTH, REGISTER)                                            \
    DEVICE void NAME##_bits(Shared p, TYPE, WIDE x) {                                              \
        asm volatile("st." ORDER "." WIDTH " [%0], %1;" ::"r"(p), REGISTER(x) : "memory");         \
    }
ALL_WIDTHS(LOAD, load_shared, "shared")
ALL_WIDTHS(STORE, store_shared, "shared")
#undef LOAD
#undef STORE
#undef ALL_WIDTHS

// From here on for devices of compute capability 9.0 and later: others must not call it.
DEVICE u32 add_shared(Shared p, u32 value) {
    u32 before;
    asm volatile("atom.acq_rel.cta.shared.add.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "r"(p), "r"(value)
                 : "memory");
    return before;
}
// One thread says how many bytes will come in this phase of a barrier.
DEVICE void expect_bytes(Shared barrier, u32 bytes) {
    asm volatile("{\n"
                 ".reg .b64 state;\n"
                 "mbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1;\n"
                 "}\n" ::"r"(barrier),
                 "r"(bytes)
                 : "memory");
}
DEVICE bool phase_over(Shared barrier, u32 parity) {
    u32 over;
    asm volatile("{\n"
                 ".reg .pred over;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, over;\n"
                 "}\n"
                 : "=r"(over)
                 : "r"(barrier), "r"(parity)
                 : "memory");
    return over;
}
// Bulk copies that follow write after every load that is known to have come before: they go another
// way to shared memory than loads and stores do (PTX calls that a proxy).
DEVICE void bulk_copies_follow() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
// One thread starts to copy, and the barrier counts the bytes as they come.
DEVICE void bulk_copy(Shared to, const void* from, u32 bytes, Shared barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}
// One thread makes a barrier on which one arrival is waited for; barriers_are_set() comes behind all.
DEVICE void init_barrier(Shared barrier) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
}
DEVICE void barriers_are_set() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
