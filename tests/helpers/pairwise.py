"""A small set of cases in which every two values of two parameters meet at least once."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from typing import Any


def pairwise(parameters: Mapping[str, Sequence[Any]], seed: int = 0) -> list[dict[str, Any]]:
    """Greedy cover of all pairs of values; the same cases every time.

    >>> len(pairwise({"a": [1, 2], "b": [1, 2], "c": [1, 2]})) < 8
    True
    """
    names = list(parameters)
    chance = random.Random(seed)
    missing = {
        (a, x, b, y)
        for a, b in itertools.combinations(names, 2)
        for x in range(len(parameters[a]))
        for y in range(len(parameters[b]))
    }
    cases = []
    while missing:
        a, x, b, y = min(missing)
        case = {a: x, b: y}
        for name in chance.sample(names, len(names)):
            if name in case:
                continue
            gains = [
                sum(
                    ((name, v, other, w) in missing) or ((other, w, name, v) in missing)
                    for other, w in case.items()
                )
                for v in range(len(parameters[name]))
            ]
            best = [v for v, gain in enumerate(gains) if gain == max(gains)]
            case[name] = chance.choice(best)
        for one, two in itertools.combinations(names, 2):
            missing.discard((one, case[one], two, case[two]))
        cases.append({name: parameters[name][case[name]] for name in names})
    return cases
