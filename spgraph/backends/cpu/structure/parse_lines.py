"""Columns from lines of numbers, parsed on all cores."""

from __future__ import annotations

import functools
import re

import numpy as np

from spgraph.backends.cpu.runtime import jit, pool

# bytes that a thread takes at once
CHUNK = 1 << 17
# what kernels/parse_lines.py calls the kinds of values, and of comments by what they begin with
_KINDS = {"": 0, "int64": 1, "uint64": 2, "float64": 3}
_COMMENTS = {(): 0, (b"#", b"%"): 1, (b"%",): 2, (b"c",): 3}
# the largest power of ten among those by which decimals are rounded, and the least, negative
_POWER = 300
# the upper bits of a NaN whose others are the place of a real that has to be parsed here
_MARK = 0x7FF9
_REAL = re.compile(rb"[^\x00- ,#%]*")


def parse_lines(
    text: bytes,
    letter: bytes,
    markers: tuple[bytes, ...],
    commas: bool,
    low: int,
    high: tuple[int, ...],
    kind: str,
    is_real: re.Pattern[bytes],
) -> list[np.ndarray] | None:
    """An array of ids for each of `high`, of uint32 where they fit, and one of values of the type
    `kind`, '' for none; None if a line is not plainly right. A line feed ends the text.

    `markers` are what a comment begins with: (b"#", b"%"), anywhere in a line; (b"%",) or (b"c",),
    at its beginning; or nothing. Ids are `low`..`high[k]`. A real matches `is_real`.
    """
    chunks = max(1, len(text) // CHUNK)
    ends = (text.find(b"\n", len(text) * k // chunks) for k in range(1, chunks))
    cuts = np.array([0, *(end + 1 for end in ends), len(text)])
    # a line takes two bytes a field; memory that no line is written to is never touched
    places = cuts // max(2, 2 * (len(letter) + len(high) + bool(kind)))
    counts, failed = np.zeros(chunks, np.int64), np.zeros(1, np.int64)
    id_type = np.uint32 if max(high, default=0) < 2**32 else np.uint64
    ids = np.empty((len(high), int(places[-1]) + 1), id_type)
    values = np.empty(int(places[-1]) + 1 if kind else 0, np.uint64)
    pool.launch(
        jit.module("parse_lines", "").parse_lines,
        pool.threads_for(4 * len(text)),
        *(np.frombuffer(text, np.uint8), cuts, np.zeros(1, np.int64)),
        *(np.uint64(letter[0] if letter else 0), commas, _COMMENTS[markers], _KINDS[kind]),
        *(
            np.uint64(low),
            np.array(high, np.uint64),
            _powers(),
            np.array([float(10**q) for q in range(23)]),  # exact, as NumPy's powers need not be
            places,
            counts,
            failed,
        ),
        *(ids, values),
    )
    if failed[0]:
        return None
    ranges = [slice(a, a + n) for a, n in zip(places.tolist(), counts.tolist(), strict=False)]
    columns = [np.concatenate([column[range] for range in ranges]) for column in (*ids, values)]
    bits = columns.pop()
    if kind == "float64" and not _parse_marked(text, bits, is_real):
        return None
    return [*columns, bits.view(kind)] if kind else columns


def _parse_marked(text: bytes, bits: np.ndarray, is_real: re.Pattern[bytes]) -> bool:
    """Replace the marks among the bits of reals by what is at their places in the text; False if
    something else is.
    """
    for k in np.flatnonzero(bits >> 48 == _MARK).tolist():
        found = _REAL.match(text, int(bits[k]) & (1 << 48) - 1)
        token = b"" if found is None else found[0]
        if not is_real.fullmatch(token):
            return False
        bits[k : k + 1].view(np.float64)[0] = float(token)
    return True


@functools.cache
def _powers() -> np.ndarray:
    """The leading 128 bits of 5**q for q of -_POWER.._POWER. Those of -27..-1, by which a double of
    53 bits may be divided without a remainder, are rounded up.
    """
    found = np.empty((2 * _POWER + 1, 2), np.uint64)
    for q in range(-_POWER, _POWER + 1):
        power = 5 ** abs(q)
        if q < 0:
            word = (1 << (power.bit_length() + 127)) // power + (q >= -27)
        else:
            word = power << max(0, 128 - power.bit_length()) >> max(0, power.bit_length() - 128)
        found[q + _POWER] = word >> 64, word & (1 << 64) - 1
    return found
