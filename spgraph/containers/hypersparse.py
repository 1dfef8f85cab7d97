"""Vectors of so many positions that a bit for each would take far more memory than the entries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from spgraph.containers.mask import Mask
from spgraph.containers.storage.arrays import array_module, index_dtype
from spgraph.containers.storage.selection import distinct
from spgraph.containers.vector import Vector

RATIO = 1024  # positions for an entry: the bits of as many take 128 bytes, and as long to fill


def are_hypersparse(size: int, *vectors: Any) -> bool:
    """Whether these, of `size` positions each, are sparse, and all together with few entries."""
    return (
        all(v._indices is not None for v in vectors)
        and sum(v._indices.size for v in vectors) * RATIO < size
    )


def write_renumbered(
    write: Callable[..., None],
    out: Vector,
    t: Vector,
    mask: Mask,
    accum: Any,
    replaced: bool,
) -> None:
    """What `write` of a backend does with these arguments, of hypersparse vectors: it gets vectors
    of those positions alone at which one of them has an entry, numbered anew. A complement allows
    all others, where nothing is written.
    """
    xp = array_module(out._values)
    vectors: list[Any] = [out, t, mask.parent]
    ids = xp.concatenate([v._indices for v in vectors])
    ids.sort()
    ids = distinct(ids)

    def small(v: Any) -> Vector:
        at = xp.searchsorted(ids, v._indices).astype(index_dtype(ids.size))
        return Vector._of(ids.size, v._values, indices=at)

    w = small(out)
    write(w, small(t), replace(mask, parent=small(mask.parent)), accum, replaced)
    w = w.to_sparse()
    assert w._indices is not None
    out._become(Vector._of(out.size, w._values, indices=ids[w._indices]))
