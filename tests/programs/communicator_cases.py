"""The contract of communicators, checked against NumPy on the data of all shards at once.

Every process makes the data of all shards from one seed, so that it knows what has to come. Run as
a program it is one process of several: see `main`.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from spgraph.containers.storage.arrays import device_of, move, on_device
from spgraph.distributed.communicators import (
    Communicator,
    MpiCommunicator,
    NcclCommunicator,
    TcpStore,
)
from spgraph.errors import CommunicationError

NUMBERS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split()
TYPES = ["bool", *NUMBERS]


def numbers(chance: np.random.Generator, size: Any, dtype: str) -> np.ndarray:
    """Random numbers: floats whose sums depend on the order, integers that fill the type."""
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return chance.random(size) < 0.3
    if kind.kind == "f":
        return (chance.standard_normal(size) * 10.0 ** chance.integers(-3, 4, size)).astype(kind)
    limits = np.iinfo(kind)
    return chance.integers(limits.min, limits.max, size, dtype=kind, endpoint=True)


def size_patterns(shards: int) -> list[list[int]]:
    """Equal, growing, with gaps, and nothing at all."""
    return [
        [5] * shards,
        [3 * p + 1 for p in range(shards)],
        [(7 * p) % 5 * (p % 2) for p in range(shards)],
        [0] * shards,
        [20_000 + 13 * p for p in range(shards)],
    ]


def sent(comm: Communicator, arrays: Sequence[np.ndarray]) -> list[Any]:
    """What the local shards hold of the `arrays` of all shards, on their devices."""
    return [
        move(arrays[p].copy(), device) for p, device in zip(comm.local, comm.devices, strict=True)
    ]


def spoil(arrays: Sequence[Any]) -> None:
    """Overwrite arguments once the call has returned: results must not notice."""
    for array in arrays:
        with on_device(device_of(array)):
            octets = array.reshape(-1).view(np.uint8)
            octets ^= 255


def same(
    comm: Communicator, came: Sequence[Any], expected: Sequence[np.ndarray], what: Any
) -> None:
    """`came`, one for each local shard, is what is `expected` of them, in place and kind.

    Bit by bit, but for sums of floats through NCCL, whose order is its own.
    """
    assert len(came) == len(comm.local) == len(expected), what
    for array, device, target in zip(came, comm.devices, expected, strict=True):
        assert device_of(array) == device, what
        assert array.dtype == target.dtype and array.shape == target.shape, what
        found = move(array, "cpu")
        if comm.name == "nccl" and target.dtype.kind == "f" and "sum" in what:
            size = np.abs(target).max(initial=1.0)
            np.testing.assert_allclose(found, target, rtol=1e-5, atol=1e-5 * size, err_msg=what)
        else:
            np.testing.assert_array_equal(found, target, err_msg=str(what), strict=True)


def gathers(comm: Communicator) -> None:
    for dtype in TYPES:
        for pattern in size_patterns(comm.num_shards):
            chance = np.random.default_rng([1, *pattern])
            whole = [numbers(chance, n, dtype) for n in pattern]
            expected = [np.concatenate(whole)] * len(comm.local)
            for sizes in (None, pattern):
                before = comm.bytes_sent
                parts = sent(comm, whole)
                came = comm.all_gather(parts, sizes=sizes)
                spoil(parts)
                same(comm, came, expected, (dtype, pattern))
                own = sum(whole[p].nbytes for p in comm.local)
                assert comm.bytes_sent - before == own * (comm.num_shards - 1)
    # views with gaps between the elements
    whole = [np.arange(p, p + 40, dtype=np.int32) for p in range(comm.num_shards)]
    parts = [part[::3] for part in sent(comm, whole)]
    same(
        comm, comm.all_gather(parts), [np.concatenate([w[::3] for w in whole])] * len(parts), "gaps"
    )


def exchanges(comm: Communicator) -> None:
    for dtype in TYPES:
        for seed, most in enumerate((0, 1, 4, 3000)):
            chance = np.random.default_rng([2, seed])
            sizes = chance.integers(0, most, (comm.num_shards, comm.num_shards), endpoint=True)
            check_exchange(comm, sizes, dtype, seed)


def check_exchange(comm: Communicator, sizes: np.ndarray, dtype: str, seed: int) -> None:
    """sizes[p, q] elements go from shard p to shard q."""
    chance = np.random.default_rng([3, seed])
    whole = [[numbers(chance, int(n), dtype) for n in row] for row in sizes]
    table = [sizes[:, q].tolist() for q in comm.local]
    for known, into in ((None, False), (table, False), (table, True)):
        before = comm.bytes_sent
        parts = [
            [move(part.copy(), device) for part in whole[p]]
            for p, device in zip(comm.local, comm.devices, strict=True)
        ]
        if known is None or not into:
            came = comm.all_to_all(parts, sizes=known)
        else:
            ends = [np.cumsum(row)[:-1] for row in known]
            empty = [np.zeros(sum(row), dtype) for row in known]
            wholes = [
                move(whole, device) for whole, device in zip(empty, comm.devices, strict=True)
            ]
            filled = comm.all_to_all_into(parts, known, wholes)
            assert all(one is other for one, other in zip(filled, wholes, strict=True))
            came = [list(np.split(whole, end)) for whole, end in zip(filled, ends, strict=True)]
        for row in parts:
            spoil(row)
        for p in range(comm.num_shards):
            expected = [whole[p][q] for q in comm.local]
            same(comm, [row[p] for row in came], expected, ("all_to_all", dtype, seed, p))
        leaving = sum(
            whole[p][q].nbytes for p in comm.local for q in range(comm.num_shards) if p != q
        )
        assert comm.bytes_sent - before == leaving


def folded(arrays: Sequence[np.ndarray], op: str) -> np.ndarray:
    """The reduction, in the order of the shards."""
    total = arrays[0].copy()
    for array in arrays[1:]:
        total = {"sum": np.add, "min": np.fmin, "max": np.fmax, "or": np.bitwise_or}[op](
            total, array
        )
    return total


def combinations() -> list[tuple[str, str]]:
    pairs = [(op, dtype) for dtype in NUMBERS for op in ("sum", "min", "max", "or")]
    pairs = [(op, dtype) for op, dtype in pairs if op != "or" or "float" not in dtype]
    return [*pairs, ("min", "bool"), ("max", "bool"), ("or", "bool")]


def reductions(comm: Communicator) -> None:
    for op, dtype in combinations():
        for shape in ((0,), (1,), (), (3, 4), (9001,)):
            chance = np.random.default_rng([4, *shape])
            whole = [np.asarray(numbers(chance, shape, dtype)) for _ in range(comm.num_shards)]
            parts = sent(comm, whole)
            came = comm.all_reduce(parts, op)
            spoil(parts)
            same(comm, came, [folded(whole, op)] * len(parts), f"all_reduce {op} {dtype} {shape}")
        for pattern in size_patterns(comm.num_shards):
            chance = np.random.default_rng([5, *pattern])
            whole = [numbers(chance, sum(pattern), dtype) for _ in range(comm.num_shards)]
            before, parts = comm.bytes_sent, sent(comm, whole)
            came = comm.reduce_scatter(parts, pattern, op)
            spoil(parts)
            starts = np.cumsum([0, *pattern])
            expected = [folded(whole, op)[starts[q] : starts[q + 1]] for q in comm.local]
            same(comm, came, expected, f"reduce_scatter {op} {dtype} {pattern}")
            each = np.dtype(dtype).itemsize
            leaving = sum(sum(pattern) - pattern[q] for q in comm.local) * each
            assert comm.bytes_sent - before == leaving
    holes = [np.full(4, np.nan) for _ in range(comm.num_shards)]
    for p, hole in enumerate(holes):
        hole[1:] = [p, -p, p if p == 0 else np.nan]
    for op in ("min", "max"):
        same(
            comm, comm.all_reduce(sent(comm, holes), op), [folded(holes, op)] * len(comm.local), op
        )


def broadcasts(comm: Communicator) -> None:
    for seed, (dtype, shape) in enumerate(
        [
            ("bool", (5,)),
            ("int16", ()),
            ("float64", (2, 3, 4)),
            ("uint32", (0,)),
            ("int8", (70001,)),
        ]
    ):
        for root in range(comm.num_shards):
            whole = np.asarray(numbers(np.random.default_rng([6, seed, root]), shape, dtype))
            given = None
            if root in comm.local:
                given = move(whole.copy(), comm.devices[root - comm.local.start])
            before = comm.bytes_sent
            came = comm.broadcast(given, root)
            if given is not None:
                spoil([given])
            same(comm, came, [whole] * len(comm.local), f"broadcast {dtype} {shape} {root}")
            leaving = 0 if given is None else whole.nbytes * (comm.num_shards - 1)
            assert comm.bytes_sent - before == leaving


def agreements(comm: Communicator) -> None:
    ranks = np.arange(comm.processes)
    own = np.array([1, comm.rank, -(2**40) - comm.rank], np.int64)
    triangle = int(ranks.sum())
    total = [comm.processes, triangle, -(2**40) * comm.processes - triangle]
    assert comm.all_reduce_host(own, "sum").tolist() == total
    assert comm.all_reduce_host(own, "min").tolist() == [1, 0, -(2**40) - int(ranks[-1])]
    assert comm.all_reduce_host(own, "max").tolist() == [1, int(ranks[-1]), -(2**40)]
    assert comm.all_reduce_host(own[1:2], "or").tolist() == [int(np.bitwise_or.reduce(ranks))]
    shares = 1.0 / (3.0 + ranks)
    whole = shares[0]
    for share in shares[1:]:
        whole += share
    result = comm.all_reduce_host(shares[comm.rank : comm.rank + 1], "sum")
    assert result.dtype == np.float64 and result[0] == whole
    assert comm.all_reduce_host(np.zeros(0), "sum").size == 0
    given = np.ones(2)
    assert not np.shares_memory(comm.all_reduce_host(given, "max"), given)


def fetches(comm: Communicator) -> None:
    for n in (1, 3, 70_000, 0, 2):
        whole = [np.arange(p, p + n) for p in range(comm.num_shards)]
        came = comm.fetch(sent(comm, whole))
        for p, array in zip(comm.local, came, strict=True):
            assert type(array) is np.ndarray
            np.testing.assert_array_equal(array, whole[p])


def refusals(comm: Communicator) -> None:
    """What is wrong in every process alike raises everywhere, and nothing is left half done."""
    parts = sent(comm, [np.arange(3.0)] * comm.num_shards)
    few = parts[:-1]
    flags, complex_parts, single = [], [], []
    for part, device in zip(parts, comm.devices, strict=True):
        with on_device(device):
            flags.append(part > 1)
            complex_parts.append(part + 0j)
            single.append(part.astype(np.float32))
    wrong: list[tuple[type[Exception], str, Callable[[], Any]]] = [
        (ValueError, "one array for each local shard", lambda: comm.all_gather(few)),
        (ValueError, "1-D", lambda: comm.all_gather([part.reshape(1, 3) for part in parts])),
        (ValueError, "sizes", lambda: comm.all_gather(parts, sizes=[3] * (comm.num_shards + 1))),
        (ValueError, "the part has 3", lambda: comm.all_gather(parts, sizes=[4] * comm.num_shards)),
        (ValueError, "expected .* arrays for each", lambda: comm.all_to_all([few] * len(parts))),
        (ValueError, "op: expected", lambda: comm.all_reduce(parts, "times")),  # type: ignore
        (TypeError, "bits", lambda: comm.all_reduce(parts, "or")),
        (TypeError, "bool", lambda: comm.all_reduce(flags, "sum")),
        (
            ValueError,
            r"sum\(sizes\)",
            lambda: comm.reduce_scatter(parts, [7] * comm.num_shards, "sum"),
        ),
        (ValueError, "root", lambda: comm.broadcast(None, comm.num_shards)),
        (TypeError, "int64 or float64", lambda: comm.all_reduce_host(np.ones(2, np.int8), "sum")),
        (TypeError, "integers or floats", lambda: comm.all_gather(complex_parts)),
    ]
    if comm.devices[0] == "cpu":  # CuPy has no such arrays; MPI sends bytes as they lie
        swapped = [np.asarray(part.astype(">f8")) for part in parts]
        calls: list[Callable[[], Any]] = [
            lambda: comm.all_gather(swapped),
            lambda: comm.all_to_all([[part] * comm.num_shards for part in swapped]),
            lambda: comm.all_reduce(swapped, "sum"),
        ]
        wrong += [(TypeError, "byte order", call) for call in calls]
    for kind, words, call in wrong:
        with pytest.raises(kind, match=words):
            call()
    if comm.processes < comm.num_shards:  # at least two local shards
        mixed = [single[0], *parts[1:]]
        with pytest.raises(TypeError, match="one type"):
            comm.all_gather(mixed)
    elif comm.processes > 1:
        mixed = single if comm.rank else parts
        with pytest.raises(TypeError, match="one type"):
            comm.all_gather(mixed)
    same(comm, comm.all_reduce(parts, "max"), [np.arange(3.0)] * len(parts), "after refusals")


def prepared(comm: Communicator) -> None:
    """Gathers of two kinds in one call that is made again and again, of what is there then."""
    expected = [np.arange(3 * comm.num_shards), np.arange(5.0 * comm.num_shards)]
    parts = [sent(comm, np.split(whole, comm.num_shards)) for whole in expected]
    wholes = [sent(comm, [np.zeros_like(whole)] * comm.num_shards) for whole in expected]
    nothing = sent(comm, [np.zeros(0)] * comm.num_shards)
    call = comm.gathering("again", *zip(parts, wholes, strict=True), (nothing, nothing))
    for turn in range(3):
        before = comm.bytes_sent, comm.calls
        call()
        for came, whole in zip(wholes, expected, strict=True):
            same(comm, came, [whole] * len(comm.local), ("prepared", turn))
        own = sum(part.nbytes for part in (*parts[0], *parts[1]))
        sent_now = comm.bytes_sent - before[0]
        assert (sent_now, comm.calls - before[1]) == (own * (comm.num_shards - 1), 1)
        for part, whole in zip(parts, expected, strict=True):
            comm.on_each(lambda xp, own: xp.add(own, 1, out=own), part)
            whole += 1


CASES = (gathers, exchanges, prepared, reductions, broadcasts, agreements, fetches, refusals)


def contract(comm: Communicator) -> None:
    """All of it."""
    assert list(comm.local) == sorted(comm.local) and len(comm.devices) == len(comm.local) > 0
    assert 0 <= comm.rank < comm.processes and set(comm.local) <= set(range(comm.num_shards))
    for case in CASES:
        before = comm.calls
        case(comm)
        comm.check()
        assert comm.calls > before or case is fetches
    same(
        comm,
        comm.all_reduce(sent(comm, [np.ones(2)] * comm.num_shards), "max"),
        [np.ones(2)] * len(comm.local),
        "at the end",
    )


def rounds(comm: Communicator) -> None:
    """Collectives without end; the last process kills itself in the middle of them."""
    sizes = (1000, 1 << 18, 1 << 21)
    inputs = [sent(comm, [np.ones(size)] * comm.num_shards) for size in sizes]
    for i in range(10**9):
        parts = inputs[i % len(inputs)]
        came = comm.fetch(comm.all_reduce(parts, "sum"))
        # every one is right, to the last: what is broken off is not handed out
        assert all((found == comm.num_shards).all() for found in came)
        if comm.name == "nccl":
            gathered = comm.fetch(comm.all_gather(parts, sizes=[parts[0].size] * comm.num_shards))
            assert all((found == 1).all() for found in gathered)
        if i == 20 and comm.rank == comm.processes - 1:
            os.kill(os.getpid(), 9)
        if i == 20 and comm.rank == 0:
            print("rounds: process 0 has come to round 20", flush=True)


def unequal(comm: Communicator) -> None:
    """The last process leaves for an error that the others do not have."""
    parts = sent(comm, [np.ones(10)] * comm.num_shards)
    while True:
        comm.fetch(comm.all_reduce(parts, "sum"))
        if comm.rank == comm.processes - 1:
            raise ValueError("something of this process alone")


def large(comm: Communicator) -> None:
    """Messages of more than 2^31 bytes, which is 6 GB of memory, from process 0 to 1 and around."""
    n = 2**31 + 2**28
    part = np.arange(n if comm.rank == 0 else 0, dtype=np.uint8)
    (came,) = comm.all_to_all([[np.zeros(3, np.uint8), part]])
    if comm.rank == 1:
        assert came[0].size == n and came[1].size == 0
        assert (came[0][::1001] == np.arange(0, n, 1001).astype(np.uint8)).all()
    del came, part
    (whole,) = comm.all_gather([np.full(n // 2, comm.rank + 1, np.uint8)])
    assert whole[[0, n // 2 - 1, n // 2, -1]].tolist() == [1, 1, 2, 2]


def store(comm: Communicator) -> None:
    """A store that MPI tells the way to."""
    from mpi4py import MPI

    with TcpStore.over_mpi(MPI.COMM_WORLD) as meeting:
        meeting.set(f"from {comm.rank}", bytes([comm.rank]))
        meeting.barrier("all")
        assert meeting.get(f"from {(comm.rank + 1) % comm.processes}")[0] == (
            (comm.rank + 1) % comm.processes
        )


def main(kind: str, what: str, *arguments: str) -> None:
    """One process: `mpi WHAT BLOCKS` under mpiexec, or `nccl WHAT ADDRESS RANK PROCESSES`."""
    runs = (contract, rounds, unequal, large, store)
    run = {function.__name__: function for function in runs}[what]
    if kind == "mpi":
        with MpiCommunicator(shards=int(arguments[0])) as comm:
            run(comm)
    else:
        address, rank, processes = arguments[0], int(arguments[1]), int(arguments[2])
        meeting = TcpStore(address, rank, processes, timeout=120)
        try:
            with NcclCommunicator.for_process(f"cuda:{rank}", meeting) as comm:
                run(comm)
        except CommunicationError as error:
            print(f"process {rank} raised: {error}", flush=True)
            if os.environ.get("SPGRAPH_LAUNCHED"):
                raise
            os._exit(1)  # what is asked here is whether it raises, not how a broken GPU is left
    print(f"{what}: process {comm.rank} of {comm.processes} is done", flush=True)


if __name__ == "__main__":
    started = time.monotonic()
    try:
        main(*sys.argv[1:])
    finally:
        print(f"after {time.monotonic() - started:.1f} s", file=sys.stderr, flush=True)
