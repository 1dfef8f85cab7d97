"""The power iteration with launches for every step, on one device or for one of several shards.

A step with one hop and no norm is the product and one launch, which reads and writes 36 bytes a
vertex (4 of them, in single precision, are for the next hop), or 20 where no tolerance asks for the
iterates, at about 3.5 TB/s on an H200, and writes what the next hop gathers to every peer at about
330 GB/s. Its last block adds up the sums. On one device a step of one matrix with tiles takes place
in the numbers that these give to vertices; vertices without entries, the last ones, cost 8 bytes.
To number the vertices takes 0.7 ms a vector of 67 M, at the beginning and at the end.
With a `tol` the host waits for the devices in every step; so that they do not wait for the host in
turn, the next product begins before it is known whether there is a next step.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from spgraph.backends.cuda.products.products import gather
from spgraph.backends.cuda.products.tiles import Tiles, prepare, renumbered_product
from spgraph.backends.cuda.runtime import jit, preamble
from spgraph.backends.loops import NORMS, PowerIteration
from spgraph.backends.shards import Steps
from spgraph.backends.shards.buffers import Buffers
from spgraph.backends.shards.power import SUMS
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import Array, array_module, index_dtype
from spgraph.containers.storage.device_memory import address, array_at, copied
from spgraph.semirings import TypedSemiring

# iterations that tiles are worth making for
MANY = 8
# blocks a multiprocessor, where every thread has vertices of its own
BLOCKS = 4
# bytes: where things begin in memory that peers write
ALIGN = 256

Iterate = tuple[Vector, tuple[int, float] | None]


class Places(NamedTuple):
    """Where the kernels of a shard write what all shards read, on one device or on all `peers`.

    `values` and `sums` have one or two sides, which take turns, so that a shard that is ahead does
    not overwrite what others still read. A side is the addresses to write to, and the array to read
    on this device afterwards. `ids`, if any, are the positions of the shard's vertices in the
    whole.
    """

    peers: int
    values: Sequence[tuple[Array, Array]]
    sums: Sequence[tuple[Array, Array]]
    ids: Array


@functools.lru_cache(maxsize=1024)
def program(
    semiring: TypedSemiring, iso: bool, gathered: str, types: tuple[str, str, str, str]
) -> str:
    """The preamble of the products, and of power.cu; `types` are those of O, I, A and R."""
    text = preamble.semiring(semiring, ISO=iso, FLIP=False, MASKED=False, FULL=True)
    names = {name: np.dtype(kind) for name, kind in zip("OIAR", types, strict=True)}
    return text + preamble.types(U=np.dtype(gathered), **names)


def program_of(M: Matrix, iteration: PowerIteration) -> str:
    types = (M._indptr.dtype.str, M._indices.dtype.str, M.dtype.str, index_dtype(M.nrows).str)
    return program(iteration.semiring, is_iso(M, iteration), iteration.gathered.str, types)


def is_iso(M: Matrix, iteration: PowerIteration) -> bool:
    """Whether one value stands for all of M's in the products."""
    return M.iso or iteration.semiring.multiply.name == "second"


class Launches:
    """What the steps of one shard's iteration share, and the launches that they consist of. Each
    launch says where its kernel has written: what the next hop gathers, or the sums, or both.
    """

    def __init__(
        self, x: Vector | float, iteration: PowerIteration, places: Places | None, alone: bool
    ) -> None:
        matrices, scales = iteration.matrices, iteration.scales
        xp = array_module(matrices[0]._indptr)
        n = x.size if isinstance(x, Vector) else matrices[0].nrows
        text = preamble.types(U=iteration.gathered)
        names = "power_scale", "power_step", "power_divide", "power_take"
        self.scale, self.step, self.divide, self.take = jit.kernels("power_stepwise", text, *names)
        most = BLOCKS * jit.multiprocessors(jit.current_device())
        grid = max(1, min(-(-n // jit.BLOCK), most))
        self.threads, self.n, self.norm = grid * jit.BLOCK, n, np.int32(NORMS[iteration.norm])
        self.parts, self.arrived = xp.empty(SUMS * grid), xp.zeros(1, np.uint32)
        self.matrices = matrices
        self.cut = [_tiles(M, iteration.max_iter) for M in matrices]
        # the tiles in whose numbers of vertices all of the iteration takes place; those from
        # `active` on have no product, and nobody gathers their values
        own, self.tiles, self.active, room = self.cut[0], None, n, n
        if alone and len(matrices) == 1 and own is not None and own.renumbered:
            self.tiles, room = own, max(n, own.places)
            self.active = own.copied if matrices[0].symmetric else n
        self.value = self._begin(x, room)
        # rows without entries stay zero
        self.products = [xp.zeros(n) for _ in matrices]
        self.z = xp.empty(n) if self.norm else jit.NULL
        self.spread = [self._by_vertex(1.0 if scale is None else scale) for scale in scales]
        self.texts = [program_of(M, iteration) for M in matrices]
        constants = tuple(map(np.float64, iteration.constants))
        self.constants = (*constants, *self._by_vertex(iteration.restart))
        # the values that each hop gathers; the only shard of a process copies only what it has to
        self.sources = [self.value, *self.products[:-1]]
        exact = places is None and iteration.gathered == self.value.dtype
        self.as_it_is = [exact and scale is None for scale in scales]
        # whether somebody asks for the iterates before the last one
        asked = iteration.norm or iteration.constants[1] or iteration.tol is not None
        self.tracked = np.int32(bool(asked) or self.as_it_is[0])
        places = places or _own_places(0 if all(self.as_it_is) else room, iteration.gathered, xp)
        self.turns = itertools.cycle(places.values)
        self.turns_of_sums = itertools.cycle(places.sums)
        self.to: tuple[Any, ...] = ()  # where the last update has written what is gathered
        self.peers, self.where = places.peers, (places.ids, int(places.ids.itemsize > 4))

    def _begin(self, x: Vector | float, room: int) -> Array:
        """The values that the iteration begins with, in memory for so many; zeros behind them."""
        zeros = array_module(self.matrices[0]._indptr).zeros
        if not isinstance(x, Vector):
            value = zeros(room)
            fill = jit.kernel("scales", "scales_fill", "")
            jit.sweep(fill, self.n, np.float64(x), self.n, value)
            return value
        if self.tiles is None:
            return copied(x._values)
        return self._take(self.tiles.columns, x._values, zeros(room))

    def _by_vertex(self, v: Vector | float) -> tuple[int, Array]:
        """(mask, values): vertex i has values[i & mask]."""
        xp = array_module(self.matrices[0]._indptr)
        if not isinstance(v, Vector):
            return 0, xp.full(1, v, np.float64)
        if self.tiles is None:
            return -1, v._values
        return -1, self._take(self.tiles.columns, v._values, xp.empty(self.n))

    def _take(self, numbers: Array, x: Array, y: Array) -> Array:
        """y, which begins with the values of x with these numbers."""
        jit.sweep(self.take, self.n, self.n, numbers, x, y)
        return y

    def result(self) -> Vector:
        """The last iterate."""
        if self.tiles is None:
            return Vector._of(self.n, self.value)
        value = array_module(self.value).empty(self.n)
        return Vector._of(self.n, self._take(self.tiles.rank, self.value, value))

    def out(self, k: int) -> tuple[tuple[Any, ...], Any]:
        """The arguments that say where a launch writes what hop k gathers, and the array there."""
        to, part = (jit.NULL, self.sources[k]) if self.as_it_is[k] else next(self.turns)
        return (self.peers, to, *self.where), part

    def added(self) -> tuple[tuple[Any, ...], Any]:
        """The arguments that say where a launch writes the sums, and the array there."""
        to, own = next(self.turns_of_sums)
        return (self.parts, self.arrived, to), own

    def first(self) -> tuple[Any, Any]:
        """What the first hop gathers, and the sums, of the iterate at the start."""
        (to, part), (to_sums, own) = self.out(0), self.added()
        jit.launch(self.scale, self.threads, self.n, self.value, *self.spread[0], *to, *to_sums)
        return part, own

    def between(self, k: int) -> Any:
        """What hop k > 0 gathers: the product before it, scaled."""
        to, part = self.out(k)
        if not self.as_it_is[k]:
            given = self.n, self.sources[k], *self.spread[k], *to, *[jit.NULL] * 3
            jit.launch(self.scale, self.threads, *given)
        return part

    def multiply(self, k: int, whole: Array) -> None:
        """The product of hop k with the values of all shards."""
        M = self.matrices[k]
        if self.tiles is not None:
            renumbered_product(M, self.tiles, whole, self.texts[k], self.products[k])
            return
        gather(M, self.cut[k], Vector._of(M.ncols, whole), self.texts[k], self.products[k])

    def update(self, totals: Array, last: bool) -> tuple[Any, Any]:
        """What the first hop gathers next, and the sums, of the iterate after the last product;
        before it is divided by its norm, if there is one.
        """
        (to, part), (to_sums, own) = self.out(0), self.added()
        self.to = to
        jit.launch(
            self.step,
            self.threads,
            *(self.n, self.active, self.products[-1], *self.constants, *self.spread[0], self.norm),
            *(totals.size // SUMS, totals, self.value, self.z, self.tracked, np.int32(last)),
            *(*to, *to_sums),
        )
        return part, own

    def divided(self, totals: Array) -> Any:
        """The sums of the iterate divided by its norm, which `update` has left out."""
        to_sums, own = self.added()
        jit.launch(
            self.divide,
            self.threads,
            *(self.n, self.z, *self.spread[0], self.norm),
            *(totals.size // SUMS, totals, self.value, *self.to, *to_sums),
        )
        return own


def stepwise(
    x: Vector | float, iteration: PowerIteration, places: Places | None = None, alone: bool = False
) -> Steps[Iterate]:
    """The `iteration` of one shard, a generator as `power_shard` describes it. `alone`: there is no
    other shard, and what it yields may have another order than the vertices.

    With `places`, or alone, it also yields ("report", the sums of all shards) some time before it
    asks for the change, and starts the next product in between, unless the last changes suggest
    that there is none.
    """
    early = alone or places is not None
    launches = Launches(x, iteration, places, alone)
    whole, totals = yield "share", launches.first()
    report: tuple[int, float] | None = None
    ahead, expected = False, np.inf
    tol, max_iter = iteration.tol, iteration.max_iter
    for count in range(1, max_iter + 1):
        last = count == max_iter
        for k in range(len(iteration.matrices)):
            if k:
                whole, _ = yield "share", (launches.between(k), None)
            if k or not ahead:
                launches.multiply(k, whole)
        part, own = launches.update(totals, last)
        if iteration.norm:
            _, totals = yield "share", (None, own)
            own = launches.divided(totals)
        whole, totals = yield "share", (None if last else part, own)
        if tol is None:
            continue
        ahead = early and not last and expected > tol
        if early:
            yield "report", totals
        if ahead:
            launches.multiply(0, whole)
        changed = yield "change", totals
        # the next change, if changes shrink as they did from the last one to this
        expected = np.inf if report is None else changed * changed / report[1]
        report = count, changed
        if changed <= tol:
            break
    return launches.result(), report


def _own_places(n: int, gathered: np.dtype, xp: ModuleType) -> Places:
    """The places of a single shard. One side is enough: its stream keeps the order."""
    values, sums = xp.zeros(n, gathered), xp.empty(SUMS)
    to = xp.asarray(np.array([[address(values)], [address(sums)]], np.int64))
    return Places(1, [(to[0], values)], [(to[1], sums)], jit.NULL)


def _tiles(M: Matrix, max_iter: int) -> Tiles | None:
    return prepare(M) if max_iter >= MANY else M._derived.get("shared_tiles")


# --- devices that write to each other -------------------------------------------------------------


def power_peers(places: Places, x: Vector, iteration: PowerIteration) -> Steps[Iterate]:
    """As `power_shard`, for a shard whose kernels write to all devices: the answer is what it
    yielded, once all devices have synchronised.
    """
    return stepwise(x, iteration, places)


def peer_places(
    buffers: Buffers,
    offsets: Sequence[int],
    single: bool,
    starts: Sequence[Array],
    ids: Sequence[Array] | None,
) -> list[Places]:
    """The places of the local shards in the memory of every device; `starts` are arrays on theirs.
    Shard p owns the vertices from offsets[p] to offsets[p + 1] of the whole, or, as the k-th local
    one, those that ids[k] names.

    They are valid while the caller holds the lock of the buffers. The devices have to synchronise
    before any of them writes there, since another may still use what was there before.
    """
    peers, kind = len(buffers.devices), np.dtype(np.float32 if single else np.float64)
    n, each = int(offsets[-1]), 8 * SUMS
    whole, table = (-(-size // ALIGN) * ALIGN for size in (n * kind.itemsize, each * peers))
    memory = buffers.reserve(("power", whole, table), [2 * (whole + table)] * peers)
    found = []
    for k, (p, start) in enumerate(zip(buffers.local, starts, strict=True)):
        first = 0 if ids is not None else int(offsets[p]) * kind.itemsize
        values, sums = (0, whole), (2 * whole, 2 * whole + table)
        places = [*(at + first for at in values), *(at + p * each for at in sums)]
        with jit.device(start):
            to = array_module(start).asarray(np.add.outer(places, memory).astype(np.int64))
            here = [array_at(memory[p] + at, n, kind, buffers) for at in values]
            here += [
                array_at(memory[p] + at, SUMS * peers, np.dtype(float), buffers) for at in sums
            ]
        sides = list(zip(to, here, strict=True))
        found.append(Places(peers, sides[:2], sides[2:], jit.NULL if ids is None else ids[k]))
    return found
