"""Memory that runs out at any allocation of a call: operands stay, and the next call is right."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spgraph as sg
from spgraph.backends.cpu.runtime import pool
from spgraph.semirings import binary, unary

# what allocates an array, as spgraph calls it
ALLOCATING = """empty zeros ones full empty_like zeros_like ones_like full_like arange array
    concatenate repeat cumsum flatnonzero unique searchsorted sort argsort lexsort
    bincount""".split()

chance = np.random.default_rng(1)
WEIGHTS = np.where(chance.random((40, 40)) < 0.15, chance.random((40, 40)), 0)
LINKS = ((WEIGHTS + WEIGHTS.T) > 0) * 1.0

# A and S are Matrices, S symmetric; u has all entries, v three
CALLS: dict[str, Callable[..., Any]] = {
    "mxv": lambda A, S, u, v: sg.mxv(A, u),
    "mxv, push": lambda A, S, u, v: sg.mxv(A, v, direction="push"),
    "mxv into v": lambda A, S, u, v: sg.mxv(A, u, out=v, accum=binary.plus),
    "mxv under a mask": lambda A, S, u, v: sg.mxv(A, u, out=v, mask=u.S, replace=True),
    "mxm": lambda A, S, u, v: sg.mxm(A, S),
    "mxm under a mask": lambda A, S, u, v: sg.mxm(A, A.T, mask=A.S),
    "mxm into A": lambda A, S, u, v: sg.mxm(A, S, out=A, accum=binary.plus),
    "transpose": lambda A, S, u, v: A.T.dup(),
    "ewise_add": lambda A, S, u, v: sg.ewise_add(A, S, binary.plus),
    "apply in place": lambda A, S, u, v: sg.apply(u, unary.sqrt, out=u),
    "assign": lambda A, S, u, v: sg.assign(A, 3.0, [1, 2], [3, 4]),
    "extract": lambda A, S, u, v: sg.extract(A, [1, 2, 3], [3, 4, 5]),
    "an entry of A": lambda A, S, u, v: A.__setitem__((3, 4), 5.0),
    "entries of v": lambda A, S, u, v: v.__setitem__([4, 9], 5.0),
    "bfs": lambda A, S, u, v: sg.bfs(A, 0).level,
    "sssp": lambda A, S, u, v: sg.sssp(A, 0).distance,
    "pagerank": lambda A, S, u, v: sg.pagerank(A),
    "components": lambda A, S, u, v: sg.connected_components(S),
    "strong components": lambda A, S, u, v: sg.connected_components(A, connection="strong"),
    "betweenness": lambda A, S, u, v: sg.betweenness_centrality(A),
    "triangles": lambda A, S, u, v: sg.triangle_count(S),
}
ON_THE_CPU: dict[str, Callable[..., Any]] = {
    "build": lambda A, S, u, v: sg.Matrix.from_coo(
        [3, 1, 1, 2], [0, 1, 1, 2], [1.0, 2, 3, 4], nrows=40, ncols=40, dup_op=binary.plus
    ),
    "bfs in shards": lambda A, S, u, v: sg.bfs(S.distribute(2), 0).level.gather(),
    "sssp in shards": lambda A, S, u, v: sg.sssp(A.distribute(2), 0).distance.gather(),
    "pagerank in shards": lambda A, S, u, v: sg.pagerank(A.distribute(3)).gather(),
    "dijkstra": lambda A, S, u, v: sg.csgraph.dijkstra(WEIGHTS, indices=[0, 1]),
    "breadth first": lambda A, S, u, v: sg.csgraph.breadth_first_order(A.to_scipy(), 0)[0],
    "floyd_warshall": lambda A, S, u, v: sg.csgraph.floyd_warshall(WEIGHTS),
}


def operands(device: str) -> tuple[Any, ...]:
    made = (
        sg.Matrix.from_dense(WEIGHTS),
        sg.Matrix.from_dense(LINKS),
        sg.Vector.from_dense(np.arange(40.0)),
        sg.Vector.from_coo([1, 5, 7], [1.0, 2.0, 3.0], size=40),
    )
    return tuple(container.to(device) for container in made)


def content(found: Any) -> Any:
    """What may be compared: a dense array, nan where there is no entry."""
    if isinstance(found, sg.Matrix):
        return found.to("cpu").to_dense(fill=np.nan)
    if isinstance(found, sg.Vector):
        return np.asarray(found.to("cpu").to_numpy(fill=np.nan))
    return np.asarray(0 if found is None else found, dtype=float)


class Memory:
    """Counts allocations, and refuses the one after so many."""

    def __init__(self) -> None:
        self.left: int | None = None

    def take(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.left = None
                raise MemoryError("as if there were none")


def fail_everywhere(name: str, call: Callable[..., Any], device: str, memory: Memory) -> int:
    """The number of allocations of a call, each of which was refused once; of those after the first
    hundred, which a loop makes again and again, every eleventh.
    """
    given = operands(device)
    right = [content(call(*given)), *map(content, given)]
    for allocation in (*range(100), *range(100, 10_000, 11)):
        given = operands(device)
        before = [content(container) for container in given]
        memory.left = allocation
        try:
            found = call(*given)
        except MemoryError:
            after = [content(container) for container in given]
            for was, now in zip(before, after, strict=True):
                np.testing.assert_array_equal(now, was, f"{name}, allocation {allocation}")
            found, refused = call(*given), True
        else:  # without this memory, too, if only another storage of the result needed it
            refused, memory.left = memory.left is None, None
        for expected, got in zip(right, map(content, (found, *given)), strict=True):
            np.testing.assert_allclose(got, expected, 1e-12, 0, err_msg=f"{name}, {allocation}")
        if not refused:
            return allocation
    raise AssertionError(f"{name} has no end")


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Memory:
    """NumPy's functions fail where spgraph calls them."""
    made = Memory()

    def refusing(function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*given: Any, **options: Any) -> Any:
            if sys._getframe(1).f_globals.get("__name__", "").startswith("spgraph."):
                made.take()
            return function(*given, **options)

        return called

    for name in ALLOCATING:
        monkeypatch.setattr(np, name, refusing(getattr(np, name)))
    monkeypatch.setattr(pool, "processors", lambda: 2)
    monkeypatch.setattr(pool, "threads_for", lambda work, *share: 2)
    pool.close()
    return made


@pytest.mark.parametrize("name", [*CALLS, *ON_THE_CPU])
def test_every_allocation_of_a_call(name: str, memory: Memory) -> None:
    assert fail_everywhere(name, {**CALLS, **ON_THE_CPU}[name], "cpu", memory) > 0


@pytest.mark.parametrize("suffix", ["txt", "mtx", "npz"])
def test_every_allocation_of_read(suffix: str, memory: Memory, tmp_path: Path) -> None:
    path = tmp_path / f"g.{suffix}"
    if suffix == "txt":
        path.write_text("".join(f"{k} {(7 * k + 3) % 40} {k}.5\n" for k in range(40)))
    else:
        sg.write(path, sg.Matrix.from_dense(WEIGHTS))
    assert fail_everywhere(suffix, lambda *given: sg.read(path), "cpu", memory) > 0


@contextmanager
def failing_allocator(memory: Memory) -> Iterator[None]:
    import cupy

    allocate = cupy.cuda.get_allocator()

    def refusing(size: int) -> Any:
        memory.take()
        return allocate(size)

    cupy.cuda.set_allocator(refusing)
    try:
        yield
    finally:
        cupy.cuda.set_allocator(allocate)


@pytest.mark.gpu
@pytest.mark.parametrize("name", CALLS)
def test_every_allocation_of_a_call_on_a_gpu(name: str) -> None:
    memory = Memory()
    with failing_allocator(memory):
        assert fail_everywhere(name, CALLS[name], "cuda", memory) > 0
