// How cuda_host_shim.h runs fibers and blocks: of this, which no kernel's text changes, g++ makes one
// object that every program is linked with.
#include <memory>
#include <thread>
#include <vector>
#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

#include "cuda_host_shim.h" // last: its macros would change what others declare

namespace shim {

namespace {

constexpr size_t STACK = 1 << 16;

#ifdef __SANITIZE_ADDRESS__
// That of the C library: AddressSanitizer's makes all memory up to the end of the thread's stack
// accessible, at each of millions of jumps
void jump(jmp_buf& to) {
    static auto unwatched =
        (void (*)(jmp_buf, int))dlsym(dlopen("libc.so.6", RTLD_LAZY), "_longjmp");
    unwatched(to, 1);
}
#else
void jump(jmp_buf& to) { _longjmp(to, 1); }
#endif

void go_on(Fiber& f) {
    current = &f;
    if (f.begun) jump(f.at);
    f.begun = true;
    setcontext(&f.context);
}

// The last thread has come to a barrier, or has ended while the others are there.
void release(Block& b) {
    b.vote = b.votes;
    b.votes = 0;
    b.arrived = 0;
    b.generation++;
}

void enter() {
    Block& b = *block;
    b.invoke(b.arguments);
    current->done = true;
    b.live--;
    b.waits = 0;
    if (b.arrived && b.arrived == b.live) release(b);
    for (unsigned i = 0; i < b.threads; i++)
        if (!b.fibers[i].done) go_on(b.fibers[i]);
    jump(b.scheduler);
}

void run_block(void (*invoke)(void**), void** arguments, unsigned index, unsigned threads,
               unsigned blocks) {
    static thread_local Block b;
    static thread_local std::vector<Fiber> fibers;
    static thread_local std::vector<Warp> warps;
    // left as they are: most of their pages are never touched
    static thread_local std::unique_ptr<char[]> stacks;
    static thread_local size_t stacked = 0;
    block = &b;
    block_index.x = index;
    block_size.x = threads;
    grid_size.x = blocks;
    fibers.resize(threads);
    if (stacked < threads) {
        stacks.reset(new char[threads * STACK]);
        stacked = threads;
    }
    warps.assign((threads + 31) / 32, Warp());
    b.fibers = fibers.data();
    b.warps = warps.data();
    b.threads = threads;
    b.invoke = invoke;
    b.arguments = arguments;
    b.arrived = b.generation = 0;
    b.votes = b.vote = 0;
    b.live = threads;
    b.waits = 0;
    for (unsigned t = 0; t < threads; t++) {
        Fiber& f = b.fibers[t];
        f.thread.x = t;
        f.begun = f.done = false;
        getcontext(&f.context);
        f.context.uc_stack.ss_sp = stacks.get() + t * STACK;
        f.context.uc_stack.ss_size = STACK;
        f.context.uc_link = nullptr;
        makecontext(&f.context, enter, 0);
    }
    if (!_setjmp(b.scheduler)) go_on(b.fibers[0]);
}

} // namespace

// Who looks for long sleeps in between: blocks that wait for each other are more threads than there
// are processors.
void give_way() {
    static thread_local unsigned looks;
    if (++looks % 64)
        sched_yield();
    else
        usleep(50);
}

void wait() {
    Block& b = *block;
    if (++b.waits > 4096ull * b.threads) {
        std::fprintf(stderr, "host shim: all threads of block %u wait\n", block_index.x);
        std::abort();
    }
    Fiber* self = current;
    Fiber* next = self;
    do next = next + 1 == b.fibers + b.threads ? b.fibers : next + 1;
    while (next->done && next != self);
    if (next == self) return;
    if (!_setjmp(self->at)) go_on(*next);
}

int sync_threads(int vote) {
    Block& b = *block;
    unsigned generation = b.generation;
    b.votes |= vote;
    if (++b.arrived == b.live) {
        release(b);
        b.waits = 0;
    }
    while (b.generation == generation) wait();
    return b.vote;
}

void launch(void (*invoke)(void**), void** arguments, unsigned blocks, unsigned threads,
            unsigned concurrent) {
    std::atomic<unsigned> next{0};
    std::vector<std::thread> workers;
    for (unsigned w = 0; w < (concurrent < blocks ? concurrent : blocks); w++)
        workers.emplace_back([&] {
            for (unsigned b; (b = next++) < blocks;)
                run_block(invoke, arguments, b, threads, blocks);
        });
    for (std::thread& worker : workers) worker.join();
}

} // namespace shim
