"""What tests of kernels for several threads share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from spgraph.backends.cpu.runtime import pool

THREADS = [1, 2, 3, 8]


@pytest.fixture(params=THREADS)
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Small graphs run on one thread; here they are made to share."""
    monkeypatch.setattr(pool, "processors", lambda: max(THREADS))
    monkeypatch.setattr(pool, "threads_for", lambda work, *share: request.param)
    pool.close()
    yield request.param
    pool.close()
