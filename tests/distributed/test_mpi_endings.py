"""Several processes of MPI end together, whichever way one of them ends, and find out where one
goes another way than the others. No verdict here depends on speed.
"""

from __future__ import annotations

import re

import mpi_endings
import pytest
from processes import finished

from spgraph.distributed import LocalCommunicator

pytestmark = pytest.mark.mpi
# what runs with the other number of processes, or another ending, by default
FULL = pytest.mark.full


@pytest.fixture(scope="module", autouse=True)
def kernels() -> None:
    """Compiled once, here: while one of several processes compiles, the others keep looking."""
    mpi_endings.searched(LocalCommunicator(4))


def run(count: int, what: str) -> tuple[int, str]:
    """The exit code and the words of `count` processes, which end by themselves."""
    return finished(count, mpi_endings.__file__, what)


# a program that ends, and what the others say, if they have to
ENDINGS = [
    (2, "raises", "has ended its program after ValueError"),
    pytest.param(4, "raises", "has ended its program after ValueError", marks=FULL),
    (2, "sys_exit", "has ended its program"),
    (4, "returns", "has ended its program"),
    (2, "thread", "has ended its program"),
    (4, "no_rows", "has ended its program after ValueError"),
]


@pytest.mark.parametrize(("count", "what", "words"), ENDINGS)
def test_a_program_that_ends_is_an_error_of_the_others(count: int, what: str, words: str) -> None:
    code, said = run(count, what)
    assert code != 0, said
    # some launchers end the rest as soon as the first has ended
    line = "all_reduce, sum of float64 (3,) waits for"
    error = f"{line} process {count - 1} in vain: process {count - 1} {words}"
    assert any(f"MPI: process {rank} of {count}: {error}" in said for rank in range(count - 1)), (
        said
    )
    for rank in range(count - 1):
        assert f"process {rank} is done;" not in said, said


@pytest.mark.parametrize(
    ("count", "what"), [pytest.param(2, "os_exit", marks=FULL), (4, "os_exit"), (2, "killed")]
)
def test_a_process_that_is_gone_ends_the_others(count: int, what: str) -> None:
    code, said = run(count, what)
    assert code != 0 and "is done;" not in said, said


@pytest.mark.parametrize(
    ("count", "what", "code", "words"),
    [
        pytest.param(
            *(2, "raises_while_others_compute", 70, "process 1 of 2 has left after ValueError"),
            marks=FULL,
        ),
        (4, "raises_while_others_compute", 70, "process 3 of 4 has left after ValueError"),
        (2, "interrupted", 130, "process 1 of 2 has left after KeyboardInterrupt"),
        (4, "interrupted_while_it_waits", 130, "process 3 of 4 has left after KeyboardInterrupt"),
    ],
)
def test_an_error_ends_those_that_do_not_hear_of_it(
    count: int, what: str, code: int, words: str
) -> None:
    found, said = run(count, what)
    # mpiexec ends with this status, or MPICH's with that of a process that it has killed
    assert found in (code, 9) and f"spgraph: MPI: {words}; ending the others" in said, said


@pytest.mark.parametrize("count", [pytest.param(2, marks=FULL), 4])
def test_processes_that_end_in_peace_say_nothing(count: int) -> None:
    code, said = run(count, "ends_at_different_times")
    assert code == 0
    assert sorted(said.splitlines()) == [f"process {rank} is done;" for rank in range(count)]


@pytest.mark.parametrize("count", [pytest.param(2, marks=FULL), 4])
def test_another_order_of_calls_is_an_error_of_all(count: int) -> None:
    code, said = run(count, "another_order")
    assert code == 0, said
    one, other = (
        "all_reduce, sum of float64 (3,), call 2",
        "all_reduce_host, max of 2 int64, call 2",
    )
    last = count - 1
    for rank in range(last):
        assert (
            f"process {rank}: MPI: process {rank} of {count}: it is at {one}, but process " in said
        )
    assert (
        f"process {last}: MPI: process {last} of {count}: it is at {other}, but process 0" in said
    )
    assert said.count(f"but process {last} at {other}") == last and "no error" not in said


@pytest.mark.parametrize(
    ("count", "what"),
    [
        (4, "another_graph"),
        (2, "another_of_two_graphs"),
        (2, "another_partition"),
        (2, "another_partition_in_shards"),
        (2, "another_source"),
        (2, "another_source_of_paths"),
        (2, "another_semiring"),
        (2, "another_damping"),
        (2, "another_seed"),
        (2, "another_version"),
        pytest.param(2, "another_graph", marks=FULL),
        pytest.param(4, "another_of_two_graphs", marks=FULL),
    ],
)
def test_another_graph_is_an_error_of_all(count: int, what: str) -> None:
    code, said = run(count, what)
    assert code == 0, said
    last = count - 1
    for rank in range(count):
        other = 0 if rank == last else last
        assert f"process {rank}: MPI: process {rank} of {count}: " in said, said
        assert f"process {other} makes it with another graph" in said
    assert "no error" not in said


def test_who_comes_late_is_named_and_awaited() -> None:
    code, said = run(4, "comes_late")
    assert code == 0 and said.count("is done;") == 4, said
    for rank in range(3):
        assert f"LOG spgraph.distributed MPI: process {rank} of 4 has waited" in said, said
    # on a busy machine another one may come late, too
    words = r"in all_reduce_host, sum of 1 int64: process(es)? [\d, ]*\b3 ha(s|ve) not come"
    assert len(re.findall(words, said)) == 3, said


@pytest.mark.parametrize("count", [2, pytest.param(4, marks=FULL)])
def test_who_never_comes_is_an_error_with_a_timeout(count: int) -> None:
    code, said = run(count, "never_comes")
    assert code != 0, said
    words = r"all_reduce_host, sum of 1 int64: process(es)? [\d, ]*\b"
    words += rf"{count - 1} ha(s|ve) not come within "
    assert re.search(f"{words}timeout=2 s", said) and "is done;" not in said, said


@pytest.mark.parametrize(
    ("what", "call"),
    [("communicator_alone", "the beginning"), ("store_alone", "TcpStore.over_mpi")],
)
def test_who_never_begins_is_an_error_with_a_timeout(what: str, call: str) -> None:
    """The others waited in MPI itself, without a limit, there and at the end of their programs."""
    code, said = run(3, what)
    assert code != 0 and "it has begun;" not in said, said
    words = rf"MPI: process [01] of 3: {re.escape(call)}: another process has not come within timeo"
    assert re.search(words, said), said
    words = "has left, another process has not come within timeout=2 s; ending the others"
    # the launcher ends all with the first, and does not always pass on what they said last
    assert words in said or any(words in run(3, what)[1] for _ in range(3)), said


def test_a_program_that_goes_on_after_a_timeout_ends() -> None:
    code, said = run(3, "goes_on_after_a_timeout")
    assert code != 0 and "is done;" in said and "process 0 goes on" in said, said
    assert re.search(r"of 3 has left, process(es)? [\d, ]*\b2 ha(s|ve) not come within", said), said
