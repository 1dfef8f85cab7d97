"""The machine code of every CUDA kernel in two checkouts, compiled by the same NVRTC; needs no GPU.

A move of files must leave every kernel identical. So must a rename, except where functions that are
not inlined change places: then size, registers and stack are equal. What differs is listed, with
its growth, and the exit code is 1. --sizes accepts kernels of equal size, registers and stack. A
kernel that is gone is the old name of a new one of the same code.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import io
import json
import os
import pathlib
import struct
import subprocess
import sys
from typing import Any, NamedTuple

# attributes of a cubin's section .nv.info: an id of a symbol, and a number of it
REGISTERS, FRAME = 0x2F, 0x11

# run in each checkout: {stem: cubin} of every kernel file under its representative preamble
_COMPILE = """
import base64, importlib, json, pathlib, sys
import spgraph
root = pathlib.Path(spgraph.__file__).parent
(path,) = (root / "backends" / "cuda").rglob("offline.py")
parts = path.relative_to(root.parent).with_suffix("").parts
offline = importlib.import_module(".".join(parts))
texts = offline.preambles()
made = {}
for stem, text in texts.items():
    code = offline.compile_source(offline.source(stem, text), sys.argv[1])
    made[stem] = base64.b64encode(code).decode()
print(json.dumps(made))
"""


class Kernel(NamedTuple):
    """What a kernel became: the hash of its instructions, their bytes, registers, stack bytes."""

    text: str
    size: int
    registers: int
    stack: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("old", type=pathlib.Path, metavar="OLD_CHECKOUT")
    parser.add_argument("new", type=pathlib.Path, metavar="NEW_CHECKOUT")
    parser.add_argument("--architecture", default="sm_90")
    parser.add_argument(
        "--sizes", action="store_true", help="accept equal size, registers and stack"
    )


def run(given: argparse.Namespace) -> int:
    """Print what differs; 1 where something does."""
    old, new = (kernels(path, given.architecture) for path in (given.old, given.new))
    for before_name, name in renamed(old, new).items():
        print(f"{before_name}: now {name}")
        old[name] = old.pop(before_name)
    differ = 0
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name), new.get(name)
        if before is None or after is None:
            differ += 1
            print(f"{name}: {'new' if before is None else 'gone'}")
        elif before.text != after.text:
            same = before[1:] == after[1:]
            differ += not (same and given.sizes)
            print(
                f"{name}: bytes {before.size} -> {after.size} "
                f"({100 * (after.size / before.size - 1):+.1f} %), registers {before.registers} -> "
                f"{after.registers}, stack {before.stack} -> {after.stack}"
            )
    print(f"{len(new)} kernels for {given.architecture}, {differ} differ")
    return 1 if differ else 0


def renamed(old: dict[str, Kernel], new: dict[str, Kernel]) -> dict[str, str]:
    """{old name: new name} of kernels whose name is gone, and whose code has a name that is new."""
    names: dict[str, list[str]] = {}
    for name in sorted(new.keys() - old.keys(), reverse=True):
        names.setdefault(new[name].text, []).append(name)
    gone = sorted(old.keys() - new.keys())
    return {name: names[old[name].text].pop() for name in gone if names.get(old[name].text)}


def kernels(checkout: pathlib.Path, architecture: str) -> dict[str, Kernel]:
    """'stem kernel' -> what it became, of a checkout."""
    done = subprocess.run(
        [sys.executable, "-c", _COMPILE, architecture],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout.resolve())},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"machine_code: {checkout.name} does not compile:\n{done.stderr[-2000:]}")
    found: dict[str, Kernel] = {}
    for stem, code in json.loads(done.stdout).items():
        for name, kernel in read(base64.b64decode(code)).items():
            found[f"{stem} {name}"] = kernel
    return found


def read(cubin: bytes) -> dict[str, Kernel]:
    """The kernels of a cubin by name."""
    from elftools.elf.elffile import ELFFile

    elf = ELFFile(io.BytesIO(cubin))
    symbols = elf.get_section_by_name(".symtab")
    facts = _attributes(elf.get_section_by_name(".nv.info").data())
    found = {}
    for section in elf.iter_sections():
        if not section.name.startswith(".text."):
            continue
        name = section.name.removeprefix(".text.")
        ids = [k for k, symbol in enumerate(symbols.iter_symbols()) if symbol.name == name]
        registers, stack = (max(facts[kind].get(k, 0) for k in ids) for kind in (REGISTERS, FRAME))
        data = section.data()
        found[name] = Kernel(hashlib.sha256(data).hexdigest(), len(data), registers, stack)
    return found


def _attributes(data: bytes) -> dict[int, dict[int, int]]:
    """attribute -> {symbol's id: number}; an entry: a format, an attribute, a length, a content."""
    found: dict[int, dict[int, Any]] = {REGISTERS: {}, FRAME: {}}
    at = 0
    while at + 4 <= len(data):
        form, kind, size = struct.unpack_from("<BBH", data, at)
        at += 4
        if form != 4:  # other formats hold their content in place of the length
            continue
        if kind in found and size == 8:
            symbol, number = struct.unpack_from("<II", data, at)
            found[kind][symbol] = number
        at += size
    return found
