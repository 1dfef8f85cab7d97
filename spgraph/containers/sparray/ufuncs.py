"""NumPy's universal functions of containers: of the values of their entries."""

from __future__ import annotations

from typing import Any

import numpy as np

from spgraph.containers.sparray.elements import with_elements
from spgraph.containers.storage.arrays import Array, as_array
from spgraph.errors import DomainMismatch

# those of two containers that the operators of Python mean, and their names as binary operators
PAIRS = {
    np.add: "plus",
    np.subtract: "minus",
    np.multiply: "times",
    np.divide: "truediv",
    np.floor_divide: "floordiv",
    np.remainder: "mod",
    np.power: "pow",
    np.logical_and: "land",
    np.logical_or: "lor",
    np.logical_xor: "lxor",
    np.less: "lt",
    np.less_equal: "le",
    np.greater: "gt",
    np.greater_equal: "ge",
    np.equal: "eq",
    np.not_equal: "ne",
}
# what Python writes as &, | and ^, and what containers mean by these
LOGICAL = {
    np.bitwise_and: "logical_and",
    np.bitwise_or: "logical_or",
    np.bitwise_xor: "logical_xor",
}
BY_NAME = {name: ufunc for ufunc, name in PAIRS.items()}


def call(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """What `Arithmetic.__array_ufunc__` gives: the container of the function's values at the
    entries of the only container of `inputs`; of two what their operator gives.

    Arrays beside a container are looked at where it has entries. DomainMismatch where the
    function has no such meaning.
    """
    name = f"numpy.{ufunc.__name__}"
    _check(name, ufunc, method, options)
    containers = [k for k, each in enumerate(inputs) if hasattr(each, "tocsr")]
    if len(containers) > 1:
        return _of_two(name, ufunc, inputs, options)
    (at,) = containers
    u, arrays = inputs[at], _arrays_beside(name, inputs, at)
    if at:
        _check_order(name, ufunc, [u.dtype, *(each.dtype for each in arrays.values())])
    # a number of Python stays one: it takes the type of the container
    numbers = {
        k: inputs[k] if np.isscalar(inputs[k]) else x[()] for k, x in arrays.items() if not x.ndim
    }
    spread = {k: x for k, x in arrays.items() if x.ndim}
    if ufunc is np.subtract and not (spread or options) and _all_bool(u, arrays):
        # NumPy refuses np.True_ - u, which Python makes this call; True - u is an operator's
        from spgraph.containers.methods import arithmetic

        return arithmetic.combine("minus", u, arrays[1 - at], left=at == 1)

    def values(own: Any, *elements: Any) -> Any:
        given = numbers | {at: own} | dict(zip(spread, elements, strict=True))
        ordered = [given[k] for k in range(len(inputs))]
        made = ufunc(*ordered, **options)
        if made.dtype == np.float16 and "dtype" not in options:
            made = ufunc(*ordered, **options, dtype=np.float32)  # 16 bits are no type of values
        return made

    if len(u.shape) == 1 and u.storage == "bitmap":
        u = u.to_sparse()  # the function does not see what lies under absent entries
    made = with_elements(u, name, values, *spread.values()) if spread else u._with_values(values)
    return made._conform() if len(u.shape) == 1 else made


def _arrays_beside(name: str, inputs: tuple[Any, ...], at: int) -> dict[int, Array]:
    """All of `inputs` but the container, which is number `at`, as arrays of numbers."""
    arrays = {k: as_array(f"{name}: x{k + 1}", x) for k, x in enumerate(inputs) if k != at}
    wrong = next((x for x in arrays.values() if x.dtype.kind not in "biuf"), None)
    if wrong is not None:
        raise DomainMismatch(f"{name}: expected numbers beside a container, got {wrong.dtype}")
    return arrays


def _all_bool(u: Any, arrays: dict[int, Any]) -> bool:
    return all(kind == np.bool_ for kind in (u.dtype, *(x.dtype for x in arrays.values())))


def _check_order(name: str, ufunc: np.ufunc, kinds: list[np.dtype]) -> None:
    """Refuse `x & v`, which NumPy makes numpy.bitwise_and(x, v), where that is not `v & x`."""
    if ufunc in LOGICAL and any(kind.kind != "b" for kind in kinds):
        raise DomainMismatch(
            f"{name}: x1: expected the container, or truth values in both, got {kinds[1]} before "
            f"{kinds[0]}; an operator of Python means {name} here and numpy.{LOGICAL[ufunc]} with "
            "the container on its left"
        )


def _check(name: str, ufunc: np.ufunc, method: str, options: dict[str, Any]) -> None:
    if method != "__call__":
        remedy = (
            "sg.reduce, .sum(), .max() and their kin reduce"
            if method == "reduce"
            else (".toarray() makes an array")
        )
        raise DomainMismatch(f"{name}.{method}: expected arrays, got a container; {remedy}")
    for option in options:
        if option not in ("dtype", "casting"):
            remedy = (
                ".toarray() makes an array that can be written"
                if option == "out"
                else ("x[mask] = ... writes where a mask allows")
            )
            raise DomainMismatch(
                f"{name}: {option}: expected none beside a container, whose result is a new one; "
                f"{remedy}, and the operations of spgraph take out= and mask="
            )
    if ufunc.nout != 1 or ufunc.signature is not None:
        raise DomainMismatch(
            f"{name}: expected a function of single values with one result; "
            ".toarray() makes an array that NumPy takes, and A @ x is the product"
        )


def _of_two(name: str, ufunc: np.ufunc, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    from spgraph.containers.methods import arithmetic

    for option in options:
        raise DomainMismatch(
            f"{name}: {option}: expected none with two containers; .astype converts the result"
        )
    if ufunc not in PAIRS:
        raise DomainMismatch(
            f"{name}: expected one container beside numbers and arrays, got {len(inputs)}; "
            "sg.ewise_add combines the union of their entries, sg.ewise_mult the intersection, by "
            "an operator of sg.semirings.binary"
        )
    union = ufunc in (np.add, np.subtract, np.logical_or, np.logical_xor)
    return arithmetic.combine(PAIRS[ufunc], *inputs, union=union)
