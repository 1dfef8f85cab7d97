"""SVG as text, without a plotting library: the same numbers give the same file."""

from __future__ import annotations

from collections.abc import Iterable

from spgraph.plot.style import INK

WIDTH = 760


def legend(x: int, y: int, entries: Iterable[tuple[str, str]]) -> list[str]:
    """Dots with names, side by side."""
    parts = []
    for color, name in entries:
        parts.append(f'<circle cx="{x + 5}" cy="{y - 4}" r="5" fill="{color}"/>')
        parts.append(text(x + 16, y, name))
        x += 40 + 7 * len(name)
    return parts


def text(x: float, y: float, words: str, *, size: int = 13, **style: str) -> str:
    """A line of text; `style` is its anchor, fill and weight."""
    anchor, fill = style.get("anchor", "start"), style.get("fill", INK)
    where = f'x="{round(x, 1)}" y="{y}" text-anchor="{anchor}"'
    looks = f'font-size="{size}" font-weight="{style.get("weight", "normal")}" fill="{fill}"'
    return f"<text {where} {looks}>{words}</text>"


def svg(height: int, parts: Iterable[str], title: str) -> str:
    """The file: white behind it, so that it can be read on a dark page."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}"'
    lines = [
        f'{head} viewBox="0 0 {WIDTH} {height}" font-family="Helvetica, Arial, sans-serif">',
        f"<title>{title}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        *parts,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"
