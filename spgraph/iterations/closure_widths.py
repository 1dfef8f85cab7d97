"""How wide the buckets of a closure are where nobody says so."""

from __future__ import annotations

import math

import numpy as np

from spgraph.containers import Matrix
from spgraph.direction import bucket_width, may_be_narrow, narrow_width
from spgraph.semirings import Semiring, max_times, min_plus
from spgraph.steps import is_distributed


def default_widths(A: Matrix, semiring: Semiring, dtype: np.dtype) -> tuple[float, float | None]:
    """The width of a bucket, from how much an edge changes a value; and, of a GPU, how far products
    are pushed beyond a large bucket.
    """
    mean, low, high = A._sampled_mean(), *map(float, A._value_range())
    if semiring == min_plus:
        step, least = mean, low
    elif semiring == max_times:
        step, least = 1.0 - mean, 1.0 - high
    else:  # of widths, any of them may become the narrowest
        step, least = 2.0 * abs(mean - low), 0.0
    step = step if math.isfinite(step) else abs(mean)
    shards, device, host = 1, A.device, False
    if is_distributed(A):
        shards, device, host = device.num_shards, device.devices[0], device.peers is None
    reach = width = bucket_width(step, A.nrows, A.nvals, device)
    if device != "cpu" and may_be_narrow(A.nvals):
        counts = A.nrows // shards, A.nvals // shards
        width = narrow_width(reach, step, least, *counts, A._sampled_row_length(), host)
    if dtype.kind != "f":
        width, reach = max(width, 1.0), max(reach, 1.0)
    return width, None if device == "cpu" else reach
