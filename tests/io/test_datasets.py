"""`spgraph.datasets` against a server of this machine: tests use no network."""

from __future__ import annotations

import functools
import gzip
import hashlib
import http.server
import io
import pathlib
import re
import tarfile
import threading
from collections.abc import Iterator
from typing import NamedTuple

import pytest

import spgraph as sg
from spgraph.datasets import Dataset, catalog, download

TRIANGLE = "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 3\n2 1\n3 1\n3 2\n"
ROADS = "p sp 3 2\na 1 2 7\na 2 3 5\n"


class Server(NamedTuple):
    """Its address, the folder that it serves, and what was asked of it."""

    url: str
    root: pathlib.Path
    asked: list[str]


@pytest.fixture
def server(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    pytest.importorskip("pooch")
    root, asked = tmp_path / "served", list[str]()
    root.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            asked.append(self.path)

    handler = functools.partial(Handler, directory=str(root))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{running.server_port}"
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setenv("SPGRAPH_DATASETS_DIR", str(tmp_path / "kept"))
        monkeypatch.setattr(catalog, "SUITESPARSE", url)
        yield Server(url, root, asked)
        running.shutdown()
        thread.join()


def archive(path: pathlib.Path, members: dict[str, str]) -> str:
    """Writes an archive, and gives its checksum."""
    path.parent.mkdir(exist_ok=True)
    with tarfile.open(path, "w:gz") as tar:
        for name, text in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    return hashlib.sha256(path.read_bytes()).hexdigest()


def know(monkeypatch: pytest.MonkeyPatch, *datasets: Dataset) -> None:
    monkeypatch.setattr(download, "CATALOG", datasets)


def test_a_matrix_of_the_collection_is_downloaded_once(server: Server) -> None:
    archive(server.root / "G" / "t.tar.gz", {"t/t.mtx": TRIANGLE, "t/t_b.mtx": "no matrix"})
    A = sg.datasets.fetch("G/t")
    assert (A.shape, A.nvals, A.symmetric) == ((3, 3), 6, True)
    assert len(server.asked) == 1
    assert sg.datasets.fetch("G/t").isequal(A)
    assert len(server.asked) == 1
    assert sorted(p.name for p in (sg.datasets.folder() / "G").iterdir()) == [
        "t.tar.gz",
        "t.tar.gz.sha256",
    ]


def test_a_kept_file_that_changed_is_downloaded_again(server: Server) -> None:
    archive(server.root / "G" / "t.tar.gz", {"t/t.mtx": TRIANGLE})
    A = sg.datasets.fetch("G/t")
    archive(sg.datasets.folder() / "G" / "t.tar.gz", {"t/t.mtx": TRIANGLE.replace("3 2", "3 3")})
    assert sg.datasets.fetch("G/t").isequal(A)
    assert len(server.asked) == 2


def test_a_server_with_another_file_than_at_first(server: Server) -> None:
    archive(server.root / "G" / "t.tar.gz", {"t/t.mtx": TRIANGLE})
    sg.datasets.fetch("G/t")
    archive(server.root / "G" / "t.tar.gz", {"t/t.mtx": TRIANGLE.replace("3 2", "3 3")})
    (sg.datasets.folder() / "G" / "t.tar.gz").unlink()
    with pytest.raises(ValueError, match="does not match the known hash"):
        sg.datasets.fetch("G/t")


def test_the_published_checksum(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    right = archive(server.root / "G" / "t.tar.gz", {"t/t.mtx": TRIANGLE})
    url = f"{server.url}/G/t.tar.gz"
    know(monkeypatch, Dataset("G/t", url, 3, 6, right))
    assert sg.datasets.fetch("t").nvals == 6
    know(monkeypatch, Dataset("G/t", url, 3, 6, "0" * 64))
    with pytest.raises(ValueError, match="does not match the known hash"):
        sg.datasets.fetch("t")


@pytest.mark.parametrize(("vertices", "entries"), [(4, 6), (3, 5)])
def test_the_published_size(
    server: Server, monkeypatch: pytest.MonkeyPatch, vertices: int, entries: int
) -> None:
    archive(server.root / "G" / "t.tar.gz", {"t/t.mtx": TRIANGLE})
    know(monkeypatch, Dataset("G/t", f"{server.url}/G/t.tar.gz", vertices, entries))
    with pytest.raises(sg.errors.FormatError, match=r"expected \d \w+ in G/t, as published"):
        sg.datasets.fetch("G/t")


def test_weighted_roads(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    (server.root / "USA-road-d.X.gr.gz").write_bytes(gzip.compress(ROADS.encode()))
    url = f"{server.url}/USA-road-d.X.gr.gz"
    know(monkeypatch, Dataset("DIMACS9/USA-road-d.X", url, 3, None))
    A = sg.datasets.fetch("USA-road-d.X")
    assert list(A) == [(0, 1, 7), (1, 2, 5)]


def test_an_archive_writes_nothing_but_its_matrix(server: Server, tmp_path: pathlib.Path) -> None:
    outside = {"../../escaped.mtx": TRIANGLE, "/tmp/escaped.mtx": TRIANGLE}
    archive(server.root / "G" / "t.tar.gz", {**outside, "t/t.mtx": TRIANGLE})
    assert sg.datasets.fetch("G/t").nvals == 6
    assert not list(tmp_path.rglob("escaped*"))
    with tarfile.open(server.root / "G" / "u.tar.gz", "w:gz") as tar:
        link = tarfile.TarInfo("u/u.mtx")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        tar.addfile(link)
    with pytest.raises(sg.errors.FormatError, match=r"expected a file u/u\.mtx"):
        sg.datasets.fetch("G/u")


def test_a_damaged_archive(server: Server) -> None:
    path = server.root / "G" / "t.tar.gz"
    archive(path, {"t/t.mtx": TRIANGLE * 1000})
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(sg.errors.FormatError, match="not a complete archive"):
        sg.datasets.fetch("G/t")


@pytest.mark.parametrize("name", ["t.tar.gz", "USA-road-d.X.gr.gz"])
def test_a_damaged_first_download_is_not_kept(
    server: Server, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Such as the page of a proxy that asks for a password: its checksum is not the graph's."""
    url = f"{server.url}/{name}"
    know(monkeypatch, Dataset("G/t", url, 3, None))
    (server.root / name).write_text("<html>please log in</html>")
    with pytest.raises(sg.errors.FormatError, match=re.escape(name)):
        sg.datasets.fetch("t")
    if name.endswith(".tar.gz"):
        archive(server.root / name, {"t/t.mtx": TRIANGLE})
    else:
        (server.root / name).write_bytes(gzip.compress(ROADS.encode()))
    for _ in range(2):
        assert sg.datasets.fetch("t").nrows == 3
    assert len(server.asked) == 2


def test_the_folder_of_the_user(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """No shell replaces ~ in a file of settings."""
    home = server.root.parent / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("SPGRAPH_DATASETS_DIR", "~/data")
    archive(server.root / "G" / "t.tar.gz", {"t/t.mtx": TRIANGLE})
    assert sg.datasets.fetch("G/t").nvals == 6
    assert (home / "data" / "G" / "t.tar.gz").exists()


def test_a_damaged_checksum(server: Server) -> None:
    archive(server.root / "G" / "t.tar.gz", {"t/t.mtx": TRIANGLE})
    sg.datasets.fetch("G/t")
    (sg.datasets.folder() / "G" / "t.tar.gz.sha256").write_text("rubbish")
    with pytest.raises(sg.errors.FormatError, match="expected 64 hexadecimal digits"):
        sg.datasets.fetch("G/t")


def test_a_file_that_is_not_there(server: Server) -> None:
    with pytest.raises(OSError, match=r"G/none\.tar\.gz could not be downloaded"):
        sg.datasets.fetch("G/none")


def answering(monkeypatch: pytest.MonkeyPatch, said: bytes) -> None:
    """Let every server say this, whatever it is asked."""

    def handle(self: http.server.BaseHTTPRequestHandler) -> None:
        self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        self.wfile.write(said)

    monkeypatch.setattr(http.server.SimpleHTTPRequestHandler, "handle", handle)


@pytest.mark.parametrize("coding", ["gzip", "x-gzip"])
def test_a_server_that_calls_the_file_a_compressed_text(
    server: Server, monkeypatch: pytest.MonkeyPatch, coding: str
) -> None:
    """As Apache does after `AddEncoding x-gzip .gz`: the file is kept as it is."""
    body = gzip.compress(ROADS.encode())
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: {len(body)}\r\n\r\n"
    answering(monkeypatch, head.encode() + body)
    checksum = hashlib.sha256(body).hexdigest()
    know(monkeypatch, Dataset("G/x", f"{server.url}/x.gr.gz", 3, 2, checksum))
    assert list(sg.datasets.fetch("x")) == [(0, 1, 7), (1, 2, 5)]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("302 Found\r\nLocation: http://[::1\r\n\r\n", "Invalid IPv6 URL"),
        (f"302 Found\r\nLocation: http://{'a' * 99}.invalid/\r\n\r\n", "LocationParseError"),
        ("302 Found\r\nContent-Length: 0\r\n\r\n", "the server answers 302 Found"),
        ("304 Not Modified\r\n\r\n", "the server answers 304 Not Modified"),
        ("200 OK\r\nContent-Length: 9\r\n\r\nhalf", "IncompleteRead"),
        ("200 OK\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n", "InvalidChunkLength"),
    ],
)
def test_a_server_that_answers_badly(
    server: Server, monkeypatch: pytest.MonkeyPatch, said: str, words: str
) -> None:
    answering(monkeypatch, f"HTTP/1.1 {said}".encode())
    with pytest.raises(OSError, match=rf"t\.tar\.gz could not be downloaded to .*{words}"):
        sg.datasets.fetch("G/t")
    assert not any(file.is_file() for file in sg.datasets.folder().rglob("*"))


def test_a_length_that_is_no_number(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    body = gzip.compress(ROADS.encode())
    answering(monkeypatch, b"HTTP/1.1 200 OK\r\nContent-Length: long\r\n\r\n" + body)
    know(monkeypatch, Dataset("G/x", f"{server.url}/x.gr.gz", 3, 2))
    assert sg.datasets.fetch("x").nvals == 2


def test_an_archive_of_which_a_digit_changed(server: Server) -> None:
    """It can be unpacked, and only the checksum at the end of the stream tells."""
    path = server.root / "G" / "t.tar.gz"
    archive(path, {"t/t.mtx": TRIANGLE})
    plain = gzip.decompress(path.read_bytes())
    whole = bytearray(gzip.compress(plain, 0))
    whole[whole.index(b"3 2\n")] = ord("2")
    path.write_bytes(whole)
    with pytest.raises(sg.errors.FormatError, match="not a complete archive.*CRC"):
        sg.datasets.fetch("G/t")


@pytest.mark.parametrize("name", ["t/t.mtx", "other"])
def test_an_archive_of_a_few_bytes_that_claims_more(server: Server, name: str) -> None:
    """Python's tarfile would read on to the end of 2^60 bytes."""
    path = server.root / "G" / "t.tar.gz"
    path.parent.mkdir()
    member = tarfile.TarInfo(name)
    member.size = 1 << 60
    path.write_bytes(gzip.compress(member.tobuf(tarfile.GNU_FORMAT) + bytes(1024)))
    words = rf"{name} of {1 << 60} bytes is not in it"
    with pytest.raises(sg.errors.FormatError, match=words):
        sg.datasets.fetch("G/t")


def test_an_archive_cut_off_in_its_first_bytes(server: Server) -> None:
    path = server.root / "G" / "t.tar.gz"
    archive(path, {"t/t.mtx": TRIANGLE})
    path.write_bytes(path.read_bytes()[:3])
    with pytest.raises(sg.errors.FormatError, match="not a complete archive"):
        sg.datasets.fetch("G/t")


@pytest.mark.parametrize("name", ["web-Gogle", "../x", "G/../../x", "DIMACS9/other", ""])
def test_unknown_names(name: str) -> None:
    with pytest.raises(ValueError, match=r"datasets\.fetch: name: expected one of") as caught:
        sg.datasets.fetch(name)
    assert ("'web-Google'" in str(caught.value)) == (name == "web-Gogle")


def test_the_catalog_is_of_one_piece() -> None:
    names = sg.datasets.names()
    assert len(set(names)) == len(names) == len(catalog.CATALOG)
    short = [name.partition("/")[2] for name in names]
    assert len(set(short)) == len(short)
    for dataset in catalog.CATALOG:
        assert dataset.url.startswith("https://")
        assert dataset.vertices
