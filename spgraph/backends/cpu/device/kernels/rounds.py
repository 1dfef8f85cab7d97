# Rounds of thread 0 that other threads, the helpers, may join: thread 0 never waits for one that
# has not come yet. Part of closure.py and search_marked.py. Preamble: PATIENCE (nanoseconds that a
# helper waits for the next round before it leaves).

from spgraph.backends.cpu.device.atomics import let_others_run

# positions of shared words, each in a cache line of its own: twice the number of rounds, and one
# more during a round; the helpers in it; how many helpers have come; and have given up waiting
EPOCH, ACTIVE, HERE, GONE = 32, 40, 48, 72
# written by thread 0: whether there will be no more rounds
FINISHED = 63
# nanoseconds that a thread waits for another before it gives up its processor, which the other may
# need
SPIN = 5_000


@inner
def end_round(sync, state):
    """Wait for those helpers that take part."""
    atomic_add(state, EPOCH, 1)
    until = nanoseconds() + SPIN
    while atomic_add(state, ACTIVE, 0) != 0:
        poll(sync)
        if nanoseconds() > until:
            let_others_run()


@inner
def join_round(sync, seen, state):
    """Wait for a round after that of epoch `seen`; returns its epoch, or -1 at the end."""
    since = nanoseconds()
    while atomic_load(state, FINISHED) == 0:
        epoch = atomic_load(state, EPOCH)
        if epoch % 2 == 1 and epoch != seen:
            atomic_add(state, ACTIVE, 1)
            if atomic_add(state, EPOCH, 0) == epoch:
                return epoch
            atomic_add(state, ACTIVE, -1)
        poll(sync)
        waited = nanoseconds() - since
        if waited > PATIENCE:
            break
        if waited > SPIN:
            let_others_run()
    return np.int64(-1)
