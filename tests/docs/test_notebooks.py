"""The notebooks run from the first cell to the last, and are kept without outputs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))

if not NOTEBOOKS:
    pytest.skip("this is an unpacked sdist, which has no notebooks", allow_module_level=True)


@pytest.mark.full  # CI runs each once, when it builds the site
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed (extra dev)")
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed (extra dev)")
    monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")  # the kernel's debugger warns
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    options = {"metadata": {"path": str(FOLDER)}}
    # a cell that raises ends it with CellExecutionError, which shows the cell and the traceback
    nbclient.NotebookClient(book, timeout=280, kernel_name="python3", resources=options).execute()
    outputs = [out for cell in book.cells for out in cell.get("outputs", [])]
    assert not [out for out in outputs if out.output_type == "error"]
    assert not [out for out in outputs if "Warning" in out.get("text", "")]
    pictures = [out for out in outputs if "image/png" in out.get("data", {})]
    assert pictures, "a notebook shows at least one picture"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_kept_without_outputs(path: Path) -> None:
    book = json.loads(path.read_text(encoding="utf-8"))
    cells = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    assert cells
    for cell in cells:
        assert cell["outputs"] == [] and cell["execution_count"] is None, (
            f"{path.name} holds outputs: strip them with nbstripout {path.name}"
        )
        assert cell["metadata"] == {}
    assert book["metadata"].keys() == {"kernelspec", "language_info"}


def test_the_list_of_notebooks_is_complete() -> None:
    listed = re.findall(r"\]\(([^)]+\.ipynb)\)", (FOLDER / "README.md").read_text("utf-8"))
    assert listed == [path.name for path in NOTEBOOKS]
