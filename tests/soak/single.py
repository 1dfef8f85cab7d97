"""One case by its seed: drawn, answered by both sides, compared."""

from __future__ import annotations

import importlib.util
import tempfile
import traceback
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from soak import algorithms, files, found, library, operations
from soak.entries import Entries, Refusal, difference
from soak.pools import PLACES, Pool

KINDS = ("operations", "algorithms", "files")
EVERY = 8  # one case of so many runs in shards


class Seed(NamedTuple):
    """What a case follows from; written kind-pool-number."""

    kind: str
    pool: int
    number: int

    def __str__(self) -> str:
        return f"{self.kind}-{self.pool}-{self.number}"

    @classmethod
    def read(cls, text: str) -> Seed:
        kind, _, rest = text.partition("-")
        pool, _, number = rest.partition("-")
        if kind not in KINDS or not pool.isdigit() or not number.isdigit():
            raise ValueError(f"seed: expected KIND-POOL-NUMBER such as operations-3-17, got {text}")
        return cls(kind, int(pool), int(number))


class Place(NamedTuple):
    """Where spgraph computes."""

    device: str = "cpu"
    shards: int = 0

    def shards_of(self, seed: Seed) -> int:
        """In how many shards a case runs, 0 for none."""
        return self.shards if seed.number % EVERY == EVERY - 1 else 0


class Outcome(NamedTuple):
    """A case, both answers, and where they differ (None: nowhere)."""

    case: Any
    found: Any
    expected: Any
    fault: str | None
    left_out: bool = False  # it depends on a rule that the library does not follow yet


def run(seed: Seed, pool: Pool, place: Place, folder: Path, pending: frozenset[str]) -> Outcome:
    """The outcome of a case; an exception of either side is a fault."""
    if seed.kind == "files":
        file = files.draw(seed.number, seed.pool)
        if file.rules & pending:
            return Outcome(file, None, None, None, left_out=True)
        return Outcome(file, None, file.expected, files.check(file, folder))
    draw = operations.draw if seed.kind == "operations" else algorithms.draw
    case: Any = draw(pool, seed.number)
    if case.rules & pending:
        return Outcome(case, None, None, None, left_out=True)
    expected: Any = None
    try:
        expected = expected_of(case, place)
        with _threads(case.threads):
            answers = library.answer if seed.kind == "operations" else found.answer
            given = answers(case, place.device, place.shards_of(seed))
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        why = f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
        return Outcome(case, None, expected, why)
    if seed.kind == "algorithms":
        return Outcome(case, given, expected, found.difference(given, expected))
    given, expected = _comparable(case, given), _comparable(case, expected)
    return Outcome(case, given, expected, difference(given, expected, close=case.close))


def _comparable(case: Any, answer: Any) -> Any:
    """Ids are of either index type."""
    ids = isinstance(case.op, tuple) and case.op[1] in PLACES and case.out is None
    return answer.cast("int64") if ids and isinstance(answer, Entries) else answer


def expected_of(case: Any, place: Place) -> Any:
    """The answer of the other side."""
    if isinstance(case, operations.Case):
        if place.device == "cpu" or peer_is_there():
            from soak import peer

            return peer.answer(case)
        return library.answer(case)
    try:
        return algorithms.answer(case)
    except ImportError:  # no NetworkX beside a GPU
        return found.answer(case)


@cache
def peer_is_there() -> bool:
    """Whether python-graphblas is installed."""
    return importlib.util.find_spec("graphblas") is not None


class _threads:
    """Kernels run on so many threads, however little they have to do."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __enter__(self) -> None:
        from spgraph.backends.cpu.runtime import pool

        self.module, self.before = pool, pool.threads_for
        if self.count > 1:
            most = min(self.count, pool.processors())
            pool.threads_for = lambda work, *share: most

    def __exit__(self, *given: Any) -> None:
        self.module.threads_for = self.before


def reproduce(seed: Seed, place: Place) -> Outcome:
    """The case of a seed, printed with both answers."""
    with tempfile.TemporaryDirectory() as folder:
        outcome = run(seed, Pool(seed.pool), place, Path(folder), frozenset())
    print(f"{seed} on {place.device}, {place.shards_of(seed)} shards")
    print(outcome.case.text())
    print("found:   ", shown(outcome.found))
    print("expected:", shown(outcome.expected))
    print("fault:   ", outcome.fault)
    return outcome


def shown(answer: Any) -> str:
    """An answer as text."""
    if isinstance(answer, Entries):
        ids = [part.tolist() for part in answer.at()] if len(answer.shape) else []
        return f"{answer.dtype} {answer.shape} {ids} {answer.values.tolist()}"
    if isinstance(answer, dict):
        return str({name: np.ma.asarray(values).tolist() for name, values in answer.items()})
    return answer.why if isinstance(answer, Refusal) else str(answer)
