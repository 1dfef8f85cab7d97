"""The loop `dependencies` in shards, its kernels under the shim; on GPUs where there are some."""

from __future__ import annotations

import importlib
from typing import Any

import cuda_host_shim
import numpy as np
import pytest
from dependencies_cases import by_loops, matrix, same, two
from gpus import visible
from shim_exchanges import HostBuffers

import spgraph as sg
from spgraph.backends import cuda
from spgraph.distributed import LocalCommunicator
from spgraph.errors import CommunicationError
from spgraph.iterations.path_dependencies import dependencies

shim = pytest.mark.skipif(cuda_host_shim.COMPILER is None, reason="no C++ compiler")


class WithBarrier(HostBuffers):
    """Stands for PeerBuffers: what was launched is done, so that a barrier does nothing."""

    def barrier(self) -> None:
        pass


def in_shards(
    name: str,
    cuts: tuple[float, ...],
    peers: bool,
    patch: pytest.MonkeyPatch,
    sources: Any = None,
    relabelled: bool = False,
    failed: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """(scores, sources that are left) for shards that begin at these shares of a graph; levels come
    from plain loops.
    """
    host = importlib.import_module("spgraph.distributed.loops.dependencies")
    steps = importlib.import_module("spgraph.backends.cuda.dependencies.dependencies_shard")
    device_jit = importlib.import_module("spgraph.backends.cuda.runtime.jit")
    A = matrix(name)
    owner = np.searchsorted([int(x * A.nrows) for x in cuts], np.arange(A.nrows), side="right")
    if relabelled:
        owner = np.random.default_rng(3).permutation(owner)
    G: Any = A.distribute(len(cuts) + 1, partition=owner)
    G.T.shards  # noqa: B018 - made before kernels go to the shim
    sources = two(name) if sources is None else sources
    level = {
        source: sg.Vector.from_dense(row.astype(np.int32), missing=-1).to(G.device)
        for source, row in zip(sources, by_loops(name, tuple(sources))[1], strict=True)
    }
    if failed:
        level[sources[-1]] = lost(level[sources[-1]])
    if peers:
        G.device.peers = WithBarrier(G.device.num_shards)
        G._derived["dependencies"] = WithBarrier(G.device.num_shards)
    cuda_host_shim.install(patch)
    patch.setattr(sg.distributed.Placement, "kernels", cuda)
    patch.setattr(device_jit, "BLOCK", 64)
    patch.setattr(steps, "THREADS", 64)
    patch.setattr(host, "_levels_from", lambda A, T, source: level[source])
    scores = [np.zeros(size) for size in G.device.graph_partition.sizes]
    left = host.in_shards(G, G.T, np.array(sources), scores)
    found = np.empty(A.nrows)
    found[slice(None) if G.device.graph_partition.ids is None else G.device.graph_partition.ids] = (
        np.concatenate(scores)
    )
    return found, left


def lost(level: Any) -> Any:
    """The levels of a search that has lost a device, which nobody has noticed yet."""

    def reached() -> int:
        raise CommunicationError("search by peer writes: device 1 did not come")

    shards = []
    for shard in level.shards:
        given, bits = shard.to_bitmap(), np.full(shard.size // 32 + 1, 0xFFFFFFFF, np.uint32)
        bits = bits if given.bits is None else given.bits
        shards.append(sg.Vector._of(shard.size, given.values, bits=bits, nvals=reached))
    return type(level)(level.size, shards, level.device, in_flight=True)


def check_shards(name: str, cuts: tuple[float, ...], peers: bool, **more: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        found, left = in_shards(name, cuts, peers, patch, **more)
    expected = by_loops(name, tuple(two(name)))[0]
    np.testing.assert_allclose(found, expected, rtol=1e-10, err_msg=name)
    assert not left.size


@shim
@pytest.mark.parametrize("peers", [True, False])
@pytest.mark.parametrize("cuts", [(), (0.0, 0.4), (0.2, 0.5, 0.7)])
def test_shards_in_step(cuts: tuple[float, ...], peers: bool) -> None:
    for name in ("one", "star both", "two components", "sparse directed", "acyclic", "rmat 8"):
        check_shards(name, cuts, peers, relabelled=len(cuts) == 3)


# thresholds with which small graphs take every form of a level
FORMS = {
    "push": {"PUSH_STEP": 0},
    "pull": {"PUSH_STEP": 100, "SMALL_EDGES": 0},
    "rows in phases": {"PUSH_STEP": 100, "SMALL_EDGES": 0, "CACHED": 64, "LONG_PART": 1},
    "marks": {"PUSH_STEP": 100, "SMALL_EDGES": 0, "MARKED_EDGES": 0, "RARE": 1},
    "read where they are": {"UNREAD": 0},
}

# ... and barriers that cost nothing
FREE = {"SUM_STEP": 0, "BARRIER": 0, "BARRIER_LISTS": 0}


@shim
@pytest.mark.parametrize("form", FORMS)
def test_forms_of_a_level(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = importlib.import_module("spgraph.backends.shards.dependencies")
    for name, value in (FREE | FORMS[form]).items():
        monkeypatch.setattr(plan, name, value)
    for graph in ("star both", "sparse directed", "rmat 8"):
        check_shards(graph, (0.2, 0.5), graph != "rmat 8")


@pytest.mark.gpu
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("exchange", ["", "auto", "nccl", "peer"])
def test_forms_on_gpus(form: str, exchange: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On one of them; in three shards there; a shard each on two."""
    host = importlib.import_module("spgraph.backends.cuda.dependencies.dependencies")
    plan = importlib.import_module("spgraph.backends.shards.dependencies")
    monkeypatch.setattr(host, "LARGE", 0)
    monkeypatch.setattr(host, "source_parallel_pays", lambda *arguments: False)
    for name, value in (FREE | FORMS[form]).items():
        monkeypatch.setattr(plan, name, value)
    shards, devices = (3, ["cuda:0"] * 3) if exchange == "auto" else (2, "cuda")
    if shards == 2 and exchange:
        visible(2)
    for graph in ("rmat 10", "rmat 9 directed", "grid"):
        A: Any = matrix(graph)
        if exchange:
            A = A.distribute(shards, devices=devices, exchange=exchange)
        else:
            A = A.to("cuda")
        got = dependencies(A, two(graph))
        got = got.gather() if exchange else got  # type: ignore[attr-defined]
        same(got, by_loops(graph, tuple(two(graph)))[0])


@shim
def test_counts_of_several_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """They travel by the communicator: here it says that there are others."""
    monkeypatch.setattr(LocalCommunicator, "processes", 2)
    check_shards("rmat 8", (0.2, 0.5), False)


@shim
@pytest.mark.parametrize("peers", [True, False])
def test_shards_with_many_levels(peers: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than are read back at once, than are counted at first, than bytes tell apart."""
    steps = importlib.import_module("spgraph.backends.cuda.dependencies.dependencies_shard")
    for name, value in (("FEW", 3), ("LEVELS", 5), ("SHALLOW", 8)):
        monkeypatch.setattr(steps, name, value)
        check_shards("grid", (0.5,), peers)
    check_shards("path", (0.5,), peers)


@shim
@pytest.mark.parametrize("peers", [True, False])
def test_shards_with_too_many_paths(peers: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source is left over, and nothing is added for it: the paths from end to end are too many,
    those from the middle are not.
    """
    found, left = in_shards("layers", (0.4,), peers, monkeypatch, [0, 2000])
    assert left.tolist() == [0]
    np.testing.assert_allclose(found, by_loops("layers", (2000,))[0], rtol=1e-10)


@shim
def test_scores_of_a_search_that_failed_are_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CommunicationError, match="device 1 did not come"):
        in_shards("grid", (0.5,), True, monkeypatch, failed=True)
