"""What users import, and from where; the names that are public, and what is said of each."""

from __future__ import annotations

import ast
import builtins
import doctest
import inspect
import re

import numpy as np
import pytest

import spgraph as sg
from spgraph import iterations, operations, semirings


@pytest.mark.parametrize("name", ["search", "closure", "power", "contract", "dependencies"])
def test_the_loops_are_functions_of_their_package(name: str) -> None:
    loop = getattr(iterations, name)
    assert inspect.isfunction(loop) and loop.__name__ == name
    # no module of that name, whose import would put itself in the function's place
    assert loop.__module__.rpartition(".")[2] not in iterations.__all__


def test_select_is_the_operation() -> None:
    assert sg.select is operations.select and inspect.isfunction(sg.select)
    assert "select" not in dir(semirings) and "indexunary" in dir(semirings)
    with pytest.raises(AttributeError, match="select"):
        semirings.select  # noqa: B018


MODULES = """agg algorithms benchmarking csgraph datasets distributed errors generators iterations
    operations plot semirings validation"""
FUNCTIONS = """apply assign bfs betweenness_centrality block_array closeness_centrality clustering
    connected_components core_number diag eigenvector_centrality ewise_add ewise_mult ewise_union
    extract from_edges greedy_color hits k_truss katz_centrality kronecker label_propagation load
    maximal_independent_set minimum_spanning_tree most_reliable_path multi_source_bfs mxm mxv
    pagerank reachable read reduce reduce_columnwise reduce_mxm reduce_rowwise salsa save select
    sssp transpose triangle_count vxm widest_path write"""
CLASSES = (
    """BFS Edges HITS Ids Mask Matrix MostReliablePath SALSA SSSP TracedBFS Vector WidestPath"""
)
BOTH = """S V argmax argmin astype conj copy device dot dtype dup empty from_coo from_dense indices
    isclose isequal max maximum mean min minimum multiply nbytes ndim nnz nonzero nvals power shape
    sum to to_coo to_graphblas toarray tocoo tocsr transpose values"""
MATRIX = """T diagonal distribute expanded_values from_cupyx from_igraph from_networkx from_scipy
    has_transpose index_dtype indptr is_symmetric iso matmat matvec ncols nrows pattern prepare
    rmatmat rmatvec row_degrees row_indices setdiag symmetric to_cupyx to_dense to_igraph to_jax
    to_networkx to_scipy to_torch tocsc"""
VECTOR = """arange bits filled size storage to_bitmap to_cupy to_numpy to_sparse unit"""


def public(owner: object) -> set[str]:
    return {name for name in dir(owner) if not name.startswith("_")}


def test_the_public_names() -> None:
    assert public(sg) == {*MODULES.split(), *FUNCTIONS.split(), *CLASSES.split()}
    assert public(sg.Matrix) == {*BOTH.split(), *MATRIX.split()}
    assert public(sg.Vector) == {*BOTH.split(), *VECTOR.split()}
    assert public(sg.Vector.arange(3).S) == {"complement", "parent", "structure"}


@pytest.mark.parametrize("name", MODULES.split())
def test_a_module_says_what_it_holds(name: str) -> None:
    assert inspect.ismodule(getattr(sg, name)) and inspect.getdoc(getattr(sg, name))
    if name != "semirings":  # which makes most of its names when they are asked for
        assert dir(getattr(sg, name)) == sorted(getattr(sg, name).__all__)


DOCUMENTED = {f"sg.{name}": getattr(sg, name) for name in [*FUNCTIONS.split(), *CLASSES.split()]}
for owner, names in ((sg.Matrix, BOTH + " " + MATRIX), (sg.Vector, BOTH + " " + VECTOR)):
    named = {f"{owner.__name__}.{name}": getattr(owner, name) for name in names.split()}
    DOCUMENTED |= named


@pytest.mark.parametrize("name", DOCUMENTED)
def test_a_public_name_has_an_example(name: str) -> None:
    """Those in docstrings of functions are run as tests where they stand; attributes' are not."""
    text = inspect.getdoc(DOCUMENTED[name]) or ""
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    assert text.partition("\n")[0] and example.examples
    if inspect.ismemberdescriptor(DOCUMENTED[name]):
        assert doctest.DocTestRunner(verbose=False).run(example).failed == 0


FUNCTIONS_AND_METHODS = {
    name: given
    for name, given in DOCUMENTED.items()
    if inspect.isfunction(given) or inspect.ismethod(given)
}
for module in (sg.agg, sg.csgraph, sg.generators, sg.iterations, sg.plot, sg.validation):
    own = {name: each for name, each in vars(module).items() if inspect.isfunction(each)}
    FUNCTIONS_AND_METHODS |= {
        f"{module.__name__}.{name}": each
        for name, each in own.items()
        if name in getattr(module, "__all__", own) and each.__module__.startswith("spgraph.")
    }


WITH_EXAMPLES = DOCUMENTED | FUNCTIONS_AND_METHODS


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_an_example_imports_what_it_names(name: str) -> None:
    """A reader has no more than its lines; the tests run it among the names of its module."""
    examples = doctest.DocTestParser().get_examples(inspect.getdoc(WITH_EXAMPLES[name]) or "")
    found: set[str] = set(dir(builtins))
    used: set[str] = set()
    for node in ast.walk(ast.parse("".join(example.source for example in examples))):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else found).add(node.id)
        elif isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.arg):
            found.add(node.arg)
    assert used <= found, used - found


@pytest.mark.parametrize("name", FUNCTIONS_AND_METHODS)
def test_every_parameter_is_named(name: str) -> None:
    """In backquotes, or as `NAME=`, `NAME[k]` or `NAME:`."""
    function = FUNCTIONS_AND_METHODS[name]
    text = inspect.getdoc(function) or ""
    quoted = " ".join(re.findall(r"`([^`]*)`", text))
    asked = set(inspect.signature(function).parameters) - {"self", "cls"}
    missing = [each for each in asked if not re.search(rf"\b{each}\b", quoted)]
    assert not [each for each in missing if not re.search(rf"\b{each}(=|\[|:)", text)]


def flags_of(owner: object, names: list[str]) -> list[tuple[str, str]]:
    """(function, argument) of every argument that is True or False."""
    found = []
    for name in names:
        function = getattr(owner, name)
        if callable(function) and not inspect.isclass(function):
            given = inspect.signature(function).parameters.values()
            found += [(name, p.name) for p in given if str(p.annotation).startswith("bool")]
    return found


SAMPLE = sg.Matrix.from_coo([0, 1, 2], [1, 2, 0], [1.0, 2.0, 3.0])
VALID = {"u": SAMPLE[0, :], "w": SAMPLE[0, :], "v": SAMPLE[0, :], "op": "plus"} | {
    "semiring": "plus_times", "indices": [0], "n": 3, "path": "none.el", "value": 1.0, "source": 0
}  # fmt: skip
OWNERS: dict[str, object] = {
    module.__name__: module
    for module in (sg, sg.csgraph, sg.generators, sg.iterations, sg.plot, sg.benchmarking)
} | {"distributed": sg.distributed, "Matrix": SAMPLE, "Vector": SAMPLE[0, :]}
OWNERS["DistributedMatrix"] = SAMPLE.distribute(2)
METHODS = {"Matrix": (BOTH + " " + MATRIX).split(), "Vector": (BOTH + " " + VECTOR).split()}
METHODS["DistributedMatrix"] = ["astype", "conj", "isequal", "to_scipy", "to_cupyx", "tocsr"]
FLAGS = [
    (owner, *flag)
    for owner, holder in OWNERS.items()
    for flag in flags_of(holder, getattr(holder, "__all__", METHODS.get(owner, [])))
]


@pytest.mark.parametrize(("owner", "name", "flag"), FLAGS)
def test_what_is_neither_true_nor_false_is_no_flag(owner: str, name: str, flag: str) -> None:
    function = getattr(OWNERS[owner], name)
    given = {
        p.name: VALID.get(p.name, SAMPLE)
        for p in inspect.signature(function).parameters.values()
        if p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
    }
    number = 2 if owner == "spgraph.csgraph" else 0  # 0 and 1 are taken where SciPy takes them
    for wrong in ("no", number, np.array([0])):
        with pytest.raises(TypeError, match=f"{flag}: expected True"):
            function(**given, **{flag: wrong})


def test_a_truth_of_numpy_is_a_flag() -> None:
    true, false = np.True_, np.False_
    ranks = sg.pagerank(SAMPLE, weighted=true)
    assert ranks.isequal(sg.pagerank(SAMPLE, weighted=True))
    assert SAMPLE.isequal(sg.Matrix.from_scipy(SAMPLE.to_scipy(), symmetric=None, copy=false))
    with pytest.raises(ValueError, match="not symmetric"):
        SAMPLE.to_networkx(directed=false)
    assert sg.apply(SAMPLE, "ainv", out=SAMPLE.dup(), replace=true).nvals == 3
    with pytest.raises(TypeError, match=r"Mask: structure: expected True or False, got 'no'"):
        sg.Mask(SAMPLE, "no")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"Monoid\(plus\): idempotent: expected True or False"):
        semirings.Monoid(semirings.binary.plus, 0, idempotent="no")  # type: ignore[arg-type]
