"""The operators of containers, `A @ x` and `u + v`, which call operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np

from spgraph.containers.annotations import Dense, Number, Scalar, SparseArray
from spgraph.containers.interchange.tensors import is_tensor
from spgraph.containers.storage.arrays import as_array, is_array, of_kind, on_its_device
from spgraph.containers.storage.numbers import is_integer
from spgraph.errors import DimensionMismatch, DomainMismatch

if TYPE_CHECKING:
    from spgraph.containers.matrix import Matrix
    from spgraph.containers.vector import Vector


class Arithmetic:
    """What Vector and Matrix share.

    `u + v` is a union, with what there is where one has no entry; `u - v` a union with 0; `u * v`,
    `u / v` and all comparisons are intersections, entry by entry as NumPy's are. With a scalar or
    an array they look at stored entries only: `A < 1` has no entry where A has none. So do NumPy's
    universal functions: `np.sqrt(A)`. `&`, `|` and `^` are logical, `|` and `^` unions; `~` inverts
    truth values, and of integers the bits. Integers to a negative power are an error, as in NumPy.
    `@` is the product over plus_times. `==` compares entries, so that containers have no hash;
    `isequal` gives one bool.
    """

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]
    __pandas_priority__ = 10_000  # by which pandas leaves `series * A` to the Matrix

    def __add__(self, other: Self | Scalar | SparseArray) -> Self:
        return combine("plus", self, other, union=True)

    def __radd__(self, other: Self | Scalar | SparseArray) -> Self:
        return combine("plus", self, other, union=True, left=True)

    def __sub__(self, other: Self | Scalar | SparseArray) -> Self:
        return combine("minus", self, other, union=True)

    def __rsub__(self, other: Self | Scalar | SparseArray) -> Self:
        return combine("minus", self, other, union=True, left=True)

    def __mul__(self, other: Self | Scalar | SparseArray) -> Self:
        return combine("times", self, other)

    def __rmul__(self, other: Self | Scalar | SparseArray) -> Self:
        return combine("times", self, other, left=True)

    def __truediv__(self, other: Self | Scalar | SparseArray) -> Self:
        return combine("truediv", self, other)

    def __rtruediv__(self, other: Self | Scalar | SparseArray) -> Self:
        return combine("truediv", self, other, left=True)

    def __floordiv__(self, other: Self | Scalar | SparseArray) -> Self:
        return combine("floordiv", self, other)

    def __rfloordiv__(self, other: Self | Scalar | SparseArray) -> Self:
        return combine("floordiv", self, other, left=True)

    def __mod__(self, other: Self | Scalar | SparseArray) -> Self:
        return combine("mod", self, other)

    def __rmod__(self, other: Self | Scalar | SparseArray) -> Self:
        return combine("mod", self, other, left=True)

    def __divmod__(self, other: Self | Scalar | SparseArray) -> tuple[Self, Self]:
        return self // other, self % other

    def __rdivmod__(self, other: Self | Scalar | SparseArray) -> tuple[Self, Self]:
        return other // self, other % self

    def __pow__(self, other: Self | Scalar | SparseArray) -> Self:
        _refuse_negative_power(self, other)
        return combine("pow", self, other)

    def __rpow__(self, other: Self | Scalar | SparseArray) -> Self:
        _refuse_negative_power(other, self)
        return combine("pow", self, other, left=True)

    def __and__(self, other: Self | Scalar | SparseArray) -> Self:
        return combine("land", self, other)

    def __rand__(self, other: Self | Scalar | SparseArray) -> Self:
        return combine("land", self, other, left=True)

    def __or__(self, other: Self | Scalar | SparseArray) -> Self:
        return combine("lor", self, other, union=True)

    def __ror__(self, other: Self | Scalar | SparseArray) -> Self:
        return combine("lor", self, other, union=True, left=True)

    def __xor__(self, other: Self | Scalar | SparseArray) -> Self:
        return combine("lxor", self, other, union=True)

    def __rxor__(self, other: Self | Scalar | SparseArray) -> Self:
        return combine("lxor", self, other, union=True, left=True)

    def __lt__(self, other: Self | Scalar | SparseArray) -> Self:
        return combine("lt", self, other)

    def __le__(self, other: Self | Scalar | SparseArray) -> Self:
        return combine("le", self, other)

    def __gt__(self, other: Self | Scalar | SparseArray) -> Self:
        return combine("gt", self, other)

    def __ge__(self, other: Self | Scalar | SparseArray) -> Self:
        return combine("ge", self, other)

    def __eq__(self, other: Self | Scalar | SparseArray) -> Self:  # type: ignore[override]
        return combine("eq", self, other)

    def __ne__(self, other: Self | Scalar | SparseArray) -> Self:  # type: ignore[override]
        return combine("ne", self, other)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if ufunc is np.matmul and method == "__call__" and not options:
            return product(*inputs)
        from spgraph.containers.sparray.ufuncs import call

        return call(ufunc, method, inputs, options)

    def __neg__(self) -> Self:
        return _unary("ainv", self)

    def __pos__(self) -> Self:
        u: Any = self
        return u.dup()

    def __invert__(self) -> Self:
        u: Any = self
        if u.dtype.kind == "f":
            raise DomainMismatch(
                f"~: expected truth values or integers, got {u.dtype}; ~x.S is the mask of the "
                "positions without an entry, ~x.V that of those where none is true"
            )
        return _unary("lnot" if u.dtype == bool else "bnot", self)

    def __round__(self, digits: int = 0) -> Self:
        u: Any = self
        return u.dup() if u.dtype == bool else u._with_values(lambda x: x.round(digits))

    def __abs__(self) -> Self:
        return _unary("abs", self)


class VectorArithmetic(Arithmetic):
    """The products of a Vector."""

    __slots__ = ()

    @overload
    def __matmul__(self, other: Vector) -> Number: ...

    @overload
    def __matmul__(self, other: Matrix | SparseArray) -> Vector: ...

    def __matmul__(self, other: Vector | Matrix | SparseArray) -> Number | Vector:
        return product(self, other)

    def __rmatmul__(self, other: SparseArray) -> Vector:
        return product(other, self)


class MatrixArithmetic(Arithmetic):
    """The products of a Matrix: with an array of NumPy or CuPy an array of that kind."""

    __slots__ = ()

    @overload
    def __matmul__(self, other: Vector) -> Vector: ...

    @overload
    def __matmul__(self, other: Matrix | SparseArray) -> Matrix: ...

    @overload
    def __matmul__(self, other: Dense) -> Dense: ...

    def __matmul__(self, other: Vector | Matrix | SparseArray | Dense) -> Vector | Matrix | Dense:
        return product(self, other)

    @overload
    def __rmatmul__(self, other: SparseArray) -> Matrix: ...

    @overload
    def __rmatmul__(self, other: Dense) -> Dense: ...

    def __rmatmul__(self, other: SparseArray | Dense) -> Matrix | Dense:
        return product(other, self)

    # what the linear operators of scipy.sparse.linalg and cupyx.scipy.sparse.linalg are made of

    def matvec(self, x: Dense) -> Dense:
        """`A @ x` for an array of one dimension or one column, over plus_times; DimensionMismatch
        for other shapes.

        With `shape`, `dtype`, `rmatvec`, `matmat` and `rmatmat` a Matrix is what the solvers of
        scipy.sparse.linalg take for a linear operator, those of cupyx on a GPU.

        >>> import spgraph as sg
        >>> from scipy.sparse.linalg import eigsh
        >>> A = sg.Matrix.from_coo([0, 1, 1, 2], [1, 0, 2, 1], 1.0)
        >>> A.matvec([[1], [2], [3]]).tolist()
        [[2.0], [4.0], [2.0]]
        >>> float(eigsh(A, k=1, which="LA")[0][0].round(6))
        1.414214
        """
        return _operator_product("matvec", self, x)

    def rmatvec(self, x: Dense) -> Dense:
        """`A.T @ x` for an array of one dimension or one column, over plus_times.

        >>> import spgraph as sg
        >>> sg.Matrix.from_coo([0], [1], 2.0, nrows=2, ncols=2).rmatvec([1, 5]).tolist()
        [0.0, 2.0]
        """
        return _operator_product("rmatvec", self, x)

    def matmat(self, X: Dense) -> Dense:
        """`A @ X` for an array of two dimensions, over plus_times.

        >>> import spgraph as sg
        >>> sg.Matrix.from_coo([0], [1], 2.0, nrows=2, ncols=2).matmat([[1, 2], [3, 4]]).tolist()
        [[6.0, 8.0], [0.0, 0.0]]
        """
        return _operator_product("matmat", self, X)

    def rmatmat(self, X: Dense) -> Dense:
        """`A.T @ X` for an array of two dimensions, over plus_times.

        >>> import spgraph as sg
        >>> sg.Matrix.from_coo([0], [1], 2.0, nrows=2, ncols=2).rmatmat([[1, 2], [3, 4]]).tolist()
        [[0.0, 0.0], [2.0, 4.0]]
        """
        return _operator_product("rmatmat", self, X)


def _operator_product(name: str, A: Any, x: Any) -> Any:
    """A x, or the transpose of A times x, for the method `name` of a linear operator."""
    from spgraph.operations import arrays, products

    one, transposed = name.endswith("vec"), name.startswith("r")
    argument, extent = "x" if one else "X", A.nrows if transposed else A.ncols
    given, x = x, as_array(f"{name}: {argument}", x)
    fits = x.shape in ((extent,), (extent, 1)) if one else x.ndim == 2 and len(x) == extent
    if not fits:
        expected = f"({extent},) or ({extent}, 1)" if one else f"({extent}, k)"
        raise DimensionMismatch(
            f"{name}: {argument}: expected an array of shape {expected}, as {name} of a Matrix of "
            f"{A.nrows} x {A.ncols} takes it, got {x.shape}"
        )
    left = transposed and x.ndim == 1
    A = A._T if transposed and not left else A
    return of_kind(given, arrays.product(name, A, x, products.plus_times, None, {}, left))


def combine(name: str, x: Any, y: Any, *, union: bool = False, left: bool = False) -> Any:
    """The operator `name` between x and y, of which one is a container: y x if y is on the `left`,
    as where Python asks the operand on the right.
    """
    from spgraph import operations
    from spgraph.semirings import binary

    op = getattr(binary, name)
    ours = isinstance(y, Arithmetic)
    if not ours and isinstance(y, bool | int | float | np.generic):
        if name in ("floordiv", "mod"):  # NumPy's, as with an array: integers by 0 give 0
            return _by_ufunc(name, x, y, left)
        side: Any = {"left" if left else "right": y}
        return operations.apply(x, op, **side)
    if ours or hasattr(y, "tocsr") or is_tensor(y):
        if not (isinstance(x, Arithmetic) and isinstance(y, Arithmetic)):
            from spgraph.containers.sparray.elements import container_of

            x, y = container_of(x, name), container_of(y, name)
        x, y = (y, x) if left else (x, y)
        if name == "minus":
            return operations.ewise_union(x, y, op)
        return (operations.ewise_add if union else operations.ewise_mult)(x, y, op)
    array = is_array(y)
    if array:
        y = as_array(name, y)
    if array and y.ndim == 0:
        return operations.apply(x, op, **{"left" if left else "right": y})
    return _by_ufunc(name, x, y, left) if array or isinstance(y, list | tuple) else NotImplemented


def _by_ufunc(name: str, x: Any, y: Any, left: bool) -> Any:
    """The function of NumPy that means the operator `name`, of entries and a number or an array."""
    from spgraph.containers.sparray.ufuncs import BY_NAME, call

    return call(BY_NAME[name], "__call__", (y, x) if left else (x, y), {})


def _refuse_negative_power(x: Any, exponent: Any) -> None:
    """ValueError, as NumPy's, for integers to a negative power, which are no integers."""
    if not (_is_integer(x) and _is_integer(exponent)):
        return  # of arrays NumPy's own function refuses them
    least = exponent
    if isinstance(exponent, Arithmetic):
        values: Any = exponent
        least = values._value_range()[0] if values.dtype.kind == "i" else 0
    if least < 0:
        raise ValueError(
            f"**: expected integers to powers >= 0, got {least}; x.astype(float) has their powers, "
            'and sg.apply(x, "pow", right=...) those of GraphBLAS, cut off to integers'
        )


def _is_integer(x: Any) -> bool:
    if isinstance(x, Arithmetic):
        u: Any = x
        return u.dtype.kind in "biu"
    return isinstance(x, bool | np.bool_) or is_integer(x)


def _unary(name: str, x: Any) -> Any:
    from spgraph import operations
    from spgraph.semirings import unary

    return operations.apply(x, getattr(unary, name))


def product(x: Any, y: Any) -> Any:
    """x @ y over plus_times, by the kinds of both."""
    from spgraph import operations
    from spgraph.containers.vector import Vector

    if not (isinstance(x, Arithmetic) and isinstance(y, Arithmetic)):
        array, other = (y, x) if isinstance(x, Arithmetic) else (x, y)
        if is_array(array):
            if isinstance(other, Vector):
                return _vector_by_array(other, array, array is x)
            if getattr(array, "ndim", 1) != 1:  # a column of Arrow does not say
                return operations.mxm(x, y)
            return operations.mxv(x, y) if array is y else operations.vxm(x, y)
        if not hasattr(array, "tocsr") and not is_tensor(array):
            raise DomainMismatch(
                f"@: expected a Matrix or a Vector, got {type(array).__name__}; "
                "sg.Vector(x) makes a Vector of a list, np.asarray(x) an array"
            )
    if not isinstance(x, Vector):
        return (operations.mxv if isinstance(y, Vector) else operations.mxm)(x, y)
    if not isinstance(y, Vector):
        return operations.vxm(x, y)
    from spgraph.semirings import plus_times  # here, as it takes as long as a small product

    typed = plus_times.resolve(x.dtype, y.dtype)
    return operations.reduce(operations.ewise_mult(x, y), dtype=typed.dtype)


@on_its_device
def _vector_by_array(v: Vector, given: Any, left: bool) -> Any:
    """The product of a Vector with an array of one dimension (a number) or two (an array of its
    kind), which stands on the left if `left`; empty positions mean 0.
    """
    from spgraph import operations
    from spgraph.containers.sparray.elements import as_row

    x = as_array("@", given)
    if x.ndim not in (1, 2):
        raise DimensionMismatch(f"@: expected an array of 1 or 2 dimensions, got {x.ndim}")
    if x.shape[-1 if left else 0] != v.size:
        raise DimensionMismatch(f"@: the shape {x.shape} does not fit a Vector of {v.size}")
    row = as_row(v)
    if x.ndim == 1:
        found = operations.mxv(row, x)
        return found[0] if isinstance(found, np.ndarray) else found.get()[0]
    made = operations.mxm(x, row.T) if left else operations.mxm(row, x)
    return of_kind(given, made.ravel())
