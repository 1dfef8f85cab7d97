"""Matrix, Vector and Mask: storages, equality, devices, and what they own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from fixtures_device import device  # noqa: F401

import spgraph as sg
from spgraph.containers import Mask, Matrix, Vector, as_matrix
from spgraph.errors import BackendUnavailable, DomainMismatch

DENSE = np.array([[0, 2, 0, 3], [0, 0, 0, 0], [5, 0, 6, 7]])


def test_as_matrix_makes_transient_matrices() -> None:
    A = Matrix.from_dense(DENSE)
    assert as_matrix(A) is A and not A._transient
    for given in (sp.csr_array(DENSE), sp.coo_matrix(DENSE), DENSE, DENSE.tolist()):
        made = as_matrix(given)
        assert made._transient and np.array_equal(made.to_scipy().toarray(), DENSE)
    with pytest.raises(DomainMismatch, match="A: expected a Matrix.*got str"):
        as_matrix("graph")


@pytest.mark.parametrize("index", [0.5, 1.0, True, [1], np.float64(1), "1", None])
def test_a_unit_vector_has_an_integer_position(index: Any) -> None:
    for where in ("cpu", Matrix.empty(3, 3).distribute(2).device):
        with pytest.raises(DomainMismatch, match="index: expected an integer"):
            Vector.unit(index, 1.0, size=3, dtype=float, device=where)
        with pytest.raises(ValueError, match="size: expected an integer"):
            Vector.unit(1, 1.0, size=2.5, dtype=float, device=where)


def test_matrix_equality() -> None:
    A = Matrix.from_dense(DENSE)
    assert (
        A.isequal(A.dup()) and not A.isequal(A.T) and not A.isequal(Matrix.from_dense(DENSE + 0.5))
    )
    assert A.isequal(Matrix.from_dense(DENSE * 1.0)) and not A.isequal(
        Matrix.from_dense(DENSE * 1.0), check_dtype=True
    )
    iso, plain = Matrix.from_coo([0, 1], [1, 0], 3), Matrix.from_coo([0, 1], [1, 0], [3, 3])
    assert iso.isequal(plain)
    with pytest.raises(DomainMismatch, match="other: expected a Matrix"):
        A.isequal(DENSE)


def test_matrix_goes_to_a_device_and_back(device: str) -> None:
    A = Matrix.from_dense(DENSE)
    B = A.to(device)
    assert B.device.startswith(device) and B.to("cpu").isequal(A)
    assert B.T.to("cpu").isequal(A.T)


def test_storage_follows_the_density() -> None:
    assert Vector.from_coo([1], [1], size=100).storage == "sparse"
    assert Vector.from_coo(np.arange(50), np.arange(50), size=100).storage == "bitmap"
    assert Vector.from_coo(np.arange(100), 1, size=100).storage == "full"
    assert Vector.from_dense([1, 2]).storage == "full"
    assert Vector.empty(0).storage == "sparse"


def test_vector_copies_what_it_is_made_from() -> None:
    array = np.arange(3.0)
    v = Vector.from_dense(array)
    array[0] = 9
    assert v.to_numpy()[0] == 0
    w = v.dup()
    assert not np.shares_memory(w.values, v.values)


@pytest.mark.parametrize("size", [0, 1, 31, 32, 33, 100])
def test_other_storages_share_no_array_that_operations_write(size: int) -> None:
    full = Vector.from_dense(np.arange(size))
    assert size == 0 or not np.shares_memory(full.to_sparse().values, full.values)
    complete = Vector._of(size, np.arange(size), indices=np.arange(size, dtype=np.int32))
    assert size == 0 or not np.shares_memory(complete.to_bitmap().values, complete.values)
    assert complete.to_bitmap().isequal(full)


def test_vector_equality() -> None:
    v = Vector.from_coo([1, 3], [1.0, np.nan], size=5)
    assert v.isequal(v.to_bitmap()) and v.to_bitmap().isequal(v.to_sparse())
    assert not v.isequal(Vector.from_coo([1, 2], [1.0, np.nan], size=5))
    assert not v.isequal(Vector.from_coo([1, 3], [1.0, np.nan], size=6))
    assert v.isclose(Vector.from_coo([1, 3], [1.0 + 1e-9, np.nan], size=5))
    assert not v.isclose(Vector.from_coo([1, 3], [1.1, np.nan], size=5))


def test_vector_goes_to_a_device_and_back(device: str) -> None:
    for v in (
        Vector.from_coo([3], [2], size=90),
        Vector.from_coo(range(40), 1, size=90),
        Vector.from_dense([1, 2]),
    ):
        w = v.to(device)
        assert w.device.startswith(device) and w.storage == v.storage and w.to("cpu").isequal(v)


def test_devices_that_are_not_there() -> None:
    v = Vector.from_dense([1, 2])
    with pytest.raises(ValueError, match="device: expected 'cpu', 'cuda' or 'cuda:N', got 'gpu'"):
        v.to("gpu")
    try:
        import cupy

        assert cupy.cuda.runtime.getDeviceCount() > 0
    except Exception:
        with pytest.raises(BackendUnavailable, match=r"spgraph\[cuda|nvidia-smi|no GPU"):
            v.to("cuda")
    else:
        with pytest.raises(BackendUnavailable, match="GPUs are visible"):
            v.to("cuda:99")
        with pytest.raises(TypeError, match=r"\.to_numpy\(\)"):
            np.asarray(v.to("cuda"))


def test_masks_say_what_they_are() -> None:
    v = Vector.from_coo([0], [1], size=3)
    assert isinstance(v.S, Mask) and (~~v.V).complement is False
    assert repr(~v.S) == "Mask(complement of structure of Vector 3)"
    assert repr(Matrix.from_dense(DENSE).V) == "Mask(truth of Matrix 3x4)"
    for thing in (v.S, v, Matrix.from_dense(DENSE)):
        with pytest.raises(TypeError, match="no truth value"):
            bool(thing)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: sg.Vector.from_coo([1], [300], dtype=np.int8), ValueError, "int8 holds, got 300"),
        (lambda: sg.Vector.from_coo([1], [1e30], dtype=np.int32), ValueError, "int32 holds"),
        (lambda: sg.Vector.from_coo([1, 2], [1, 2], dup_op=3), TypeError, "dup_op: expected"),
        (lambda: sg.Matrix.from_scipy(np.eye(3)), TypeError, "Matrix.from_dense takes arrays"),
        (
            lambda: sg.assign(sg.Vector.from_dense([1, 2]), float("nan"), [0]),
            DomainMismatch,
            "assign: value: expected an integer to write into int64, got nan",
        ),
    ],
)
def test_values_and_arguments_that_do_not_fit(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_nan_is_dropped_in_every_direction() -> None:
    A = sg.Matrix.from_coo([0], [1], [np.nan], nrows=2, ncols=2)
    u = sg.Vector.from_coo([0], [1.0], size=2)
    for direction in ("push", "pull"):
        t = sg.vxm(u, A, sg.semirings.min_plus, direction=direction)
        assert t.to_coo()[1].tolist() == [np.inf]


def test_no_method_gives_a_kept_array_that_can_be_written() -> None:
    """Every public attribute and method without arguments: twice the same memory, or none of it."""
    A = Matrix.from_dense([[0, 1, 2], [0, 0, 0], [3, 0, 0]])
    for name in dir(A):
        if name.startswith(("_", "from_")):
            continue
        try:
            first, second = (
                value() if callable(value) else value
                for value in (getattr(A, name), getattr(A, name))
            )
        except (TypeError, ImportError, sg.errors.BackendUnavailable):
            continue  # it takes arguments, or needs what is not here
        if isinstance(first, np.ndarray) and np.shares_memory(first, second):
            assert not first.flags.writeable, name
    assert not hasattr(A, "nonempty_rows")


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("shards", [None, 2])
def test_zeros_of_either_sign_make_a_matrix_asymmetric(
    kind: str, shards: int | None, device: str
) -> None:
    """Its transpose is another one: 1 / x tells them apart."""
    A = Matrix.from_coo([0, 1, 2], [1, 0, 2], np.array([0.0, -0.0, 1.0], kind)).to(device)
    if shards is not None:
        A = A.distribute(shards, devices=[device] * shards)
    assert not A.is_symmetric()
    signs = [math.copysign(1, value) for _, _, value in (A.T.gather() if shards else A.T)]
    assert signs == [-1, 1, 1]
    same = Matrix.from_coo([0, 1], [1, 0], np.array([-0.0, -0.0], kind)).to(device)
    assert same.is_symmetric()
