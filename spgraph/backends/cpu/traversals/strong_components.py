"""Strong components: the giant one by all cores, the others by one thread."""

from __future__ import annotations

import numpy as np

from spgraph.backends.cpu.device.stacks import stacks
from spgraph.backends.cpu.runtime import jit, pool
from spgraph.backends.cpu.traversals import traversals
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import index_dtype

# words of a thread in what the kernel finds, and of these the number of vertices that are left
LINE, LEFT = 8, 3


def strong_components(A: Matrix) -> Vector:
    """The smallest vertex of every vertex's strong component.

    One thread searches depth first, in linear time. Where the transpose of a large A is there
    already, all threads find the giant component before, and vertices that no cycle goes through;
    to make the transpose takes two threads as long as the depth-first search.
    """
    n = A.nrows
    label = np.full(n, n, index_dtype(n))
    threads = pool.threads_for(n + A.nvals, pool.LONG_STEPS) if A.has_transpose else 1
    if threads == 1 or _giant_component(A, threads, label):
        _name_the_others(A, label)
    return Vector._of(n, label)


def _giant_component(A: Matrix, threads: int, label: np.ndarray) -> int:
    """Set the labels of the vertices whose component is found by all threads, others to n; returns
    how many these are.
    """
    n, T = A.nrows, A._T
    wait, mark = np.empty(n, label.dtype), np.zeros(n, np.uint8)
    found = np.zeros(LINE * threads, np.int64)
    kernel = jit.module("giant_component", jit.text_of("stacks")).giant_component
    arrays = (A._indptr, A._indices, T._indptr, T._indices, wait, mark, label, found)
    # each vertex is taken away, or reached from both sides
    pool.launch(kernel, threads, *arrays, *stacks(n, 2 * n, threads))
    return int(found[LEFT::LINE].sum())


def _name_the_others(A: Matrix, label: np.ndarray) -> None:
    """Set the labels that are n, by depth-first search."""
    n = label.size
    others = np.flatnonzero(label == n)
    number = np.full(n, n, label.dtype)  # the greatest index of all keeps a search out
    number[others] = 0
    count = traversals.number_components(A._indptr, A._indices, number)
    number, least = number[others], np.empty(count, label.dtype)
    least[number[::-1]] = others[::-1]  # the last one, the least vertex, stays
    label[others] = least[number]
