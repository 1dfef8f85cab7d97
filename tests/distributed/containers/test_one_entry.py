"""A distributed Vector of one entry, which has no shards until somebody looks at them."""

from __future__ import annotations

from typing import Any

import numpy as np

import spgraph as sg
from tests.containers.test_threads import interrupted


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


def test_another_thread_looks_at_every_line() -> None:
    A = sg.generators.grid(2, 3).distribute(2)
    looks: list[Any] = [
        lambda v: v._value_range(),
        lambda v: (v.dtype, v.nbytes, v.nvals),
        lambda v: [shard.nvals for shard in v.shards],
    ]

    def unit() -> Any:
        return sg.Vector.unit(4, 3, size=6, dtype=np.int64, device=A.device)

    for look in looks:
        expected, at, more = look(unit()), 0, True
        while more:
            at += 1
            v = unit()
            found, more = interrupted(lambda v=v, look=look: look(v), at, lambda v=v: v.shards)
            assert found == expected, at
        assert at > 3
