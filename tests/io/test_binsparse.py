"""Files of Binsparse, beside what its reference implementation reads and writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import spgraph as sg
from spgraph.errors import FormatError

bs = pytest.importorskip("binsparse", reason="binsparse is not installed (extra binsparse)")
h5py = pytest.importorskip("h5py")

A = sg.Matrix.from_coo([0, 0, 2, 3], [1, 3, 0, 3], [2.0, 0.0, -1.5, 4.0], nrows=4, ncols=5)
SUFFIXES = [".h5", ".hdf5", ".bsp.npz"]


def parts(M: sg.Matrix) -> dict[str, Any]:
    return {"pointers_to_1": M.indptr, "indices_1": M.indices, "values": M.values}


def tensors() -> dict[str, Any]:
    """A in each format, by the reference implementation."""
    T = A.T.dup()
    rows, columns, values = A.to_coo()
    by_columns = T.to_coo()
    dense = sg.Matrix.from_dense(A.to_dense(), missing=None)
    row_ids, column_ids = (np.flatnonzero(np.diff(M.indptr)) for M in (A, T))
    row_ends, column_ends = (np.unique(M.indptr) for M in (A, T))
    shape, n = A.shape, A.nvals
    return {
        "CSR": bs.CSRMatrix(shape, n, **parts(A)),
        "CSC": bs.CSCMatrix(shape, n, **parts(T)),
        "COOR": bs.COORMatrix(shape, n, indices_0=rows, indices_1=columns, values=values),
        "COOC": bs.COOCMatrix(
            shape, n, indices_0=by_columns[0], indices_1=by_columns[1], values=by_columns[2]
        ),
        "DCSR": bs.DCSRMatrix(
            shape, n, indices_0=row_ids, **parts(A) | {"pointers_to_1": row_ends}
        ),
        "DCSC": bs.DCSCMatrix(
            shape, n, indices_0=column_ids, **parts(T) | {"pointers_to_1": column_ends}
        ),
        "DMATR": bs.DMATRMatrix(shape, 20, values=dense.values),
        "DMATC": bs.DMATCMatrix(shape, 20, values=A.to_dense().T.ravel()),
    }


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("alias", [True, False])
@pytest.mark.parametrize("name", ["CSR", "CSC", "COOR", "COOC", "DCSR", "DCSC", "DMATR", "DMATC"])
def test_each_format(tmp_path: Path, name: str, suffix: str, alias: bool) -> None:
    path = tmp_path / f"x{suffix}"
    bs.save_binsparse(tensors()[name], path, alias=alias)
    found = sg.read(path)
    assert found.toarray().tolist() == A.toarray().tolist() and found.shape == A.shape
    assert found.nvals == (20 if name[0:2] == "DM" else A.nvals)
    assert sg.load(path).isequal(found)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float32", "float64"])
def test_there_and_back(tmp_path: Path, suffix: str, dtype: str) -> None:
    path = tmp_path / f"x{suffix}"
    for M in (A.astype(dtype), A.pattern(dtype), A.T.astype(dtype), sg.Matrix.empty(0, 3, dtype)):
        sg.write(path, M)
        assert sg.read(path).isequal(M, check_dtype=True)
        assert sg.read(path).iso is (M.iso and M.nvals > 0)
        tensor = bs.load_binsparse(path)
        theirs = scipy.sparse.csr_array(
            (np.array(tensor.values), tensor.indices_1, tensor.pointers_to_1), shape=tensor.shape
        )
        assert theirs.dtype == dtype and theirs.toarray().tolist() == M.toarray().tolist()
    for v in (A.astype(dtype)[0], sg.Vector(np.ones(3, dtype)), sg.Vector.empty(9, dtype)):
        sg.save(path, v)
        assert sg.load(path).isequal(v, check_dtype=True)
        assert bs.load_binsparse(path).format == ("DVEC" if v.nvals == v.size else "CVEC")
        with pytest.raises(FormatError, match="expected a Matrix, it holds a Vector"):
            sg.read(path)
    assert list(tmp_path.iterdir()) == [path]


def test_the_stored_half_of_a_symmetric_matrix(tmp_path: Path) -> None:
    path, S = tmp_path / "x.h5", np.array([[1, 2, 0], [2, 0, 3], [0, 3, 0]])
    for structure, half in (("symmetric_lower", np.tril(S)), ("hermitian_upper", np.triu(S))):
        bs.save_binsparse(
            bs.CSRMatrix((3, 3), 3, **parts(sg.Matrix(half))), path, header={"structure": structure}
        )
        assert sg.read(path).toarray().tolist() == S.tolist() and sg.read(path).symmetric
    for structure in ("symmetric_lower", "skew_symmetric_upper", 3):
        bs.save_binsparse(
            bs.CSRMatrix((3, 3), 3, **parts(sg.Matrix(np.triu(S)))),
            path,
            header={"structure": structure},
        )
        with pytest.raises(FormatError, match="x.h5: structure: expected"):
            sg.read(path)


GOOD = {
    "version": "0.1.0",
    "format": "CSR",
    "shape": [2, 3],
    "number_of_stored_values": 2,
    "data_types": {"pointers_to_1": "int32", "indices_1": "int32", "values": "float64"},
}
VECTOR = {"data_types": {"indices_0": "int32", "values": "float64"}}
BROKEN: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {"indices_1": [1, 3]}, "column 3 of 3"),
    ({}, {"indices_1": [-1, 1]}, "indices_1: expected a list of integers >= 0"),
    ({}, {"pointers_to_1": [0, 2, 1]}, "pointers_to_1: expected 3 offsets"),
    ({}, {"pointers_to_1": [1, 2, 2]}, "pointers_to_1: expected 3 offsets"),
    ({}, {"pointers_to_1": [0, 2]}, "pointers_to_1: expected 3 offsets"),
    ({}, {"pointers_to_1": [0, 0, 1]}, "pointers_to_1: expected 3 offsets that ascend from 0 to 2"),
    ({"shape": [2**33, 3]}, {}, "pointers_to_1: expected 8589934593 offsets"),
    (
        {"data_types": GOOD["data_types"] | {"values": "int8"}},
        {},
        "values: expected values of the declared type int8, got float64",
    ),
    (
        {"data_types": GOOD["data_types"] | {"pointers_to_1": "int64"}},
        {},
        "pointers_to_1: expected values of the declared type int64, got int32",
    ),
    ({"format": "CVEC", "shape": [2], **VECTOR}, {"indices_0": [0, 2]}, "positions below 2, got 2"),
    ({}, {"pointers_to_1": [0, 2, 2], "indices_1": [1, 1]}, "given more than once"),
    ({"number_of_stored_values": 3}, {}, "size 2, expected 3"),
    ({"version": "7.0"}, {}, "version"),
    ({"format": "FISH"}, {}, "FISH"),
    ({"shape": [2, 3, 4]}, {}, "1 or 2 dimensions"),
    ({"data_types": {}}, {}, "missing data type"),
    ({"fill": True}, {}, "fill_value"),
    ({}, {"values": None}, "values"),
]


@pytest.mark.parametrize("suffix", [".h5", ".bsp.npz"])
@pytest.mark.parametrize(("header", "changed", "message"), BROKEN)
def test_broken_files(tmp_path: Path, suffix: str, header: Any, changed: Any, message: str) -> None:
    arrays = {"pointers_to_1": [0, 1, 2], "indices_1": [1, 0]} | changed
    kept = {key: np.array(x, np.int32) for key, x in arrays.items() if x is not None}
    if "values" not in changed:
        kept["values"] = np.array([1.5, 2.5])
    text = json.dumps({"binsparse": GOOD | header})
    path = tmp_path / f"x{suffix}"
    if suffix == ".h5":
        with h5py.File(path, "w") as file:
            file.attrs["binsparse"] = text
            for key, array in kept.items():
                file.create_dataset(key, data=array)
    else:
        with path.open("wb") as stream:
            np.savez(stream, binsparse=np.array(text), **kept)
    with pytest.raises(FormatError, match=f"x{suffix}: .*{message}"):
        sg.read(path)


def written(path: Path, shape: list[int], format: str, **arrays: np.ndarray) -> None:
    """A file of HDF5 with arrays of the type that they have."""
    types = {key: str(array.dtype) for key, array in arrays.items()}
    changed = {"shape": shape, "format": format, "data_types": types}
    with h5py.File(path, "w") as file:
        file.attrs["binsparse"] = json.dumps({"binsparse": GOOD | changed})
        for key, array in arrays.items():
            file[key] = array


def test_values_of_other_files_are_not_read(tmp_path: Path) -> None:
    path, other = tmp_path / "x.h5", tmp_path / "secret"
    other.write_bytes(bytes(16))
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["values"] = np.ones(2)

    def external(file: h5py.File) -> None:
        file.create_dataset("values", (2,), "f8", external=[(str(other), 0, 16)])

    def link(file: h5py.File) -> None:
        file["values"] = h5py.ExternalLink("other.h5", "values")

    def virtual(file: h5py.File) -> None:
        layout = h5py.VirtualLayout((2,), "f8")
        layout[:] = h5py.VirtualSource("other.h5", "values", (2,))
        file.create_virtual_dataset("values", layout)

    for change in (external, link, virtual):
        sg.write(path, sg.Matrix([[1.5, 2.5]]))
        with h5py.File(path, "r+") as file:
            del file["values"]
            change(file)
        with pytest.raises(FormatError, match="values: expected an array within the file"):
            sg.read(path)


def test_sizes_that_a_file_claims_without_values(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    sg.write(path, sg.Matrix([[1.5, 2.5]]))
    for size, error, message in (
        (10**9, FormatError, "values: expected 1000000000 values, the file has none"),
        (2**50, MemoryError, "x.h5: values needs"),
    ):
        with h5py.File(path, "r+") as file:
            del file["values"]
            file.create_dataset("values", (size,), "f8", chunks=(1000,))
        with pytest.raises(error, match=message):
            sg.read(path)
    ends = {f"indices_{k}": np.array([0, 2**30 - 1]) for k in (0, 1)}
    written(path, [2**30] * 2, "COO", values=np.ones(2), **ends)
    with pytest.raises(MemoryError, match="x.h5: the row pointers of 1,073,741,824 rows take"):
        sg.read(path)
    with h5py.File(path, "r+") as file:
        del file["values"]
        file["values"] = np.ones(1)
        changed = {"shape": [2**45], "number_of_stored_values": 2**45, "format": "DVEC"}
        changed["data_types"] = {"values": "iso[float64]"}
        file.attrs["binsparse"] = json.dumps({"binsparse": GOOD | changed})
    with pytest.raises(MemoryError, match="x.h5: DVEC needs"):
        sg.load(path)


def test_what_is_no_such_file(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    path.write_bytes(b"fish")
    with pytest.raises(FormatError, match="x.h5: not a sparse array of Binsparse"):
        sg.read(path)
    with h5py.File(path, "w"):
        pass
    with pytest.raises(FormatError, match="x.h5: .*no 'binsparse' attribute"):
        sg.read(path)
    with pytest.raises(FileNotFoundError):
        sg.load(tmp_path / "y.h5")
    with pytest.raises(FormatError, match="expected .h5 alone"):
        sg.write(tmp_path / "y.h5.gz", A)
    with pytest.raises(FormatError, match="expected .h5 alone"):
        sg.read(tmp_path / "y.h5.gz")
    with pytest.raises(ValueError, match=r"base: \.h5 files never count from 1"):
        sg.read(path, base=1)


def test_under_other_names(tmp_path: Path) -> None:
    sg.write(tmp_path / "x.bsp.npz", A)
    (tmp_path / "x.bsp.npz").rename(tmp_path / "x.npz")
    with pytest.raises(FormatError, match="x.npz: .* whose name has to end with .bsp.npz"):
        sg.read(tmp_path / "x.npz")
    sg.write(tmp_path / "x.h5", A)
    with (tmp_path / "x.h5").open("rb") as stream:
        path = f"/proc/self/fd/{stream.fileno()}"
        with pytest.raises(FormatError, match="got HDF5; give the name of the file"):
            sg.read(path)


def test_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "binsparse", None)
    with pytest.raises(ModuleNotFoundError, match=r"x.h5: .* pip install 'spgraph\[binsparse\]'"):
        sg.write(tmp_path / "x.h5", A)
    assert not list(tmp_path.iterdir())
