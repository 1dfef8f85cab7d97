"""Archives of arrays: nothing in them is believed, and each error names the array."""

from __future__ import annotations

import io
import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from spgraph.containers import Matrix, Vector, memory
from spgraph.errors import DimensionMismatch, DomainMismatch, FormatError
from spgraph.io import Ids, load, read, save, write
from spgraph.io.saved import load_named, read_names


def csr(**changed: Any) -> dict[str, Any]:
    """The arrays of a good 3 x 3 file, some of them changed or (None) left out."""
    arrays = {
        "format": np.array(b"csr"),
        "shape": np.array([3, 3]),
        "indptr": np.array([0, 2, 3, 3]),
        "indices": np.array([0, 2, 1]),
        "data": np.array([1.0, 2.0, 3.0]),
        "iso": np.array(False),
        "symmetric": np.array(-1),
        **changed,
    }
    return {name: array for name, array in arrays.items() if array is not None}


ONE = {"data": np.ones(1), "iso": np.array(True)}
BOTH = {"iso": None, "symmetric": None}  # as SciPy writes
INVALID = [
    ("format", {"format": None}),
    ("format", {"format": np.array(b"lil")}),
    ("format", {"format": np.array([b"csr", b"csr"])}),
    ("format", {"format": np.array(7)}),
    ("format", {"format": np.array("csr", object)}),
    ("shape", {"shape": None}),
    ("shape", {"shape": np.array([3])}),
    ("shape", {"shape": np.array([3, 3, 3])}),
    ("shape", {"shape": np.array([[3, 3]])}),
    ("shape", {"shape": np.array(3)}),
    ("shape", {"shape": np.array([3, -3])}),
    ("shape", {"shape": np.array([3.0, 3.0])}),
    ("shape", {"shape": np.array([3, np.nan])}),
    ("shape", {"shape": np.array([3, 2**63], np.uint64)}),
    ("shape", {"shape": np.array([3, 3], object)}),
    ("shape", {"shape": np.array(["3", "3"])}),
    ("indptr", {"indptr": None}),
    ("indptr", {"indptr": np.array([0, 2])}),
    ("indptr", {"indptr": np.array([0, 2, 3, 3, 3])}),
    ("indptr", {"indptr": np.array([], np.int64)}),
    ("indptr", {"indptr": np.array([[0, 2], [3, 3]])}),
    ("indptr", {"indptr": np.array([0.0, 2.0, 3.0, 3.0])}),
    ("indptr", {"indptr": np.array([0, 3, 2, 3])}),
    ("indptr", {"indptr": np.array([0, -1, 2, 3])}),
    ("indptr", {"indptr": np.array([1, 2, 3, 3])}),
    ("indptr", {"indptr": np.array([-1, 2, 3, 3])}),
    ("indptr", {"indptr": np.array([0, 2, 3, 9])}),
    ("indptr", {"indptr": np.array([0, 2, 2, 2])}),
    ("indptr", {"indptr": np.array([0, 2, 3, 2**64 - 1], np.uint64)}),
    ("indptr", {"indptr": np.array([0, 2, 3, 3], object)}),
    ("indptr", {"indptr": np.array([False, True, True, True])}),
    ("indices", {"indices": None}),
    ("indices", {"indices": np.array([0, 3, 1])}),
    ("indices", {"indices": np.array([0, -1, 1])}),
    ("indices", {"indices": np.array([0.0, 2.0, 1.0])}),
    ("indices", {"indices": np.array([0, 2, np.nan])}),
    ("indices", {"indices": np.array([[0, 2, 1]])}),
    ("indices", {"indices": np.array([0, 2, 2**63], np.uint64)}),
    ("indices", {"indices": np.array([2, 0, 1])}),
    ("indices", {"indices": np.array([2, 2, 1])}),
    ("indices", {"indices": np.array([2, 0, 1]), **ONE}),
    ("indices", {"indices": np.array([2, 2, 1]), **ONE}),
    ("indices", {"indices": np.array([2, 0, 1]), "iso": None}),
    ("indices", {"indices": np.array([0, 2, 1], object)}),
    ("indices", {"indices": np.array([0, 2, 1], "M8[s]")}),
    ("indices", {"indices": np.array([5, 2, 1]), **BOTH}),
    ("data", {"data": None}),
    ("data", {"data": np.ones(2)}),
    ("data", {"data": np.ones(4)}),
    ("data", {"data": np.ones((3, 1))}),
    ("data", {"data": np.array(1.0)}),
    ("data", {"data": np.ones(1)}),
    ("data", {"data": np.ones(3), "iso": np.array(True)}),
    ("data", {"data": np.ones(3, complex)}),
    ("data", {"data": np.ones(3, np.float16)}),
    ("data", {"data": np.ones(3, np.longdouble)}),
    ("data", {"data": np.array(["a", "b", "c"])}),
    ("data", {"data": np.array([1, "x", None], object)}),
    ("data", {"data": np.ones(3, [("x", "f8")])}),
    ("data", {"data": np.ones(3, "m8[s]")}),
    ("data", {"data": np.array([0, 1, 2], np.uint8).view(bool)}),
    ("data", {"data": np.array([255], np.uint8).view(bool), "iso": np.array(True)}),
    ("iso", {"iso": np.array([False])}),
    ("iso", {"iso": np.array(0)}),
    ("iso", {"iso": np.array(np.nan)}),
    ("iso", {"iso": np.array([2], np.uint8).view(bool).reshape(())}),
    ("symmetric", {"symmetric": np.array(2)}),
    ("symmetric", {"symmetric": np.array(-2)}),
    ("symmetric", {"symmetric": np.array(True)}),
    ("symmetric", {"symmetric": np.array([1])}),
    ("symmetric", {"symmetric": np.array(1.0)}),
    ("indptr", {"format": np.array(b"csc"), "indptr": np.array([0, 1, 3])}),
    ("indices", {"format": np.array(b"csc"), "indices": np.array([0, 7, 1])}),
    ("data", {"format": np.array(b"csc"), "data": np.ones(2)}),
    ("row", {"format": np.array(b"coo"), "col": np.zeros(3, int)}),
    ("row", {"format": np.array(b"coo"), "row": np.array([0, 0, 3]), "col": np.zeros(3, int)}),
    ("col", {"format": np.array(b"coo"), "row": np.zeros(3, int)}),
    ("col", {"format": np.array(b"coo"), "row": np.zeros(3, int), "col": np.array([0, -1, 0])}),
    ("col", {"format": np.array(b"coo"), "row": np.zeros(3, int), "col": np.zeros(2, int)}),
    ("data", {"format": np.array(b"coo"), "row": np.zeros(2, int), "col": np.zeros(2, int)}),
    ("coords", {"format": np.array(b"coo"), "coords": np.zeros((3, 3), int)}),
    ("coords", {"format": np.array(b"coo"), "coords": np.full((2, 3), 3)}),
    ("data", {"format": np.array(b"bsr")}),
    ("data", {"format": np.array(b"bsr"), "data": np.ones((3, 2, 2))}),
    ("data", {"format": np.array(b"bsr"), "data": np.ones((3, 0, 1))}),
    ("data", {"format": np.array(b"bsr"), "data": np.ones((2, 1, 1))}),
    ("indptr", {"format": np.array(b"bsr"), "data": np.ones((3, 3, 3))}),
    (
        "indices",
        {"format": np.array(b"bsr"), "data": np.ones((3, 1, 1)), "indices": np.arange(3)[::-1] * 2},
    ),
    ("offsets", {"format": np.array(b"dia"), "data": np.ones((1, 3))}),
    ("offsets", {"format": np.array(b"dia"), "data": np.ones((1, 3)), "offsets": np.array([3])}),
    ("offsets", {"format": np.array(b"dia"), "data": np.ones((2, 3)), "offsets": np.array([1, 1])}),
    ("data", {"format": np.array(b"dia"), "data": np.ones((2, 3)), "offsets": np.array([1])}),
    ("data", {"format": np.array(b"dia"), "data": np.ones(3), "offsets": np.array([1])}),
]


@pytest.mark.parametrize(("key", "changed"), INVALID, ids=lambda x: x if isinstance(x, str) else "")
@pytest.mark.parametrize("packed", [False, True])
def test_an_invalid_array_is_named(
    tmp_path: Path, key: str, changed: dict[str, Any], packed: bool
) -> None:
    path = tmp_path / "g.npz"
    (np.savez_compressed if packed else np.savez)(path, **csr(**changed))
    for reader in (read, load):
        with pytest.raises(FormatError, match=rf"g\.npz: .*archive: {key}: ") as caught:
            reader(path)
        assert "expected" in str(caught.value)


@pytest.mark.parametrize(
    ("key", "changed"),
    [
        ("shape", {"shape": np.array([3, 3])}),
        ("shape", {"shape": np.array([-1])}),
        ("shape", {"shape": None}),
        ("indices", {"indices": None}),
        ("indices", {"indices": np.array([1, 0])}),
        ("indices", {"indices": np.array([1, 1])}),
        ("indices", {"indices": np.array([1, 5])}),
        ("indices", {"indices": np.array([-1, 1])}),
        ("indices", {"indices": np.array([0.0, 1.0])}),
        ("data", {"data": np.ones(3)}),
        ("data", {"data": np.ones((2, 1))}),
        ("data", {"data": np.ones(2, complex)}),
        ("data", {"data": np.array([3, 1], np.uint8).view(bool)}),
    ],
)
def test_an_invalid_array_of_a_vector_is_named(
    tmp_path: Path, key: str, changed: dict[str, Any]
) -> None:
    path = tmp_path / "v.npz"
    good = {"shape": np.array([5]), "indices": np.array([1, 4]), "data": np.ones(2)}
    arrays = {"format": np.array(b"vector"), **good, **changed}
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(FormatError, match=rf"v\.npz: .*archive: {key}: "):
        load(path)


@pytest.mark.parametrize("kind", ["<i4", ">i4", "<i8", ">i8", "<u2", ">u8", "i1"])
@pytest.mark.parametrize("values", ["<f4", ">f8", ">i2", "?", ">u8"])
def test_types_and_orders_of_bytes(tmp_path: Path, kind: str, values: str) -> None:
    good = csr()
    ids = {name: good[name].astype(kind) for name in ("indptr", "indices", "shape")}
    np.savez(tmp_path / "g.npz", **csr(data=good["data"].astype(values), **ids))
    A = read(tmp_path / "g.npz")
    assert A.indptr.tolist() == [0, 2, 3, 3] and A.indices.tolist() == [0, 2, 1]
    assert A.values.tolist() == np.array([1, 2, 3]).astype(values).tolist()
    for array in (A.indptr, A.indices, A.values):
        assert array.dtype.isnative and array.flags.aligned and array.flags.c_contiguous
    assert {A.indptr.dtype, A.indices.dtype} <= {np.dtype(np.int32), np.dtype(np.int64)}


def test_blocks_in_fortran_order(tmp_path: Path) -> None:
    S = scipy.sparse.bsr_array(np.arange(24.0).reshape(4, 6), blocksize=(2, 3))
    arrays = {"indptr": S.indptr, "indices": S.indices, "shape": S.shape}
    np.savez(tmp_path / "g.npz", format=b"bsr", data=np.asfortranarray(S.data), **arrays)
    assert np.array_equal(read(tmp_path / "g.npz").to_scipy().toarray(), S.toarray())


def member(key: str, content: bytes) -> bytes:
    """A good archive but for the bytes of one array."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for name, array in csr().items():
            one = io.BytesIO()
            np.save(one, array)
            archive.writestr(f"{name}.npy", content if name == key else one.getvalue())
    return sink.getvalue()


def npy(header: bytes, values: bytes = b"", version: bytes = b"\1\0") -> bytes:
    return b"\x93NUMPY" + version + struct.pack("<H", len(header)) + header + values


HEADER = b"{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }"
EIGHT = struct.pack("<d", 1.0)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"junk",
        npy(HEADER, 3 * EIGHT, b"\3\0"),
        npy(HEADER, 3 * EIGHT, b"\x09\0"),
        npy(HEADER, 2 * EIGHT),
        npy(HEADER, 4 * EIGHT),
        npy(HEADER.replace(b"(3,)", b"(-1,)"), 3 * EIGHT),
        npy(HEADER.replace(b"(3,)", b"(-1, -3)"), 3 * EIGHT),
        npy(HEADER.replace(b"(3,)", b"(True, 3)"), 3 * EIGHT),
        npy(HEADER.replace(b"(3,)", b"(1e9,)"), 3 * EIGHT),
        npy(HEADER.replace(b"(3,)", b"(2**70,)"), 3 * EIGHT),
        npy(HEADER.replace(b"(3,)", b"(%d,)" % 2**70), 3 * EIGHT),
        npy(HEADER.replace(b"<f8", b"|O"), b"cposix\nsystem\n"),
        npy(HEADER.replace(b"<f8", b"<f9"), 3 * EIGHT),
        npy(HEADER.replace(b"<f8", b""), 3 * EIGHT),
        npy(HEADER.replace(b"'descr'", b"'des'"), 3 * EIGHT),
        npy(HEADER.replace(b"(3,)", b"(" * 3000), 3 * EIGHT),
        npy(HEADER.replace(b"(3,)", b"\n  (\n 3"), 3 * EIGHT),
        npy(b"\xff\xfe" * 30, 3 * EIGHT),
        npy(b"[]", 3 * EIGHT),
        npy(b"", 3 * EIGHT),
        npy(b"' " * 9, 3 * EIGHT),
    ],
)
def test_an_array_with_another_header_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "g.npz"
    path.write_bytes(member("data", content))
    with pytest.raises(FormatError, match=r"g\.npz: .*archive: data: "):
        read(path)


def test_an_array_not_aligned(tmp_path: Path) -> None:
    path = tmp_path / "g.npz"
    path.write_bytes(member("data", npy(HEADER, 3 * EIGHT)))
    A = read(path)
    assert A.values.flags.aligned and A.values.tolist() == [1.0, 1.0, 1.0]


def test_an_array_larger_than_memory_is_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Zeros pack to a thousandth: the size that the archive declares is held against memory."""
    path = tmp_path / "g.npz"
    big = {"indices": np.zeros(1 << 20, np.int64), "data": np.zeros(1 << 20)}
    np.savez_compressed(path, **csr(indptr=np.array([0, 1 << 20, 1 << 20, 1 << 20]), **big))
    assert path.stat().st_size < 1 << 15
    monkeypatch.setattr(memory, "available", lambda: 1 << 20)
    monkeypatch.setattr(memory, "SMALL", 1 << 10)
    with pytest.raises(
        MemoryError, match=r"g\.npz: indices: the array needs 8\.4 MB of memory, 1\.0"
    ):
        read(path)


def test_an_array_that_hides_more_than_its_header_says_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, unpacked = tmp_path / "g.npz", np.zeros(1 << 23)
    np.savez_compressed(path, **csr(data=unpacked))
    content = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["data.npy"] = members["data.npy"].replace(b"(8388608,), ", b"(3,),       ")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    assert len(content) < 1 << 18
    read_bytes = []
    before = zipfile.ZipExtFile.read
    monkeypatch.setattr(
        zipfile.ZipExtFile,
        "read",
        lambda self, n=-1: read_bytes.append(found := before(self, n)) or found,
    )
    with pytest.raises(
        FormatError, match=r"expected 24 bytes of values for the shape \(3,\), got 6"
    ):
        read(path)
    assert sum(map(len, read_bytes)) < 1 << 20


# --- the file -------------------------------------------------------------------------------------


def test_not_an_npz(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return (pytest.fail, ("unpickled",))

    path = tmp_path / "g.npz"
    buffer = io.BytesIO()
    scipy.sparse.save_npz(buffer, scipy.sparse.eye_array(50).tocsr())
    good, array = buffer.getvalue(), io.BytesIO()
    np.save(array, np.ones(3))
    for content in (b"", b"junk", pickle.dumps(Trap()), good[:-30], good[:100], array.getvalue()):
        path.write_bytes(content)
        with pytest.raises(FormatError, match=r"not a sparse matrix in a \.npz archive") as caught:
            read(path)
        assert str(path) in str(caught.value)


# --- names of vertices ----------------------------------------------------------------------------

TEXT = {"names": np.frombuffer(b"abcde", np.uint8), "names_offsets": np.array([0, 2, 2, 5])}


@pytest.mark.parametrize(
    "names", [["Ulm", "", "Bad, X\n"], ["é\0", "ü" * 300, "🦄"], [3, 1, 2], [2**64 - 1, 2**63, 1]]
)
def test_names_are_kept(names: list[Any], tmp_path: Path) -> None:
    A = Matrix.from_coo([0, 1], [1, 2], nrows=3, ncols=3)
    ids = Ids(np.array(names, np.uint64 if max(names) > 9 else None) if 1 in names else names)
    write(tmp_path / "g.npz", A, ids=ids)
    found = read(tmp_path / "g.npz", names=True, symmetric=True)
    assert found.ids.names.tolist() == names and found.ids.names.dtype == ids.names.dtype
    assert found.matrix.nvals == 4 and read(tmp_path / "g.npz").isequal(A)
    write(tmp_path / "w.npz", Matrix.from_coo([0, 1], [1, 2], [5, 6], nrows=3, ncols=3), ids=ids)
    assert scipy.sparse.load_npz(tmp_path / "w.npz").nnz == 2
    save(tmp_path / "v.npz", Vector.from_coo([1], [2.0], size=3), ids=ids)
    assert load_named(tmp_path / "v.npz")[1].names.tolist() == names  # type: ignore[union-attr]
    assert load(tmp_path / "v.npz").nvals == 1 and read_names(tmp_path / "v.npz") is not None


def test_names_of_part_of_an_array_and_of_nothing(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    ids = Ids._of(arrow.array(["x", "ab", "", "c"], arrow.large_string())[1:])
    write(tmp_path / "g.npz", Matrix.empty(2, 3), ids=ids)
    assert list(read(tmp_path / "g.npz", names=True).ids) == ["ab", "", "c"]
    empty = Ids._of(arrow.array([], arrow.large_string()))
    write(tmp_path / "e.npz", Matrix.empty(0, 0), ids=empty)
    assert list(read(tmp_path / "e.npz", names=True).ids) == []


@pytest.mark.parametrize(
    ("message", "changed"),
    [
        ("names: expected 3, one for each", {"names": np.array([1, 2])}),
        ("names: expected each name once", {"names": np.array([1, 2, 1])}),
        ("names: expected integers", {"names": np.array([1.0, 2.0, 3.0])}),
        ("names: expected integers", {"names": np.array(["a", "b", "c"])}),
        ("names: expected plain values", {"names": np.array(["a", "b", "c"], object)}),
        ("names: expected 3, one for each", TEXT | {"names_offsets": np.array([0, 2, 5])}),
        ("names: expected 3, one for each", TEXT | {"names_offsets": np.array([], np.int64)}),
        (
            "names_offsets: expected them to ascend",
            TEXT | {"names_offsets": np.array([0, 3, 2, 5])},
        ),
        (
            "names_offsets: expected them to ascend",
            TEXT | {"names_offsets": np.array([1, 2, 3, 5])},
        ),
        (
            "names_offsets: expected them to ascend",
            TEXT | {"names_offsets": np.array([0, 2, 3, 9])},
        ),
        (
            "names_offsets: expected them to ascend",
            TEXT | {"names_offsets": np.array([0, -1, 2, 5])},
        ),
        ("names_offsets: expected integers", TEXT | {"names_offsets": np.array([0.0, 2, 3, 5])}),
        ("names: expected bytes of text", TEXT | {"names": np.arange(5)}),
        ("names: expected UTF-8", TEXT | {"names": np.frombuffer(b"ab\xff\xfe\xfd", np.uint8)}),
        ("names: expected each name once", TEXT | {"names_offsets": np.array([0, 5, 5, 5])}),
    ],
)
def test_names_are_not_believed(message: str, changed: dict[str, Any], tmp_path: Path) -> None:
    np.savez(tmp_path / "g.npz", **csr(**changed))
    with pytest.raises(FormatError, match=message):
        read(tmp_path / "g.npz", names=True)
    with pytest.raises(FormatError, match=message):
        read_names(tmp_path / "g.npz")
    assert read(tmp_path / "g.npz").nvals == 3  # names that nobody asks for do no harm


def test_names_that_are_refused(tmp_path: Path) -> None:
    A, ids = Matrix.empty(3, 3), Ids(["a", "b", "c"])
    with pytest.raises(DimensionMismatch, match="write: ids: expected 2 names"):
        write(tmp_path / "g.npz", Matrix.empty(2, 2), ids=ids)
    with pytest.raises(DomainMismatch, match="save: ids: expected Ids or None, got list"):
        save(tmp_path / "g.npz", A, ids=["a", "b", "c"])  # type: ignore[arg-type]
    with pytest.raises(FormatError, match=r"expected \.npz beside ids"):
        write(tmp_path / "g.mtx", A, ids=ids)
    assert not list(tmp_path.iterdir())
    write(tmp_path / "g.npz", A)
    with pytest.raises(FormatError, match="expected an .npz with the names of vertices"):
        read(tmp_path / "g.npz", names=True)
    with pytest.raises(TypeError, match="names: expected True or False, got 'yes'"):
        read(tmp_path / "g.npz", names="yes")  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="names: expected False beside compact=True"):
        read(tmp_path / "g.npz", names=True, compact=True)  # type: ignore[call-overload]
