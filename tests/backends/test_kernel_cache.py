"""Kernels on disk: verified, healed, shared by processes, and never from a folder of others."""

from __future__ import annotations

import gc
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import textwrap
import warnings
from collections.abc import Callable, Iterator

import numba
import numpy as np
import pytest

from spgraph.backends.cpu.runtime import cache, jit
from spgraph.process import cache_folder

ROOT = pathlib.Path(__file__).parents[2]
AS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
posix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no owners and modes on this system")
root = pytest.mark.skipif(not AS_ROOT, reason="only root can give a folder away")
SOMEBODY = 12345  # a user that is neither root nor this one

PROGRAM = """
import sys
from spgraph import operations
from spgraph.backends.cpu.runtime import cache
from spgraph.containers import Matrix, Vector
A = Matrix.from_coo([0, 1, 1], [1, 0, 2], [2, 3, 4], nrows=3, ncols=3)
print(operations.mxv(A, Vector.from_dense([1, 10, 100])).to_numpy(fill=-1).tolist())
for name, module in list(sys.modules.items()):
    if name.startswith("spgraph_kernel"):
        stats = module.pull.stats
        print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
print(cache.folder())
"""
RIGHT = "[20, 403, -1]"


def start(program: str, **environment: str) -> subprocess.Popen[str]:
    paths = filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))
    return subprocess.Popen(
        [sys.executable, "-W", "always", "-c", textwrap.dedent(program)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **environment},
        cwd=ROOT,
    )


def run(program: str, **environment: str) -> tuple[list[str], str]:
    """The lines that a process prints, and its warnings."""
    process = start(program, **environment)
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    return out.splitlines(), err


def test_second_process_compiles_nothing(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "made" / "cache"
    # Numba imports what only compiling needs when it compiles
    program = PROGRAM + "\nimport sys\nprint('numba.np.arrayobj' in sys.modules)"
    (first, _), (second, told) = (run(program, SPGRAPH_CACHE_DIR=str(folder)) for _ in range(2))
    assert first == [RIGHT, "0 1", str(folder / "cpu"), "True"]
    assert second == [RIGHT, "1 0", str(folder / "cpu"), "False"]
    assert "kernel" not in told
    for made in (folder.parent, folder, folder / "cpu"):
        assert stat.S_IMODE(made.stat().st_mode) == 0o700
    assert [path.suffix for path in (folder / "cpu").iterdir()] == [".kernel"]


def test_the_home_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """No shell replaces ~ in the environment of a container."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SPGRAPH_CACHE_DIR", os.path.join("~", "kernels"))
    assert cache_folder.user_folder() == tmp_path / "kernels"


def test_processes_side_by_side_compile_a_kernel_once(tmp_path: pathlib.Path) -> None:
    program = "from spgraph.process import cache_folder\ncache_folder.TIMEOUT = 200.0\n" + PROGRAM
    all_of_them = [start(program, SPGRAPH_CACHE_DIR=str(tmp_path)) for _ in range(3)]
    said = [process.communicate(timeout=240) for process in all_of_them]
    assert [out.splitlines()[0] for out, _ in said] == [RIGHT] * 3, said
    assert sorted(out.splitlines()[1] for out, _ in said) == ["0 1", "1 0", "1 0"]


# a kernel of its own, in a folder of its own


@pytest.fixture
def made(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pathlib.Path]:
    """The file of the kernel that `answer` calls, compiled and kept."""
    texts, folder = tmp_path / "room" / "kernels", tmp_path / "cache"
    texts.mkdir(parents=True)
    (texts / "given.py").write_text(
        "@kernel\ndef fill(thread, threads, sync, z):\n    z[0] = 7.0\n"
    )
    monkeypatch.setattr(jit, "BACKEND", tmp_path)
    monkeypatch.setenv("SPGRAPH_CACHE_DIR", str(folder))
    for kept in (cache.folder, cache_folder.warn):
        kept.cache_clear()
    assert answer() == (0, 1, [])
    (path,) = (folder / "cpu").iterdir()
    yield path
    for kept in (cache.folder, cache_folder.warn):
        kept.cache_clear()


def answer() -> tuple[int, int, list[str]]:
    """Call the kernel as a new process does: what was loaded, what was compiled, the warnings."""
    gc.collect()  # sockets that other tests have left open warn when they go
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        module = jit.module.__wrapped__("given", "")
        z = np.zeros(1)
        module.fill(0, 1, 0, z)
    assert z[0] == 7
    loaded, compiled = (
        sum(counts.values()) for counts in (module.fill.stats[1], module.fill.stats[2])
    )
    return loaded, compiled, [str(warning.message) for warning in caught]


def corruptions(whole: bytes) -> Iterator[tuple[str, bytes]]:
    """60 files that are not `whole`: cut off, zeroed, flipped, exchanged, lengthened."""
    chance = np.random.default_rng(4)
    for part in range(20):
        yield f"cut {part}", whole[: len(whole) * part // 20]
    for part in range(15):
        at, length = chance.integers(len(whole)), int(chance.integers(1, 5000))
        zeroed = whole[:at] + bytes(min(length, len(whole) - at)) + whole[at + length :]
        yield f"zeroed {part}", zeroed if zeroed != whole else bytes(len(whole))
    for part in range(20):
        at = part if part < 8 else int(chance.integers(len(whole)))
        flipped = bytearray(whole)
        flipped[at] ^= 1 << part % 8
        yield f"flipped {part}", bytes(flipped)
    yield "nothing", b""
    yield "zeros", bytes(len(whole))
    yield "longer", whole + b"\0"
    yield "twice", whole + whole
    yield "a text", b"import os\n" * 100


def test_damaged_kernels_heal(made: pathlib.Path) -> None:
    cases = dict(corruptions(made.read_bytes()))
    assert len(cases) == 60
    for case, data in cases.items():
        assert data != made.read_bytes(), case
        made.write_bytes(data)
        loaded, compiled, told = answer()
        assert (loaded, compiled) == (0, 1), case
        assert len(told) == 1 and f"{made} is damaged" in told[0], case
        assert answer() == (1, 0, []), case


def test_a_kernel_in_the_place_of_another_is_damage(made: pathlib.Path) -> None:
    other = made.with_name(f"other-{made.name}")
    made.rename(other)
    with pytest.warns(RuntimeWarning, match="is damaged"):
        assert cache_folder.read(other) is None


def test_a_whole_file_that_cannot_be_loaded_heals(made: pathlib.Path) -> None:
    cache_folder.write(made, b"not a pickle")
    loaded, compiled, told = answer()
    assert (loaded, compiled) == (0, 1) and "cannot be loaded" in told[0]
    assert answer() == (1, 0, [])


def test_a_damaged_cache_heals_in_a_process_of_its_own(tmp_path: pathlib.Path) -> None:
    run(PROGRAM, SPGRAPH_CACHE_DIR=str(tmp_path))
    (path,) = (tmp_path / "cpu").iterdir()
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 2000] = bytes(2000)
    path.write_bytes(data)
    printed, told = run(PROGRAM, SPGRAPH_CACHE_DIR=str(tmp_path))
    assert printed[:2] == [RIGHT, "0 1"] and str(path) in told and "is damaged" in told
    printed, told = run(PROGRAM, SPGRAPH_CACHE_DIR=str(tmp_path))
    assert printed[:2] == [RIGHT, "1 0"] and "is damaged" not in told


@posix
def test_a_file_that_others_may_write_is_not_loaded(made: pathlib.Path) -> None:
    made.chmod(0o666)
    loaded, compiled, told = answer()
    assert (loaded, compiled) == (0, 1) and "another user" in told[0]
    assert answer() == (1, 0, [])


@root
def test_a_file_of_somebody_else_is_not_loaded(made: pathlib.Path) -> None:
    os.chown(made, SOMEBODY, SOMEBODY)
    loaded, compiled, told = answer()
    assert (loaded, compiled) == (0, 1) and "another user" in told[0]


def give_away(place: pathlib.Path) -> None:
    os.chown(place, SOMEBODY, -1)


UNTRUSTED: list[tuple[str, Callable[[pathlib.Path], None]]] = [
    ("", lambda place: place.chmod(0o777)),
    ("cpu", lambda place: place.chmod(0o1777)),
    ("", lambda place: place.chmod(0o770)),
    ("cpu", lambda place: place.chmod(0o702)),
    ("..", lambda place: place.chmod(0o777)),
    ("..", lambda place: place.chmod(0o775)),
    ("", give_away),
    ("cpu", give_away),
    ("..", give_away),
]


@posix
@pytest.mark.parametrize(("where", "change"), UNTRUSTED)
def test_a_folder_that_others_may_write_is_not_used(
    tmp_path: pathlib.Path, where: str, change: Callable[[pathlib.Path], None]
) -> None:
    if change is give_away and not AS_ROOT:
        pytest.skip("only root can give a folder away")
    folder = tmp_path / "above" / "cache"
    (folder / "cpu").mkdir(mode=0o700, parents=True)
    for place in (folder, folder.parent):
        place.chmod(0o700)
    assert cache_folder.prepare(folder / "cpu") == (folder / "cpu", "")
    place = (folder / where).resolve()
    change(place)
    found, reason = cache_folder.prepare(folder / "cpu")
    assert found is None and str(place) in reason
    link = tmp_path / "link"
    link.symlink_to(folder)
    assert cache_folder.prepare(link / "cpu") == (None, reason)


@posix
def test_folders_that_are_trusted(tmp_path: pathlib.Path) -> None:
    sticky, private = tmp_path / "sticky", tmp_path / "sticky" / "private"
    sticky.mkdir()
    sticky.chmod(0o1777)
    assert cache_folder.prepare(private / "a" / "b") == (private / "a" / "b", "")
    assert stat.S_IMODE((private / "a").stat().st_mode) == 0o700
    private.chmod(0o755)
    assert cache_folder.prepare(private) == (private, "")
    found, reason = cache_folder.prepare(sticky)
    assert found is None and str(sticky) in reason


@posix
def test_nothing_is_made_below_a_folder_that_others_may_write(tmp_path: pathlib.Path) -> None:
    tmp_path.chmod(0o777)
    assert cache_folder.prepare(tmp_path / "a" / "b")[0] is None
    assert not list(tmp_path.iterdir())


@posix
def test_an_untrusted_folder_is_warned_of_once_and_left_alone(tmp_path: pathlib.Path) -> None:
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu").chmod(0o777)
    printed, told = run(PROGRAM + PROGRAM, SPGRAPH_CACHE_DIR=str(tmp_path))
    assert printed[:4] == [RIGHT, "0 1", "None", RIGHT]
    assert told.count("RuntimeWarning") == 1 and "SPGRAPH_CACHE_DIR" in told
    assert "other users may write" in told and not list((tmp_path / "cpu").iterdir())


def test_a_folder_that_cannot_be_made(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    printed, told = run(PROGRAM, SPGRAPH_CACHE_DIR=str(tmp_path / "file"))
    assert printed == [RIGHT, "0 1", "None"]
    assert told.count("RuntimeWarning") == 1 and "SPGRAPH_CACHE_DIR" in told


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of file sizes on this system")
def test_a_full_disk_is_no_cache(tmp_path: pathlib.Path) -> None:
    limited = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
    limited += PROGRAM.replace("[1, 10, 100]", "[1.0, 10, 100]") + PROGRAM
    printed, told = run(limited, SPGRAPH_CACHE_DIR=str(tmp_path))
    assert printed[0] == "[20.0, 403.0, -1.0]" and RIGHT in printed
    assert told.count("RuntimeWarning") == 1 and "cannot be written" in told
    assert not list((tmp_path / "cpu").iterdir())


@root
def test_a_cache_of_root_is_read_by_other_users() -> None:
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to others
        folder = pathlib.Path(name, "shared")
        run(PROGRAM, SPGRAPH_CACHE_DIR=str(folder))
        (path,) = (folder / "cpu").iterdir()
        for place, mode in ((folder.parent, 0o755), (folder, 0o755), (folder / "cpu", 0o755)):
            place.chmod(mode)
        path.chmod(0o644)
        single = PROGRAM.replace("[1, 10, 100]", "[1.0, 10, 100]")
        # the Python of root may be closed to others: what it imports late is imported before
        program = f"""{single}
import os
from numba.core.registry import cpu_target
cpu_target.target_context.refresh()
os.seteuid({SOMEBODY})
os.environ["SPGRAPH_CACHE_DIR"] = {str(folder)!r}
cache.folder.cache_clear()
jit.module.cache_clear()
products._pulling.cache_clear()
del module, stats
""".replace("import cache", "import cache, jit").replace(
            "import operations",
            "import operations\nfrom spgraph.backends.cpu.products import products",
        )
        own = str(folder.parent / "own")
        printed, told = run(program + PROGRAM, SPGRAPH_CACHE_DIR=own)
        assert printed[2:] == [f"{own}/cpu", RIGHT, "1 0", str(folder / "cpu")]
        assert "RuntimeWarning" not in told
        printed, told = run(program + single, SPGRAPH_CACHE_DIR=own)
        assert printed[3:] == [printed[0], "0 1", str(folder / "cpu")]
        assert told.count("RuntimeWarning") == 1 and "cannot be written" in told
        assert list((folder / "cpu").iterdir()) == [path]


@posix
@pytest.mark.parametrize("cache_exists", [False, True])
def test_a_home_that_is_read_only(cache_exists: bool) -> None:
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to others
        home, other = pathlib.Path(name, "home"), pathlib.Path(name, "other")
        kept = home / ".cache/spgraph/cpu"
        (kept if cache_exists else home).mkdir(parents=True)
        folders = [pathlib.Path(name), *([home] if cache_exists else []), *home.rglob("*")]
        for folder in folders:
            folder.chmod(0o755)
        for folder in (home, *home.rglob("*")):
            folder.chmod(0o555)
        # root may write everywhere; what Python imports late, others may not be able to read
        program = f"""
import os
{PROGRAM.replace("[1, 10, 100]", "[1.0, 10, 100]")}
if os.geteuid() == 0:
    os.seteuid({SOMEBODY})
del os.environ["SPGRAPH_CACHE_DIR"]
os.environ["HOME"] = {str(home)!r}
cache.folder.cache_clear()
jit.module.cache_clear()
del module, stats
""".replace(
            "import operations",
            "import operations\nfrom spgraph.backends.cpu.products import products",
        ).replace("import cache", "import cache, jit")
        printed, told = run(program + PROGRAM, SPGRAPH_CACHE_DIR=str(other), XDG_CACHE_HOME="")
        assert printed[3] == RIGHT and printed[-1] == (str(kept) if cache_exists else "None")
        assert told.count("RuntimeWarning") == 1 and "SPGRAPH_CACHE_DIR" in told
        for folder in (*home.rglob("*"), home):
            folder.chmod(0o755)
        assert not [path for path in home.rglob("*") if path.is_file()]


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("SPGRAPH_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert cache_folder.prepare(cache_folder.user_folder()) == (
        None,
        "this user has no home folder",
    )


# the claim to compile


@pytest.mark.skipif(cache_folder.fcntl is None, reason="no file locks on this system")
def test_a_claim_that_never_ends_is_not_waited_for_without_end(
    made: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made.unlink()
    monkeypatch.setattr(cache_folder, "TIMEOUT", 0.05)
    with cache_folder.alone(made):
        assert answer() == (0, 1, [])
    assert answer() == (1, 0, [])


@pytest.mark.skipif(cache_folder.fcntl is None, reason="no file locks on this system")
def test_the_claim_of_a_killed_process_ends(
    made: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made.unlink()
    process = start(f"""
        import pathlib, time
        from spgraph.process import cache_folder
        with cache_folder.alone(pathlib.Path({str(made)!r})):
            print("mine", flush=True)
            time.sleep(600)
    """)
    assert process.stdout is not None and process.stdout.readline() == "mine\n"
    process.kill()
    process.communicate()
    monkeypatch.setattr(cache_folder, "TIMEOUT", float("inf"))
    assert answer() == (0, 1, [])
    assert answer() == (1, 0, [])


def test_a_kernel_that_does_not_compile_gives_its_claim_back(
    made: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "@kernel\ndef fill(thread, threads, sync, z):\n    z[0] = UNKNOWN\n"
    monkeypatch.setattr(jit, "text_of", lambda stem: text)
    monkeypatch.setattr(cache_folder, "TIMEOUT", float("inf"))
    for _ in range(2):
        module = jit.module.__wrapped__("given", "")
        with pytest.raises(Exception, match="UNKNOWN"):
            module.fill(0, 1, 0, np.zeros(1))
    assert [path.suffix for path in made.parent.iterdir()] == [".kernel"]


def test_without_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba that is told not to compile is named, with the remedy."""
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    with pytest.raises(RuntimeError, match="NUMBA_DISABLE_JIT=1.*unset"):
        jit.module("contract", "WITHOUT_COMPILER = True\n")
