"""The parts of the package and the imports between them, read from the sources."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import minimal_backend
import pytest

from spgraph import distributed
from spgraph.backends.cuda.runtime.sources import paths, source

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "spgraph"

# A module imports from its own part and from rows above its own, never from beside or below.
ROWS = (
    {"errors", "process"},
    {"semirings"},
    {"direction"},
    {"containers"},
    {"random_edges"},
    {"checks", "scalars", "backends"},
    {"steps"},
    {"operations"},
    {"agg", "build"},
    {"iterations"},
    {"algorithms"},
    {"io", "generators", "plot", "terminal", "csgraph"},
    {"distributed", "datasets"},
    {"validation"},
    {"benchmarking"},
    {"cli"},
    {"", "__main__"},  # "" is spgraph/__init__.py
)
RANK = {part: rank for rank, row in enumerate(ROWS) for part in row}

# What leads upwards, inside functions only: methods of containers, and the way from a device to the
# module that computes there, which for shards is made of everything above. Annotations name the
# device of those, for type checkers alone.
UPWARDS = {
    *(
        f"containers/methods/{name}.py"
        for name in ("arithmetic", "construction", "conversions", "devices", "indexing", "views")
    ),
    "containers/annotations.py",
    "containers/sparray/elements.py",
    "containers/sparray/extremes.py",
    "containers/sparray/lines.py",
    "containers/sparray/reductions.py",
    "steps.py",
}

# Libraries that belong to some parts only.
ONLY_IN = {
    "cupy": {"backends/cuda", "containers", "csgraph", "distributed"},
    "cupyx": {"backends/cuda", "containers", "csgraph"},
    "numba": {"backends/cpu", "semirings", "process"},
    "llvmlite": {"backends/cpu", "process"},
    "cuda": {"backends/cuda"},
    "backports": {"io"},
    "pyarrow": {"io"},
    "matplotlib": {"plot"},
    "networkx": {"containers", "io", "plot"},
    "mpi4py": {"cli", "distributed"},
    "pymetis": {"distributed"},
    "pooch": {"datasets"},
    "click": {"cli"},
    "rich": {"terminal"},
    "torch": {"containers"},
    "binsparse": {"io"},
    "h5py": {"io"},
    "jax": {"containers"},
    "igraph": {"containers"},
    "graphblas": {"containers"},
}
# ... and these only inside functions: a machine without them installs and runs everything else.
LATE = {"cupy", "cupyx", "cuda", "matplotlib", "mpi4py", "networkx", "pooch", "pymetis", "rich"}
LATE |= {"binsparse", "h5py", "torch", "jax", "igraph", "graphblas"}


class Import(NamedTuple):
    """An import as it stands: the full names it may mean, and whether it is inside a function."""

    file: str
    line: int
    names: tuple[str, ...]
    late: bool

    def __str__(self) -> str:
        return f"{self.file}:{self.line} imports {self.names[0]}"


def sources() -> list[Path]:
    """Every Python file of the package, through the links; kernel texts import nothing."""
    found = []
    for folder, _, names in os.walk(PACKAGE, followlinks=True):
        found += [Path(folder, name) for name in names if name.endswith(".py")]
    return sorted(path for path in found if path.parent.name != "kernels")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), path)


def imports(path: Path) -> Iterator[Import]:
    file = path.relative_to(PACKAGE).as_posix()
    package = ("spgraph", *path.relative_to(PACKAGE).parts[:-1])

    def visit(node: ast.AST, late: bool) -> Iterator[Import]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(file, node.lineno, (alias.name,), late)
        elif isinstance(node, ast.ImportFrom):
            parent = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*parent, *([node.module] if node.module else [])))
            names = tuple(f"{module}.{alias.name}" for alias in node.names)
            yield Import(file, node.lineno, names if module == "spgraph" else (module,), late)
        else:
            inside = late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            typing = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            for child in ast.iter_child_nodes(node):
                yield from visit(child, inside or typing)

    return visit(tree_of(path), late=False)


def part_of(file: str) -> str:
    """`__init__.py` is the part "", `plot.py` and `plot/x.py` are the part "plot"."""
    first = file.split("/")[0].removesuffix(".py")
    return "" if first == "__init__" else first


def parts_meant(names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        top, _, rest = name.partition(".")
        if top == "spgraph":
            part = rest.partition(".")[0]
            is_module = (PACKAGE / part).is_dir() or (PACKAGE / f"{part}.py").exists()
            yield part if part and is_module else ""


@cache
def all_imports() -> list[Import]:
    return [found for path in sources() for found in imports(path)]


def test_every_file_is_in_a_part() -> None:
    files = [path.relative_to(PACKAGE).as_posix() for path in sources()]
    assert {part_of(file) for file in files} <= RANK.keys()
    assert len(files) > 20 and "semirings/__init__.py" in files and "algorithms/bfs.py" in files


def test_imports_point_one_way() -> None:
    wrong = []
    for found in all_imports():
        here = part_of(found.file)
        if found.file in UPWARDS and found.late:
            continue
        for there in parts_meant(found.names):
            # the command line is a user: it may take public names from the top
            top = there == "" and here in {"cli", "__main__"}
            if there != here and not top and RANK[there] >= RANK[here]:
                wrong.append(str(found))
    assert not wrong, "\n".join(wrong)


def test_backends_do_not_know_each_other() -> None:
    for here, there in (("cpu", "cuda"), ("cuda", "cpu")):
        for found in all_imports():
            if found.file.startswith(f"backends/{here}/"):
                assert not any(f"backends.{there}" in name for name in found.names), str(found)


def test_only_a_backend_imports_its_modules() -> None:
    """Others ask `backends.module_of` for the functions that it has."""
    backends = tuple(f"spgraph.backends.{name}" for name in ("cpu", "cuda"))
    found = [
        str(each)
        for each in all_imports()
        if not each.file.startswith(("backends/cpu/", "backends/cuda/"))
        and any(name.startswith(backends) for name in each.names)
    ]
    assert not found, "\n".join(found)


def test_libraries_stay_in_their_parts() -> None:
    wrong = []
    for found in all_imports():
        library = found.names[0].partition(".")[0]
        parts = ONLY_IN.get(library)
        if parts is None:
            continue
        inside = any(found.file.startswith((f"{part}/", f"{part}.py")) for part in parts)
        if not inside or (library in LATE and not found.late):
            wrong.append(str(found))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("folder", ["semirings", "algorithms"])
def test_the_two_links_are_relative(folder: str) -> None:
    link = PACKAGE / folder
    if not (ROOT / folder).exists():
        pytest.skip("this is an unpacked sdist, where the links have become folders")
    assert os.readlink(link) == f"../{folder}"
    assert link.resolve() == ROOT / folder


@pytest.mark.parametrize("folder", ["semirings", "algorithms"])
def test_top_level_imports_of_the_linked_folders_fail(folder: str) -> None:
    if not (ROOT / folder).exists():
        pytest.skip("this is an unpacked sdist, where the links have become folders")
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import {folder}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1 and "ImportError" in run.stderr


def test_import_brings_no_optional_or_slow_library() -> None:
    code = "import sys, spgraph; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    slow = {"cupy", "matplotlib", "networkx", "mpi4py", "rich", "click", "numba", "pyarrow"}
    assert "spgraph.containers.matrix" in run.stdout.split()
    assert not slow & set(run.stdout.split())


# --- the backends offer the same functions --------------------------------------------------------


def public_functions(package: Path) -> dict[str, str]:
    """The parameters of every public function and class of a package, by name.

    Public is what `__init__.py` defines or takes from the package's own modules. The text tells it
    where an import would fail for want of CuPy.
    """
    found: dict[str, str] = {}
    for node in tree_of(package / "__init__.py").body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            found[node.name] = parameters(node)
        elif isinstance(node, ast.ImportFrom):
            module = (node.module or "").partition(f".{package.name}.")[2]
            path = package.joinpath(*module.split(".")).with_suffix(".py")
            if not path.exists():
                continue
            functions = dict(functions_of(path))
            for alias in node.names:
                if alias.name in functions:
                    found[alias.asname or alias.name] = parameters(functions[alias.name])
    return found


def functions_of(path: Path) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The functions of a module by name, and how its classes are made."""
    for node in tree_of(path).body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                    yield node.name, method


def parameters(function: ast.FunctionDef) -> str:
    """Names, kinds and defaults; annotations may differ."""
    arguments = function.args
    for argument in ast.walk(arguments):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    return ast.unparse(arguments).removeprefix("self, ")


def listed(section: str) -> dict[str, str]:
    """The functions and classes that list items of the page on backends give the signatures of."""
    page = (PACKAGE / "backends/README.md").read_text("utf-8")
    text = page.split(f"\n## {section}")[1].split("\n## ")[0]
    items = "\n".join(re.findall(r"^- .*(?:\n  .*)*", text, re.M))
    return dict(re.findall(r"`(\w+)\(([^()`]*)\)`", items))


def test_backends_have_what_the_contract_lists() -> None:
    """The page has each signature; the minimal backend has the required functions."""
    cpu, cuda = (public_functions(PACKAGE / "backends" / name) for name in ("cpu", "cuda"))
    required, optional, between = map(listed, ("Required", "Optional,", "Between devices"))
    assert required | optional | listed("Optional, of the CPU alone") == cpu
    assert required | optional | listed("Optional, of CUDA alone") | between == cuda
    assert len(required | optional | between) == len(required) + len(optional) + len(between)
    assert 15 < len(required) < 22 and len(between) > 5
    assert {name for name in cuda if hasattr(minimal_backend, name)} == required.keys()


def test_what_is_nvidias_stands_in_one_header() -> None:
    """PTX, what the lanes of a warp do together, and the mask of all of them: other texts call the
    header's functions, so that another vendor's GPUs need another header first of all.
    """
    texts = {
        path.name: path.read_text("utf-8")
        for path in (PACKAGE / "backends/cuda").glob("*/kernels/**/*.cu*")
    }
    assert len(texts) > 50
    shim = (ROOT / "tests/helpers/shim/cuda_host_shim.h").read_text("utf-8")
    for own in (
        r"\basm\b",
        r"\b__(?:ballot|any|all|shfl\w*|match\w*|reduce\w*)_sync\b",
        r"\b__syncwarp\b|\b__activemask\b",
        r"\bFULL_WARP\b",
    ):
        named = {name for name, text in texts.items() if re.search(own, text)}
        assert named - {"nvidia.cuh"} == set(), own
        assert re.search(own, texts["nvidia.cuh"]), f"{own} is looked for and stands nowhere"
    assert "warpSize" not in "".join(texts.values()), "the width is WARP"
    header = texts["nvidia.cuh"]
    lanes = header[header.index("the lanes of a warp") : header.index("memory that other threads")]
    functions = re.findall(r"^DEVICE [\w ]+ (\w+)\(", lanes, re.M)
    assert {"lane_id", "warp_ballot", "shuffle"} <= set(functions)
    assert not [name for name in functions if not re.search(rf"\b{name}\b", shim)]
    for name in functions:
        found = [
            text
            for text, body in texts.items()
            if re.search(rf"^DEVICE [\w ]+ {name}\(", body, re.M)
        ]
        assert found == ["nvidia.cuh"], f"{name} is defined in {found}"


def test_shards_have_the_functions_of_a_backend() -> None:
    """But for steps of others: those work on arrays, of which containers in shards have none. What
    the CPU alone has is made of other functions in shards, too, and so are triangles and inverse
    degrees. What goes shard by shard passes on whatever arguments it gets.
    """
    passing = {f"{name}{kind}" for name in ("apply", "ewise", "select") for kind in ("", "_matrix")}
    assert passing <= vars(distributed).keys()
    steps = {"levels", "power_shard", "reduce_segments", "scatter", "triangles"}
    steps |= {"inverse_degrees"}
    steps |= listed("Optional, of the CPU alone").keys()
    cpu, shards = (public_functions(PACKAGE / name) for name in ("backends/cpu", "distributed"))
    assert steps < cpu.keys() and not steps & shards.keys()
    assert {name: shards.get(name) for name in cpu.keys() - steps - passing} == {
        name: parameters for name, parameters in cpu.items() if name not in steps | passing
    }


def test_kernels_mirror_each_other() -> None:
    """Each kernel text of the CPU has one of CUDA, and they share at least one kernel.

    CUDA has more of both: what NumPy does on the CPU, and steps that take a grid several launches.
    The CPU alone has what one thread does for one start and `giant_component`, which CUDA makes of
    the loops, `color_greedily` and `peel`, which it does round by round, `sweep_labels`, there a
    product a colour, `orient`, `spanning_forest`, `sort_entries` and `fold_entries`, which CUDA
    makes of operations and of CuPy's sort, `support`, there a masked product, `dense_entries`,
    which is CuPy's work there, `join`, for a product of CUDA counts before it writes,
    `parse_lines`, for files are read on the host, and `search_marked` and `search_thin`, levels for
    few threads.
    """
    alone = {"bellman_ford", "breadth_first_order", "color_greedily", "dijkstra", "peel"}
    alone |= {"fold_entries", "join", "orient", "parse_lines", "sort_entries", "dense_entries"}
    alone |= {"search_marked", "search_thin", "spanning_forest", "strong_components", "support"}
    alone |= {"sweep_labels", "giant_component"}
    texts = sorted((PACKAGE / "backends/cpu").glob("*/kernels/*.py"))
    assert len(texts) > 5
    for path in texts:
        if "@kernel" not in path.read_text("utf-8"):  # what several texts share
            continue
        if path.stem in alone:
            assert f"{path.stem}.cu" not in paths()
            continue
        programs = {
            node.name
            for node in tree_of(path).body
            if isinstance(node, ast.FunctionDef) and node.args.args[0].arg == "thread"
        }
        text = re.sub(r"__launch_bounds__\([^)]*\)", "", source(path.stem, ""))
        grids = set(re.findall(r"__global__\s+void\s+(\w+)\(", text))
        assert programs & grids, f"{path.stem}: {programs} on the CPU, {grids} on CUDA"
