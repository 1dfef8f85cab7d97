"""spgraph.csgraph has what scipy.sparse.csgraph has; what it does not serve says so."""

from __future__ import annotations

import inspect
import subprocess
import sys
import tracemalloc
import types
from typing import Any

import minimal_backend
import numpy as np
import pytest
import scipy.sparse
from scipy.sparse import csgraph as theirs

import spgraph as sg
import spgraph.csgraph as ours
from spgraph import backends
from spgraph.csgraph import delegated
from spgraph.errors import BackendUnavailable

G = np.array([[0, 3.0, 3, 0], [0, 0, 0, 2], [0, 0, 0, 0], [1, 0, 0, 0]])


def test_names() -> None:
    assert ours.__all__ == theirs.__all__ and len(ours.__all__) == 26
    assert ours.NegativeCycleError is theirs.NegativeCycleError


@pytest.mark.parametrize("name", [name for name in theirs.__all__ if name[0].islower()])
def test_signatures(name: str) -> None:
    def parameters(function: Any) -> list[Any]:
        found = inspect.signature(function).parameters.values()
        return [(p.name, p.kind, p.default) for p in found]

    assert parameters(getattr(ours, name)) == parameters(getattr(theirs, name))


FLAGS = [
    (name, p.name)
    for name in ours.__all__
    if name[0].islower() and name not in delegated.DELEGATED
    for p in inspect.signature(getattr(ours, name)).parameters.values()
    if isinstance(p.default, bool)
]
BEFORE = np.array([[-9999, 0, 0, 1], [3, -9999, 0, 1], [-9999] * 4, [3, 0, 0, -9999]], np.int32)


@pytest.mark.parametrize(("name", "flag"), FLAGS)
def test_one_and_zero_are_flags_as_in_scipy(name: str, flag: str) -> None:
    """Programs written for SciPy have them; values differ in each flag that changes any."""
    given: dict[str, Any] = {"i_start": 0, "predecessors": BEFORE}
    if name == "reconstruct_path":
        given["predecessors"] = BEFORE[0]
    needed = inspect.signature(getattr(theirs, name)).parameters
    given = {key: value for key, value in given.items() if key in needed}
    for number in (0, 1, np.int8(0), np.uint64(1)):
        found = getattr(ours, name)(G.copy(), **given, **{flag: number})
        expected = getattr(theirs, name)(G.copy(), **given, **{flag: bool(number)})
        pairs = [(found, expected)]
        if isinstance(expected, tuple):
            assert len(found) == len(expected)
            pairs = list(zip(found, expected, strict=True))
        for mine, other in pairs:
            assert type(mine) is type(other)
            if scipy.sparse.issparse(other):
                mine, other = mine.toarray(), other.toarray()
            np.testing.assert_array_equal(mine, other)
    with pytest.raises(TypeError, match=f"{name}: {flag}: expected True or False, or 1 or 0"):
        getattr(ours, name)(G.copy(), **given, **{flag: "yes"})


def test_the_table_of_what_is_scipys() -> None:
    for name, function in delegated.DELEGATED.items():
        assert function is getattr(theirs, name)
        assert getattr(ours, name).__wrapped__ is function
    served = set(ours.__all__) - delegated.DELEGATED.keys()
    assert not any(getattr(ours, name) is getattr(theirs, name) for name in served if name[0] > "Z")


def test_delegated_functions_compute() -> None:
    S = scipy.sparse.csr_array(G)
    W = scipy.sparse.csr_array(G.astype(np.int32))
    calls: dict[str, tuple[Any, ...]] = {
        "depth_first_order": (S, 0),
        "yen": (S, 0, 3, 2),
        "maximum_bipartite_matching": (S,),
        "reverse_cuthill_mckee": (S,),
        "structural_rank": (S,),
    }
    for name, arguments in calls.items():
        found, expected = (np.ravel(getattr(m, name)(*arguments)) for m in (ours, theirs))
        np.testing.assert_array_equal(found, expected)
    assert ours.maximum_flow(W, 0, 3).flow_value == theirs.maximum_flow(W, 0, 3).flow_value
    assert (ours.depth_first_tree(S, 0) != theirs.depth_first_tree(S, 0)).nnz == 0
    full = scipy.sparse.csr_array(np.arange(1.0, 10).reshape(3, 3))
    for mine, other in zip(
        ours.min_weight_full_bipartite_matching(full),
        theirs.min_weight_full_bipartite_matching(full),
        strict=True,
    ):
        np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize("name", ["depth_first_order", "depth_first_tree"])
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array, np.ndarray.tolist, sg.Matrix])
def test_a_start_beyond_the_last_vertex_is_an_error(name: str, form: Any) -> None:
    """SciPy answers as if nothing were reached."""
    function, graph = getattr(ours, name), form(G)
    for start in (G.shape[0], 10**6):
        with pytest.raises(ValueError, match=rf"i_start: expected 0 <= i_start < {G.shape[0]}"):
            function(graph, start)
        with pytest.raises(ValueError, match="i_start: expected 0 <= i_start"):
            function(csgraph=graph, i_start=start, directed=False)
    with pytest.raises(OverflowError):
        function(graph, -1)
    with pytest.raises(TypeError):
        function(graph)
    function(graph, G.shape[0] - 1)


def test_a_graph_on_a_gpu_is_refused_with_the_remedy() -> None:
    """Something that says it lies there is enough: nothing of CuPy is needed for that."""
    array = types.SimpleNamespace(__cuda_array_interface__={})
    for name in delegated.DELEGATED:
        with pytest.raises(TypeError, match=rf"{name}: expected a graph on the CPU.*\.get\(\)"):
            getattr(ours, name)(array)
    with pytest.raises(TypeError, match=r"csgraph_to_masked.*CPU.*\.get\(\)"):
        ours.csgraph_to_masked(array)


def test_importing_it_compiles_nothing_and_needs_no_cupy() -> None:
    code = "import sys, spgraph.csgraph; print({'numba', 'cupy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "set()", done.stdout + done.stderr


@pytest.mark.parametrize("name", ["dijkstra", "breadth_first_order", "connected_components"])
def test_rows_are_not_copied(name: str) -> None:
    """What is allocated is far less than the rows, whose entries are many times the vertices."""
    n = 300
    S = scipy.sparse.csr_array(np.ones((n, n)))
    call = {
        "dijkstra": lambda: ours.dijkstra(S, indices=0, return_predecessors=True),
        "breadth_first_order": lambda: ours.breadth_first_order(S, 0),
        "connected_components": lambda: ours.connected_components(S),
    }[name]
    call()  # compiles
    tracemalloc.start()
    call()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < S.indices.nbytes / 2


def test_a_backend_without_traversals_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "module_of", lambda device: minimal_backend)
    graph = scipy.sparse.csr_array(([1.0], ([0], [1])), shape=(2, 2))
    with pytest.raises(BackendUnavailable, match=r"csgraph: the backend of device 'cpu' has no tr"):
        ours.breadth_first_order(graph, 0)


# the argument is an array, not a graph in compressed rows
OF_ARRAYS = {"csgraph_from_dense", "csgraph_from_masked", "csgraph_masked_from_dense"}


@pytest.mark.parametrize(
    "name", [name for name in theirs.__all__ if name[0].islower() and name not in OF_ARRAYS]
)
@pytest.mark.parametrize("kind", ["float64", "int32", "bool"])
def test_a_matrix_is_taken_as_its_compressed_rows(name: str, kind: str) -> None:
    """Read-only arrays, one value for all, and the arrays of a view included."""
    needed = inspect.signature(getattr(theirs, name)).parameters
    before = BEFORE[0] if name == "reconstruct_path" else BEFORE
    given: dict[str, Any] = {"i_start": 0, "predecessors": before, "source": 0, "sink": 3, "K": 2}
    given = {key: value for key, value in given.items() if key in needed}
    dense = G + np.eye(4) if name == "min_weight_full_bipartite_matching" else G
    S = scipy.sparse.csr_array(dense.astype(kind))
    matrices = [sg.Matrix(S), sg.Matrix(S.T).T]
    if kind == "bool":
        matrices.append(sg.Matrix(S).pattern())
    for A in matrices:
        try:
            expected = getattr(theirs, name)(S, **given)
        except (ValueError, TypeError) as error:  # flows of floats, a laplacian of bool
            with pytest.raises(type(error)):
                getattr(ours, name)(A, **given)
            continue
        assert plain(getattr(ours, name)(A, **given)) == plain(expected)


def plain(found: Any) -> Any:
    """A result as lists, with the type of what is sparse."""
    if isinstance(found, tuple):
        return [plain(each) for each in found]
    if scipy.sparse.issparse(found):
        return type(found), found.toarray().tolist()
    if hasattr(found, "flow_value"):
        return found.flow_value, found.flow.toarray().tolist()
    if np.ma.isMaskedArray(found):
        return found.tolist()
    return np.nan_to_num(np.asarray(found), nan=-7.0, posinf=7e7).tolist()
