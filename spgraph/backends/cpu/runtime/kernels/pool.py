# The waiting of threads: for work, at barriers, and for the end of a launch. Compiled once, by
# words.py: kernels call `run` and `wait_at_barrier`, the workers `serve`. All arguments are
# addresses of words: see teams.py.
#
# A waiting thread spins for a short time, then sleeps until it is woken: the thread that it waits
# for may need its processor. To sleep and to be woken takes tens of microseconds, so it spins for
# twice as long as it had to wait lately, if that was not long. On a machine with other work most
# waits are either very short or end when the system lets another thread run, after milliseconds:
# then it hardly spins. (A thread that gives way to others as it spins loses milliseconds there.)
#
# A worker may come late: on a machine with other work, or where the system has woken it on the
# processor of the caller. Thread 0 does not wait for those that have not come when it has done its
# own part: it does theirs, too, of which little is left where threads take chunks of the work by a
# counter. In a kernel whose threads meet at a barrier all of them have come by then. Each part is
# claimed by one atomic instruction, by its worker or by thread 0, so that a worker that finds its
# part taken never looks at the arguments of the launch, which may have ended.

from spgraph.backends.cpu.runtime.instructions import (
    FUTEX,
    add,
    call,
    check_signals,
    exchange,
    load,
    nanoseconds,
    pause,
    replace,
    sleep_while,
    store,
    wake,
)
from spgraph.backends.cpu.runtime.teams import (
    ARRIVED,
    ASLEEP,
    ASLEEP_AT_DONE,
    ASLEEP_AT_ROUND,
    AT_BARRIER,
    CALLER,
    CODE,
    CONTROL,
    DATA,
    DONE,
    ENDED,
    EXCEPTION,
    FAILED,
    FOR_WORK,
    FUNCTION,
    INTERVAL,
    LOCK,
    NEVER,
    NEXT,
    OPEN,
    RAISED,
    RECORD,
    RECORDS,
    ROUND,
    STOP,
    STOPPED,
    THREAD,
    THREADS,
    WORK,
)

# nanoseconds that a thread spins before it sleeps, at least; the longest wait after which it spins
# for longer; by how much that falls with each shorter wait
SPIN = 5_000
LONGEST = 100_000
FORGOTTEN = 2_000
# the longest sleep, in nanoseconds, without futexes, where threads cannot be woken
NAP = 5_000_000
HOUR = 3600_000_000_000


def signalled(sync):
    """Whether a signal handler raised an exception; checks for signals every 50 ms."""
    due = load(sync + NEXT)
    return due != NEVER and nanoseconds() >= due and check_signals(sync)


def spin_while(word, value, spin, start):
    """Spin while the word has this value; True if it still has it after the time that the thread
    has learned, from `start` on, which it keeps at `spin`.
    """
    end = start + max(SPIN, load(spin))
    while load(word) == value:
        if nanoseconds() >= end:
            return True
        pause()
    return False


def learn(spin, start):
    """Remember how long a wait took that began at `start`; longer ones are forgotten in time."""
    spent = nanoseconds() - start
    store(spin, 0 if spent > LONGEST else max(2 * spent, load(spin) - FORGOTTEN))


def limit_of(sync, sleeps):
    """How many nanoseconds to sleep, after having slept `sleeps` times."""
    if not FUTEX:
        return min(NAP, 10_000 << min(sleeps, 20))
    return INTERVAL if load(sync + NEXT) != NEVER else HOUR


def stop_all(control):
    """Make all threads leave the kernel, also those that wait at a barrier."""
    for thread in range(load(control + THREADS)):
        store(control + RECORDS + thread * RECORD + STOP, 1)
    add(control + ROUND, 1)
    wake(control + ROUND)


def fail(control, code, exception):
    """Record that a thread left the kernel with an error, unless another one did so before."""
    if replace(control + FAILED, 0, 1):
        store(control + CODE, code)
        store(control + EXCEPTION, exception)
        stop_all(control)


def do_part(control, sync, thread):
    """Call the kernel as thread number `thread`."""
    data = load(control + DATA)
    code = call(load(control + FUNCTION), data, thread, sync, sync + RAISED)
    if code > 0:
        fail(control, code, load(sync + RAISED))


def wait_at_barrier(sync):
    """The barrier: returns 0 when all threads have arrived, 1 if the launch must stop."""
    control = load(sync + CONTROL)
    round_ = load(control + ROUND)
    if load(sync + STOP) != 0:  # else ROUND changes if it is set from now on
        return 1
    if add(control + ARRIVED, 1) == load(control + THREADS) - 1:
        store(control + ARRIVED, 0)
        add(control + ROUND, 1)
        if load(control + ASLEEP_AT_ROUND) != 0:
            wake(control + ROUND)
        return load(sync + STOP) | signalled(sync)
    start = nanoseconds()
    if spin_while(control + ROUND, round_, sync + AT_BARRIER, start):
        add(control + ASLEEP_AT_ROUND, 1)
        sleeps = 0
        while load(control + ROUND) == round_:
            sleep_while(control + ROUND, round_, limit_of(sync, sleeps))
            sleeps += 1
            if signalled(sync):
                return 1
        add(control + ASLEEP_AT_ROUND, -1)
    learn(sync + AT_BARRIER, start)
    return load(sync + STOP) | signalled(sync)


def lock(control, sync):
    """Take the lock of the team; False if a signal handler raised an exception first."""
    sleeps = 0
    if replace(control + LOCK, 0, 1):
        return True
    while exchange(control + LOCK, 2) != 0:  # 2: a thread may be sleeping
        sleep_while(control + LOCK, 2, limit_of(sync, sleeps))
        sleeps += 1
        if signalled(sync):
            return False
    return True


def unlock(control):
    if exchange(control + LOCK, 0) == 2:
        wake(control + LOCK)


def do_the_rest(control, sync, threads):
    """Do the parts of the workers that have not come, on thread 0; returns how many have come."""
    come = threads - 1
    for thread in range(1, threads):
        word = sync + thread * RECORD + WORK
        if replace(word, OPEN, 0) or replace(word, OPEN + ENDED, ENDED):
            come -= 1
            if load(sync + STOP) == 0:
                do_part(control, sync, thread)
    return come


def wait_for_others(control, sync, others):
    """Wait until so many other threads have left the kernel; True if a signal handler raised an
    exception meanwhile.
    """
    raised = False
    start = nanoseconds()
    done = load(control + DONE)
    while done != others and not spin_while(control + DONE, done, sync + FOR_WORK, start):
        done = load(control + DONE)
    if done == others:
        learn(sync + FOR_WORK, start)
        return raised
    sleeps = 0
    store(control + ASLEEP_AT_DONE, 1)
    while True:
        done = load(control + DONE)
        if done == others:
            learn(sync + FOR_WORK, start)
            return raised
        sleep_while(control + DONE, done, limit_of(sync, sleeps))
        sleeps += 1
        if signalled(sync):
            raised = True
            stop_all(control)


def run(caller, function, data, threads, raised):
    """Call `function` on all threads; returns the status of the first that failed, and stores its
    exception at `raised`.
    """
    control = load(caller + CONTROL)
    if not lock(control, caller):
        return STOPPED
    sync = control + RECORDS
    store(sync + CALLER, caller)
    store(sync + NEXT, load(caller + NEXT))
    for word in (ARRIVED, ASLEEP_AT_ROUND, DONE, ASLEEP_AT_DONE, FAILED):
        store(control + word, 0)
    store(control + FUNCTION, function)
    store(control + DATA, data)
    store(control + THREADS, threads)
    for thread in range(threads):
        store(sync + thread * RECORD + STOP, 0)
    for thread in range(1, threads):
        word = sync + thread * RECORD + WORK
        add(word, OPEN)
        if load(word - WORK + ASLEEP) != 0:
            wake(word)
    do_part(control, sync, 0)
    come = do_the_rest(control, sync, threads)
    stopped = wait_for_others(control, sync, come)
    store(caller + NEXT, load(sync + NEXT))
    code = load(control + CODE) if load(control + FAILED) != 0 else 0
    store(raised, load(control + EXCEPTION))
    unlock(control)
    return STOPPED if stopped else code


def serve(sync):
    """The loop of a worker: does its part of each launch to which it comes in time, until it must
    end.
    """
    control = load(sync + CONTROL)
    while True:
        start = nanoseconds()
        if spin_while(sync + WORK, 0, sync + FOR_WORK, start):
            store(sync + ASLEEP, 1)
            sleeps = 0
            while load(sync + WORK) == 0:
                sleep_while(sync + WORK, 0, limit_of(sync, sleeps))
                sleeps += 1
            store(sync + ASLEEP, 0)
        learn(sync + FOR_WORK, start)
        if load(sync + WORK) >= ENDED:
            return 0
        if not replace(sync + WORK, OPEN, 0):
            continue
        do_part(control, sync, load(sync + THREAD))
        add(control + DONE, 1)
        if load(control + ASLEEP_AT_DONE) != 0:
            wake(control + DONE)


def end(control, threads):
    """End the workers; a running kernel stops."""
    stop_all(control)
    for thread in range(threads):
        word = control + RECORDS + thread * RECORD + WORK
        add(word, ENDED)
        wake(word)
    return 0
