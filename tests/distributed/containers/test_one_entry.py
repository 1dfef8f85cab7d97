"""A distributed Vector of one entry, which has no shards until somebody looks at them."""

from __future__ import annotations

from typing import Any

import numpy as np

import spgraph as sg


def test_a_vector_of_one_entry_is_as_others() -> None:
    A = sg.generators.grid(5, 8).distribute(3)

    def unit() -> Any:
        return sg.Vector.unit(17, 3, size=40, dtype=np.int64, device=A.device)

    assert unit().entry.place < 40 and (unit().dtype, unit().nvals) == (np.int64, 1)
    plain = sg.Vector.unit(17, 3, size=40, dtype=np.int64)
    assert unit().gather().isequal(plain) and unit().isequal(A.device.scatter(plain))
    v, w = unit(), unit()
    # perhaps only one process prints, and all have to know the same of a Vector
    assert "here" in repr(v) and v.entry is not None
    assert v.nbytes == sum(shard.nbytes for shard in w.shards)
    v, w = unit(), unit()
    sg.assign(v, 9, [0, 17, 39])
    w._become(v)
    for written in (v, w):
        assert written.entry is None
        indices, values = written.gather().to_coo()
        assert (indices.tolist(), values.tolist()) == ([0, 17, 39], [9, 9, 9])
