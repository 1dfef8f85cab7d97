"""How a container shows itself: one line of facts and the first entries, as text and as HTML."""

from html import escape
from typing import Any

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


def text(title: str, facts: list[str], head: list[tuple[Any, ...]], total: int) -> str:
    rows = [[cell(x) for x in row] for row in head]
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))] if rows else []
    lines = [f"{title}, {', '.join(facts)}"]
    lines += [
        "  " + "  ".join(x.rjust(w) for x, w in zip(row, widths, strict=True)) for row in rows
    ]
    if total > len(rows):
        lines.append(f"  ... {total - len(rows)} more")
    return "\n".join(lines)


def html(title: str, facts: list[str], head: list[tuple[Any, ...]], total: int) -> str:
    rows = "".join(
        "<tr>"
        + "".join(f"<td style='text-align:right'>{escape(cell(x))}</td>" for x in row)
        + "</tr>"
        for row in head
    )
    more = (
        f"<tr><td colspan='3'>&hellip; {total - len(head)} more</td></tr>"
        if total > len(head)
        else ""
    )
    return (
        f"<div><strong>{escape(title)}</strong> "
        f"<span style='color:#666'>{escape(' · '.join(facts))}</span>"
        f"<table>{rows}{more}</table></div>"
    )
