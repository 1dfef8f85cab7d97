# Vertices that threads work off in any order: each has a stack of its own, and what is too much for
# it goes, in blocks, to whoever has none left. Each vertex is pushed once. Part of the texts that
# need it; no preamble.

from spgraph.backends.cpu.device.atomics import let_others_run

# vertices of a block; a stack has its size and room for two blocks
BLOCK = np.uint64(64)
# positions of shared words, each in a cache line of its own: the first block that nobody has taken;
# where the next one goes; the threads without work
TAKEN, GIVEN, IDLE = 0, 8, 16
# nanoseconds that a thread waits before it gives up its processor, which another may need
SPIN = 5_000


@inner
def push(stack, v, blocks, ready, shared):
    """Put v on this thread's stack; of a full stack the upper half becomes a block."""
    size = np.uint64(stack[0])
    if size == BLOCK + BLOCK:
        block = np.uint64(atomic_add(shared, GIVEN, 1))
        size = BLOCK
        for i in range(BLOCK):
            blocks[block * BLOCK + i] = stack[np.uint64(1) + BLOCK + i]
        atomic_store(ready, block, True)
    stack[np.uint64(1) + size] = v
    stack[0] = size + np.uint64(1)


@inner
def pop(threads, sync, stack, blocks, ready, shared):
    """A vertex of this thread's stack, or of a block; -1 when all threads are without work: then
    `end_work` comes before the next push.
    """
    size = np.uint64(stack[0])
    if size == np.uint64(0):
        size = take_block(threads, sync, stack, blocks, ready, shared)
        if size == np.uint64(0):
            return np.int64(-1)
    stack[0] = size - np.uint64(1)
    return np.int64(stack[size])


@inner
def take_block(threads, sync, stack, blocks, ready, shared):
    """The size of this thread's empty stack when it has taken a block, or 0 when no thread has any
    work. A thread that is idle has found no block since it gave its last one.
    """
    idle = False
    until = nanoseconds() + SPIN
    while True:
        block = atomic_load(shared, TAKEN)
        if atomic_load(ready, block):
            if idle:
                atomic_add(shared, IDLE, -1)
                idle = False
            if compare_exchange(shared, TAKEN, block, block + 1):
                for i in range(BLOCK):
                    stack[np.uint64(1) + i] = blocks[np.uint64(block) * BLOCK + i]
                return BLOCK
        elif not idle:
            atomic_add(shared, IDLE, 1)
            idle = True
        elif atomic_load(shared, IDLE) == threads:
            return np.uint64(0)
        elif nanoseconds() > until:
            let_others_run()
        poll(sync)


@inner
def end_work(thread, threads, sync, shared):
    """Wait until all threads know that there is no more work, and be ready for other."""
    barrier(sync, threads)
    if thread == 0:
        shared[IDLE] = 0
    barrier(sync, threads)
