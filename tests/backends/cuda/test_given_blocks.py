"""The blocks of fields that the host writes for kernels of several devices are the structs of the
kernels: the same names in the same order, each of 8 bytes.
"""

from __future__ import annotations

import re
from typing import Any

import cuda_host_shim
import numpy as np
import pytest
import shim_exchanges
from closure_cases import CASES
from closure_cases import graph as closure_graph
from search_cases import graph as search_graph
from shim_exchanges import EXCHANGES

from spgraph.backends.cuda.closure import closure_peers, closure_rounds
from spgraph.backends.cuda.exchange import plan
from spgraph.backends.cuda.runtime.sources import source
from spgraph.backends.cuda.search import search_peers, search_rounds
from spgraph.iterations import closure, search
from spgraph.semirings import min_plus, min_secondi

PEERS = 3


def fields_of(text: str, struct: str) -> dict[str, int]:
    """(name, how many numbers) of the fields of a struct and of those that it is derived from."""
    found = re.search(rf"struct {struct}(?: : (\w+))? \{{(.*?)\n\}};", text, re.DOTALL)
    assert found, struct
    fields = fields_of(text, found[1]) if found[1] else {}
    for line in re.sub(r"//.*", "", found[2]).split(";"):
        if not line.strip():
            continue
        kind, rest = re.fullmatch(r"\s*(?:const )?([\w<>]+)(.*)", line, re.DOTALL).groups()  # type: ignore[union-attr]
        for declared in rest.split(","):
            pointer, name, count = re.fullmatch(
                r"\s*(\*?)\s*(\w+)(?:\[(.*)\])?\s*", declared
            ).groups()  # type: ignore[union-attr]
            assert pointer or kind in ("i64", "u64"), f"{name} has 8 bytes"
            fields[name] = sum(
                int(n) for n in (count or "1").replace("PEERS", str(PEERS)).split("+")
            )
    return fields


@pytest.mark.parametrize(
    "text",
    [
        "struct Given {\n    i64 a, b[2]; // c\n    const I* d;\n};",
        "struct Base {\n    i64 a;\n};\nstruct Given : Base {\n    u64 b[PEERS + 1]; I* d;\n};",
    ],
    ids=("alone", "derived"),
)
def test_structs_are_read(text: str) -> None:
    expected = {"a": 1, "b": 4 if "PEERS" in text else 2, "d": 1}
    assert list(fields_of(text, "Given").items()) == list(expected.items())


def test_fields_become_numbers() -> None:
    array = np.arange(3)
    made = plan.block({"a": np.int64(7), "b": [1, (2, True)], "c": array, "d": None, "e": -1}, np)
    assert made.tolist() == [7, 1, 2, 1, array.ctypes.data, 0, -1]


@pytest.mark.skipif(cuda_host_shim.COMPILER is None, reason="no C++ compiler")
@pytest.mark.parametrize("form", ["peers", "rounds"])
@pytest.mark.parametrize("loop", ["search", "closure"])
def test_blocks_are_the_kernels_structs(
    loop: str, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what a small search or closure writes."""
    blocks: list[dict[str, Any]] = []
    block = plan.block

    def noted(fields: Any, xp: Any) -> Any:
        blocks.append(fields)
        return block(fields, xp)

    for module in (plan, closure_rounds, search_rounds):
        monkeypatch.setattr(module, "block", noted)
    for module in (closure_peers, closure_rounds, search_peers, search_rounds):
        monkeypatch.setattr(module, "THREADS", 64)
    exchange = EXCHANGES["3 peers" if form == "peers" else "rounds, 3 shards"]
    if loop == "search":
        made: Any = search_graph("path", "least parent")
        A, start = exchange.place(made.A), made.start()
    else:
        made = closure_graph("path", CASES["distance, float32"])
        A, start = exchange.place(made.A), made.v
    shim_exchanges.install(monkeypatch)
    if loop == "search":
        search(A, start.to(A.device), min_secondi)
    else:
        closure(A, start.to(A.device), min_plus)
    expected = fields_of(source(f"{loop}_{form}", ""), "Given")
    assert len(blocks) == PEERS
    for fields in blocks:
        lengths = {name: len(plan.numbers(value)) for name, value in fields.items()}
        assert list(lengths.items()) == list(expected.items())
