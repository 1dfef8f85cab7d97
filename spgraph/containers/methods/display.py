"""The representation of a container: one line of facts and the first entries, as text and HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

from spgraph.containers.methods.parts import MatrixParts, Parts, VectorParts
from spgraph.containers.storage.arrays import array_module, on_its_device, unpack_bits

ROWS = 8


def size_of(nbytes: int) -> str:
    """Bytes for people: '640 B', '1.2 MB'."""
    amount = float(nbytes)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


class Shown(NamedTuple):
    """What a representation shows: a line of a title and facts, then the first of `total` rows."""

    title: str
    facts: Sequence[str]
    rows: Sequence[tuple[Any, ...]] = ()
    total: int = 0

    def text(self) -> str:
        """The lines of `repr`."""
        rows = [[cell(x) for x in row] for row in self.rows]
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))] if rows else []
        lines = [f"{self.title}, {', '.join(self.facts)}"]
        lines += [
            "  " + "  ".join(x.rjust(w) for x, w in zip(row, widths, strict=True)) for row in rows
        ]
        if self.total > len(rows):
            lines.append(f"  ... {self.total - len(rows)} more")
        return "\n".join(lines)

    def html(self) -> str:
        """The table of a notebook."""
        rows = "".join(
            "<tr>"
            + "".join(f"<td style='text-align:right'>{escape(cell(x))}</td>" for x in row)
            + "</tr>"
            for row in self.rows
        )
        more = (
            f"<tr><td colspan='3'>&hellip; {self.total - len(self.rows)} more</td></tr>"
            if self.total > len(self.rows)
            else ""
        )
        return (
            f"<div><strong>{escape(self.title)}</strong> "
            f"<span style='color:#666'>{escape(' · '.join(self.facts))}</span>"
            f"<table>{rows}{more}</table></div>"
        )


class Display(Parts):
    """The representations of a Vector or a Matrix, whose base this is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return self._describe().text()

    def _repr_html_(self) -> str:
        return self._describe().html()


class VectorDisplay(VectorParts, Display):
    """The text of a Vector."""

    __slots__ = ()

    @on_its_device
    def _describe(self) -> Shown:
        facts = [str(self.dtype), self.storage, self.device, size_of(self.nbytes)]
        title = f"Vector {self.size}, {self.nvals} entries"
        return Shown(title, facts, self._head(ROWS), self.nvals)

    def _head(self, count: int) -> list[tuple[Any, ...]]:
        """The first entries, found without unpacking more of a bitmap than they need."""
        if self._indices is not None:
            indices = self._indices[:count]
            values = self._values[:count]
        elif self._bits is None:
            values = self._values[:count]
            indices = array_module(values).arange(values.size)
        else:
            xp = array_module(self._values)
            nonzero = xp.flatnonzero(self._bits)[:count]
            flags = xp.zeros(32 * nonzero.size, bool)
            if nonzero.size:
                flags = unpack_bits(self._bits[nonzero], 32 * nonzero.size)
            local = xp.flatnonzero(flags)[:count]
            indices = nonzero[local // 32] * 32 + local % 32
            values = self._values[indices]
        return list(zip(indices.tolist(), values.tolist(), strict=True))


class MatrixDisplay(MatrixParts, Display):
    """The text of a Matrix."""

    __slots__ = ()

    @on_its_device
    def _describe(self) -> Shown:
        facts = [str(self.dtype) + (" iso" if self.iso else ""), "CSR"]
        facts += ["symmetric"] if self.symmetric else []
        facts += [self.device, size_of(self.nbytes)]
        count = min(ROWS, self.nvals)
        xp = array_module(self._indices)
        rows = xp.searchsorted(self._indptr[1:], xp.arange(count), side="right").tolist()
        values = (self._values[:1].repeat(count) if self.iso else self._values[:count]).tolist()
        head = list(zip(rows, self._indices[:count].tolist(), values, strict=True))
        title = f"Matrix {self.nrows}x{self.ncols}, {self.nvals} entries"
        return Shown(title, facts, head, self.nvals)
