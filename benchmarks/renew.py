"""Renew the result files on the machine at hand, one benchmark after another, each within its time.

`--on` says what is measured: cpu, gpu (one of them) and gpus (two); by default what is there. Files
get today's date, and a number where there is one of that name already, so that nothing is lost; the
parts of a benchmark share a file. With `--add` they go into today's newest file of their kind, if
there is one, of the same commit: so a benchmark can be run in pieces. One that fails or is not done
in time leaves what it has in a file whose name begins with "stopped_", which no table shows.
Afterwards `python -m benchmarks report` brings the pages up to date, and `compare` says what is
faster and what is slower.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from typing import Any, NamedTuple

from benchmarks.measuring import arguments, machine, rows
from benchmarks.measuring.arguments import RESULTS, ROOT


class Part(NamedTuple):
    """A benchmark: what it is called and runs on, its seconds at most, the command after `python
    -m`, in which OPTIONS stands for the file and for what the part `takes`.
    """

    name: str
    on: str
    seconds: int
    command: str
    takes: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """How its file is called, which several parts may share."""
        return self.name.partition(" ")[0]


DATA, PEERS = ("data", "graphs"), ("data", "graphs", "cugraph")
ON_ONE = "--graphs road_NY,kron21,rmat_n20_512,rmat_n24_32 --sources 4 --calls 7"
ON_TWO = "--graphs kron24_16,kron25_16,grid1000 --devices 1,2 --sources 2 --calls 3"
SCALED = "rmat_n19_256,rmat_n19_512,rmat_n20_256,kron_g500-logn21,rmat_n24_32"
# what the documents show comes first
PARTS = (
    Part("bfs_cpu", "cpu", 150, "benchmarks.cpu.bfs --sources 4 --calls 3 OPTIONS", DATA),
    Part("algorithms_cpu", "cpu", 120, "benchmarks.cpu.algorithms --rounds 4 OPTIONS", DATA),
    Part(
        *("operations_cpu", "cpu", 140),
        "benchmarks.cpu.operations --rounds 3 --matrices kron18 OPTIONS",
    ),
    Part(
        *("operations_cpu of uniform20", "cpu", 140),
        "benchmarks.cpu.operations --rounds 3 --matrices uniform20 OPTIONS",
    ),
    Part(
        *("csgraph_cpu", "cpu", 140),
        "benchmarks.cpu.csgraph --rounds 2 --graphs kron18,road_NY,road_BAY OPTIONS",
        ("data",),
    ),
    Part(
        *("csgraph_cpu of others", "cpu", 140),
        "benchmarks.cpu.csgraph --rounds 2 --graphs grid1000,grid160,kron13,dense400 OPTIONS",
    ),
    Part(
        "building_cpu",
        "cpu",
        120,
        "benchmarks.cpu.building --entries 5000000 --rounds 3 OPTIONS",
        ("data",),
    ),
    Part(
        *("dense_products_cpu", "cpu", 120),
        "benchmarks.dense_products --calls 3 --graphs kron18:64,grid1024:64 OPTIONS",
    ),
    Part("graph500_cpu", "cpu", 90, "benchmarks record OPTIONS graph500 --scale 18"),
    Part("gap_cpu", "cpu", 90, "benchmarks record OPTIONS gap kron --scale 16"),
    Part("gapbs_cpu", "cpu", 600, "benchmarks.cpu.gapbs OPTIONS", ("data", "graphs", "gapbs")),
    Part("bfs_gpu", "gpu", 75, f"benchmarks.gpu.bfs {ON_ONE} OPTIONS", PEERS),
    Part("algorithms_gpu", "gpu", 160, f"benchmarks.gpu.algorithms {ON_ONE} OPTIONS", PEERS),
    Part("operations_gpu", "gpu", 45, "benchmarks.gpu.operations OPTIONS"),
    Part("seeds_gpu", "gpu", 110, "benchmarks seeds --calls 3 --ablate OPTIONS"),
    Part(
        *("host_storage_gpu", "gpu", 40),
        "benchmarks.gpu.host_storage --graphs kron21 --calls 3 OPTIONS",
    ),
    Part(
        *("dense_products_gpu", "gpu", 60),
        "benchmarks.dense_products --device cuda --calls 2 OPTIONS "
        "--graphs rmat_n24_32:64,grid4096:64,kron21:64",
    ),
    Part(
        *("gap_gpu", "gpu", 160),
        "benchmarks record OPTIONS gap kron --scale 22 --trials 16 --device cuda",
    ),
    Part(
        "graph500_gpu",
        "gpu",
        70,
        "benchmarks record OPTIONS graph500 --scale 26 --trace --device cuda",
    ),
    Part("distributed_gpu", "gpus", 130, f"benchmarks.gpu.distributed {ON_TWO} OPTIONS"),
    Part(
        *("graph500_gpu of two", "gpus", 100),
        "benchmarks record OPTIONS graph500 --scale 27 --gpus 2 --trace",
    ),
    Part(
        *("seeds_gpu of two", "gpus", 150),
        f"benchmarks seeds --calls 3 --ablate --devices 1,2 --graphs {SCALED} OPTIONS",
    ),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("--on", help="cpu,gpu,gpus: some of them")
    parser.add_argument("--only", help="the names of some benchmarks, with commas between them")
    parser.add_argument("--within", type=float, help="seconds for all together")
    parser.add_argument("--add", action="store_true", help="to today's files, of this commit")
    parser.add_argument("--commit", help="where the tree has no git history: which commit it is")
    parser.add_argument("--folder", type=pathlib.Path, default=RESULTS, help="for the result files")
    add_peers(parser)


def add_peers(parser: argparse.ArgumentParser) -> None:
    """Which graphs, and where other systems are."""
    parser.add_argument("--graphs", help="instead of those of each benchmark that takes real ones")
    parser.add_argument("--data", type=pathlib.Path, help="the folder of real graphs")
    parser.add_argument("--gapbs", type=pathlib.Path, metavar="BUILDS", help="GAPBS, on the CPU")
    parser.add_argument("--cugraph", type=pathlib.Path, metavar="BUNDLE", help="on a GPU")


def run(given: argparse.Namespace) -> int:
    """Run what was asked for; 1 where a part failed or was left out for want of time."""
    wanted = given.on.split(",") if given.on else here()
    names = given.only.split(",") if given.only else [part.name for part in PARTS]
    for option, asked, there in (
        ("only", names, [part.name for part in PARTS]),
        ("on", wanted, ["cpu", "gpu", "gpus"]),
    ):
        if unknown := sorted(set(asked) - set(there)):
            raise SystemExit(
                f"renew: --{option}: expected some of {', '.join(there)}; got {unknown[0]!r}"
            )
    chosen = [part for part in PARTS if part.on in wanted and part.name in names]
    if not chosen:
        raise SystemExit(f"renew: none of {', '.join(names)} is measured on {', '.join(wanted)}")
    began, lacking, shared = time.monotonic(), [], {}
    with unpacked(given.cugraph) as given.cugraph:
        for part in chosen:
            file = shared.setdefault(part.kind, file_of(part.kind, given))
            limit = float(part.seconds)
            if given.within is not None:
                limit = min(limit, began + given.within - time.monotonic())
            if not measured(part, file, limit, given):
                lacking.append(part.name)
    print(f"all in {time.monotonic() - began:.0f} s; not done: {', '.join(lacking) or 'none'}")
    return 1 if lacking else 0


def file_of(kind: str, given: argparse.Namespace) -> pathlib.Path:
    """Where the results of a kind go."""
    there = arguments.files(given.folder, kind)
    today = str(datetime.datetime.now(datetime.UTC).date())
    if given.add and there and arguments.place(there[-1])[0] == today:
        return there[-1].resolve()
    return arguments.free(given.folder, kind)


def here() -> list[str]:
    """What this machine has."""
    if importlib.util.find_spec("cupy") is None:
        return ["cpu"]
    from spgraph.containers.storage.arrays import import_cupy

    try:
        count = import_cupy().cuda.runtime.getDeviceCount()
    except Exception:  # CuPy without a driver
        count = 0
    return ["cpu", "gpu", "gpus"][: 1 + min(count, 2)]


@contextlib.contextmanager
def unpacked(bundle: pathlib.Path | None) -> Any:
    """A folder with the bundle in it, unpacked once for all parts."""
    if bundle is None or not bundle.is_file():
        yield bundle
        return
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(bundle) as archive:
            archive.extractall(folder, filter="data")
        yield pathlib.Path(folder)


def measured(part: Part, file: pathlib.Path, limit: float, given: argparse.Namespace) -> bool:
    """Run a part for so many seconds at most, and say what became of it: whether it was done."""
    if "gapbs" in part.takes and given.gapbs is None:
        print(f"{part.name}: GAPBS is missing, give --gapbs BUILDS", flush=True)
        return True
    if limit < part.seconds / 4:
        print(f"{part.name}: left out, {max(limit, 0):.0f} s are left", flush=True)
        return False
    before, began = file.read_bytes() if file.exists() else None, time.monotonic()
    code, said = ended(command(part, file, given), limit)
    spent = f"{part.name:22}{time.monotonic() - began:6.0f} s"
    if code:
        if file.exists():
            file.rename(file.with_name("stopped_" + file.name))
        if before is not None:
            file.write_bytes(before)
        why = "out of time" if code < 0 else f"exit code {code}"
        print(f"{spent}, {why}\n{said[-1500:]}", flush=True)
        return False
    result = json.loads(file.read_text(encoding="utf-8"))
    others = [result["machine"].get(f"others_cores{when}") for when in ("", "_during")]
    notes = [f"others used {others[0]} cores before, {others[1]} during the run"]
    notes += [] if machine.quiet(result) else ["NOT SHOWN BY report: run it again"]
    notes += [f"fault: {fault}" for fault in result.get("faults", [])]
    notes += [f"lacking: {lacking}" for lacking in rows.incomplete(result)[:3]]
    print(f"{spent}, {file.name}: {'; '.join(notes)}", flush=True)
    return True


def command(part: Part, file: pathlib.Path, given: argparse.Namespace) -> list[str]:
    """The words after `python -m`."""
    options = ["--commit", given.commit] if given.commit else []
    for name in part.takes:
        value = getattr(given, name)
        if value is not None:
            said = str(value if name == "graphs" else value.resolve())
            options += [said] if name == "gapbs" else [f"--{name}", said]
    words = part.command.split()
    at = words.index("OPTIONS")
    return [*words[:at], "-o", str(file), *options, *words[at + 1 :]]


def ended(words: list[str], limit: float) -> tuple[int, str]:
    """(the exit code, below 0 where the time was over; what was said)."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", *words],
            cwd=ROOT,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a peer may be a process of its own
        )
        try:
            code = process.wait(limit)
        except BaseException as error:  # Ctrl-C does not reach another session
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            code = -1
        said.seek(0)
        return code, said.read()
