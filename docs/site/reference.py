"""Directives of the pages: public names with their docstrings, tables of operators, pictures; and
what docstrings must say.
"""

import doctest
import hashlib
import inspect
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.domains.python import PyXRefRole
from sphinx.errors import PycodeError
from sphinx.ext.napoleon import GoogleDocstring
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective
from sphinx.util.inspect import stringify_signature
from sphinx.util.logging import getLogger
from sphinx.util.typing import stringify_annotation

import spgraph
from spgraph.semirings import monoids, operators

log = getLogger(__name__)

# the modules whose public names have to be in the reference, and from where each is imported
MODULES = {
    **dict.fromkeys(("algorithms", "operations", "io"), "spgraph"),
    **{
        name: f"spgraph.{name}"
        for name in (
            *("agg", "benchmarking", "csgraph", "datasets", "errors", "generators", "iterations"),
            *("plot", "semirings", "validation"),
        )
    },
}

MEMBERS = ["   :members:", "   :inherited-members: Mapping, Matrix, Vector"]

# classes whose objects other calls make
MADE = """BinaryOp DistributedMatrix DistributedVector Function Graph500 IndexUnaryOp Mask
    NcclCommunicator Placement TypedMonoid TypedSemiring UnaryOp"""

# where the names of annotations are documented; those of other libraries stay as they are
PLACES = {
    "spgraph": "Edges Ids Mask Matrix Vector",
    "spgraph.semirings": """BinaryOp Function IndexUnaryOp Limit Monoid Semiring
        TypedMonoid TypedSemiring UnaryOp""",
    "spgraph.benchmarking": "Kernel",
    "spgraph.generators": "GraphModel",
    "spgraph.distributed": "Communicator DistributedMatrix DistributedVector Placement",
    "spgraph.containers": """Array Axis BinaryLike Casting DType Dense Device Direction Graph
        GraphLike IndexUnaryLike Indices MatrixLike MonoidLike Number OperatorLike Position Scalar
        SemiringLike Several SparseArray VectorLike Vertices""",
}
ALIASES = {name: f"~{place}.{name}" for place, names in PLACES.items() for name in names.split()}
ALIASES |= {"np": "~numpy", "npt": "~numpy.typing", "MPI": "~mpi4py.MPI"}
ALIASES |= {"Figure": "~matplotlib.figure.Figure", "FigureCanvasAgg": "~matplotlib.FigureCanvasAgg"}
OUTSIDE = r"(numpy|scipy|mpi4py|os|types|matplotlib|pyarrow|networkx|collections|pathlib|logging)\."


def public(module: Any) -> list[str]:
    """The public names of a module: its `__all__`, else what is defined in it."""
    own = [
        name
        for name, value in vars(module).items()
        if name[0] != "_" and callable(value) and value.__module__ == module.__name__
    ]
    return list(getattr(module, "__all__", sorted(own)))


class Name(PyXRefRole):
    """Code in a docstring: a link where it is a name of the reference."""

    explicit_title_re = re.compile("(?!)")  # `out<mask>` is no title with a target

    def process_link(
        self, env: Any, refnode: Any, has_explicit_title: bool, title: str, target: str
    ) -> tuple[str, str]:
        refnode["py:module"] = env.ref_context.get("py:module")
        refnode["py:class"] = env.ref_context.get("py:class")
        refnode["reftype"] = "obj"
        refnode["optional"] = True
        return title, re.sub(r"^sg\.", "spgraph.", target)


class Reference(SphinxDirective):
    """Public names of a module: a table of them, then each with its signature and docstring.

    The names are the content, or all of the module where there is none; `as` is the module that
    they are imported from, `no-members` leaves out methods.
    """

    has_content = True
    required_arguments = 1
    option_spec: ClassVar = {"as": directives.unchanged, "no-members": directives.flag}

    def run(self) -> list[nodes.Node]:
        module = import_module(self.arguments[0])
        names = " ".join(self.content).split() or public(module)
        place = self.options.get("as", module.__name__)
        lines = [f".. currentmodule:: {place}", ".. autosummary::", "   :nosignatures:", ""]
        lines += [f"   {name}" for name in names]
        for name in names:
            value = getattr(module, name)
            if not inspect.isclass(value):
                lines += ["", f".. autofunction:: {name}"]
            elif issubclass(value, Exception):
                lines += ["", f".. autoexception:: {name}"]
            elif issubclass(value, tuple) or "no-members" in self.options:
                lines += ["", f".. autoclass:: {name}"]
            else:
                lines += ["", f".. autoclass:: {name}", *MEMBERS]
        return self.parse_text_to_nodes("\n".join(["```{eval-rst}", *lines, "```"]))


# identities and terminal values that depend on the type
LIMITS = {
    "highest": "the greatest value of the type",
    "lowest": "the least value of the type",
    "_all_bits": "all bits set",
    "_true_if_bool": "`True`, over bool",
    "_zero_unless_real": "`0`, but not over floats",
    "NoneType": "",
}


class Operators(SphinxDirective):
    """The table of the operators of a namespace of `spgraph.semirings`."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        namespace = self.arguments[0]
        if namespace == "monoid":
            head = ["name", "identity", "value that absorbs every other"]
            rows = [[f"`{m.name}`", limit(m.identity), limit(m.terminal)] for m in monoids._MONOIDS]
        else:
            head, rows = ["name", "result", "types"], []
            # the last row of a name is that of floating types, if it has one
            last = {row.name: row for row in getattr(operators, f"_{namespace.upper()}")}
            for name, row in last.items():
                types = "all" if "f" in row.kinds else "integers"
                rows.append([f"`{name}`", f"`{row.python}`".replace("|", "\\|"), types])
        table = [head, ["---"] * len(head), *rows]
        lines = [f"| {' | '.join(cells)} |" for cells in table]
        return self.parse_text_to_nodes("\n".join(lines))


class Picture(SphinxDirective):
    """Examples that make a `figure`, and the picture of it; the argument says what it shows."""

    has_content = True
    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        text = "\n".join(self.content).rstrip()
        found: dict[str, Any] = {}
        for example in doctest.DocTestParser().get_examples(text + "\n"):
            exec(example.source, found)
        folder = Path(self.env.srcdir, "build", "pictures")
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.png"
        found["figure"].savefig(path, dpi=120, bbox_inches="tight")
        code = nodes.literal_block(text, text, language="pycon")
        return [code, nodes.image(uri=f"/build/pictures/{path.name}", alt=self.arguments[0])]


def limit(given: Any) -> str:
    """An identity or a terminal value, in words where it depends on the type."""
    named = getattr(given, "__name__", type(given).__name__)
    return LIMITS.get(named, f"`{given}`")


def checked(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """A docstring is there and names every parameter; of SciPy's own functions a line instead."""
    if (getattr(value, "__module__", None) or "").startswith("scipy."):
        lines[:] = [f"SciPy's own ``{value.__module__.rpartition('._')[0]}.{value.__name__}``."]
        return
    text = "\n".join(lines)
    if what in ("function", "method", "class", "exception"):
        lines[:] = GoogleDocstring(lines, what=what).lines()
    if not text.strip():
        log.warning("%s has no docstring", name, type="reference")
    for each, member in inspect.getmembers(value) if what == "class" else ():
        said = inspect.getdoc(member) or not (callable(member) or isinstance(member, property))
        if each[0] != "_" and not said:
            log.warning("%s.%s has no docstring", name, each, type="reference")
    if inspect.isfunction(value) or inspect.ismethod(value):
        # a parameter is no link, also where a property has its name
        mine = "|".join(inspect.signature(value).parameters) or "(?!)"
        lines[:] = [re.sub(rf"(?<!`)`({mine})`(?!`)", r"``\1``", line) for line in lines]
        quoted = " ".join(re.findall(r"`([^`]*)`", text))
        for each in set(inspect.signature(value).parameters) - {"self", "cls"}:
            if not re.search(rf"\b{each}\b", quoted) and not re.search(rf"\b{each}(=|\[|:)", text):
                log.warning("%s: the docstring does not name %s", name, each, type="reference")


def as_written(
    app: Sphinx, what: str, name: str, value: Any, options: Any, given: str | None, returned: Any
) -> tuple[str, str] | None:
    """A signature with the annotations of the source: `MatrixLike`, not the union behind it."""
    if given is None or what not in ("function", "method", "class", "exception"):
        return None
    if what == "class" and value.__name__ in MADE.split():
        return "", ""
    signature = inspect.signature(value)
    parameters = list(signature.parameters.values())
    if what == "method" and not inspect.ismethod(value):
        parameters = parameters[1:]  # self
    text = stringify_signature(
        signature.replace(parameters=parameters), show_return_annotation=False
    )
    result = signature.return_annotation
    returned = "" if result is signature.empty or what == "class" else stringify_annotation(result)
    text = re.sub(r"<class '([\w.]+)'>", r"\1", text)  # a type as a default value
    return linked(text), linked(returned)


def linked(text: str) -> str:
    """A signature with the places of the names in its annotations; not in its default values."""
    return re.sub(
        r"(?<![\w.'])(?<!= )[A-Za-z]\w+", lambda name: ALIASES.get(name[0], name[0]), text
    )


def complete(app: Sphinx, env: Any) -> None:
    """Every public name is in the reference; one that is there twice Sphinx reports itself."""
    found = env.domains.python_domain.objects
    wanted = {f"spgraph.{name}" for name in spgraph.__all__}
    for name, place in MODULES.items():
        wanted |= {f"{place}.{each}" for each in public(import_module(f"spgraph.{name}"))}
    for name in sorted(wanted - found.keys()):
        log.warning("%s is not in the reference", name, type="reference")


def without_overloads(app: Sphinx) -> None:
    """A function has one signature, its own, which names every parameter."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "spgraph"]:
        try:
            analyzer = ModuleAnalyzer.for_module(name)
        except PycodeError:  # a module without a file, such as a kernel's
            continue
        analyzer.analyze()
        analyzer.overloads.clear()


def unlinked(app: Sphinx, env: Any, node: Any, content: Any) -> Any:
    """Code that is no name of ours."""
    outside = re.match(OUTSIDE, node.get("reftarget", ""))
    return content if node.get("optional") or outside else None


def trimmed(app: Sphinx, tree: nodes.document) -> None:
    """Examples end with an empty line for the doctests, which a reader need not see."""
    for block in tree.findall(nodes.literal_block):
        block.rawsource = block.astext().rstrip()
        block.children = [nodes.Text(block.rawsource)]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_role_to_domain("py", "name", Name())
    app.add_directive("reference", Reference)
    app.add_directive("operators", Operators)
    app.add_directive("picture", Picture)
    app.connect("builder-inited", without_overloads)
    app.connect("autodoc-process-docstring", checked)
    app.connect("autodoc-process-signature", as_written)
    app.connect("doctree-read", trimmed)
    app.connect("missing-reference", unlinked)
    app.connect("env-check-consistency", complete)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
