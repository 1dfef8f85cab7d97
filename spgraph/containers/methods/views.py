"""The transpose of a Matrix as a view of it."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from spgraph.containers.storage.device_memory import synchronize
from spgraph.errors import DomainMismatch

if TYPE_CHECKING:
    from spgraph.containers.matrix import Matrix


class MatrixViews:
    """What a Matrix and the view `A.T` know of each other.

    References go one way, so that memory is free as soon as the last of them goes: a view holds its
    source. The source holds what is derived of the view (its arrays first of all), but the view
    itself only weakly, and makes another when it is asked for one that nobody holds. What others
    keep in `_derived` must not refer to the Matrix either. Where the source is known to be
    symmetric, the view has its arrays and shares what it has derived.

    A view is only read: what an operation wrote into one that nobody holds would be lost.

    Several threads may look at one Matrix: each reads `_source` once, and what is derived twice is
    equal.
    """

    __slots__ = ()
    # what a view lacks until somebody looks at it
    _arrays: tuple[str, ...] = ("_indptr", "_indices", "_values")

    def _begin(self: Any, source: Matrix | None = None) -> None:
        """Nothing is derived yet; `source` is what a view is the transpose of."""
        self._source = source
        self._view: weakref.ref[Any] | None = None
        self._derived: dict[str, Any] = {}
        if source is not None and source.symmetric:
            self._share(source)
            self._derived = source._derived
        elif source is not None:
            self._derived = source._derived.setdefault("T", self._derived)
            self._take_arrays()

    if not TYPE_CHECKING:  # type checkers find what is missing by themselves

        def __getattr__(self: Any, name: str) -> Any:
            if name not in self._arrays:
                raise _not_there(self, name)
            source, derived = self._source, self._derived
            if source is not None and not source.symmetric and "arrays" not in derived:
                made = transposed(source)
                synchronize(self.device)
                derived["arrays"] = tuple(getattr(made, each) for each in self._arrays)
            # of a symmetric one another thread has just made them
            self._take_arrays()
            return object.__getattribute__(self, name)

    def _keep(self: Any, name: str, value: object) -> None:
        """Keep `value` as `name` for all who look at this Matrix from now on; on a GPU once it has
        been made: they may look from another stream, which does not wait for the current one.
        """
        synchronize(self.device)
        self._derived[name] = value

    def _take_arrays(self: Any) -> None:
        """The arrays of a view, if they have been made."""
        arrays = self._derived.get("arrays")
        if arrays is not None:
            for name, array in zip(self._arrays, arrays):  # noqa: B905 (strict takes longer)
                setattr(self, name, array)

    def _share(self: Any, source: Matrix) -> None:
        """Have the arrays of `source`, a symmetric Matrix whose view this is."""
        for name in self._arrays:
            setattr(self, name, getattr(source, name))

    @property
    def _has_arrays(self: Any) -> bool:
        """False for a transpose that nobody has looked into."""
        return self._source is None or bool(self.symmetric) or "arrays" in self._derived

    @property
    def _with_arrays(self: Any) -> Matrix:
        """Itself, or the transpose of a view."""
        source = self._source
        return self if source is None or "arrays" in self._derived else source

    @property
    def T(self: Any) -> Matrix:
        """The transpose, as a view: its arrays are made when they are first needed, and kept as
        long as the Matrix or the view is; those of a Matrix known to be symmetric are its own. The
        transpose of a view is the Matrix itself. Writing to a Matrix leaves its views as they are.
        A view is only read: DomainMismatch for what would write it; `A.T.dup()` may be written.

        >>> import spgraph as sg
        >>> A = sg.Matrix.from_coo([0, 1], [1, 2], nrows=3, ncols=3)
        >>> A.T.to_coo()[0].tolist(), A.T.T is A
        ([1, 2], True)
        """
        source = self._source
        if source is not None:
            return source
        view = self._living_view()
        if view is None:
            view = self._new_view()
            self._view = weakref.ref(view)
        return view

    @property
    def _T(self: Any) -> Matrix:
        """`T` for those who only read: a Matrix known to be symmetric is its own."""
        return self if self.symmetric else self.T

    @property
    def has_transpose(self: Any) -> bool:
        """Whether the arrays of `T` are there.

        >>> import spgraph as sg
        >>> A = sg.Matrix.from_coo([0, 1], [1, 2], nrows=3, ncols=3)
        >>> before, rows = A.has_transpose, A.T.indptr
        >>> before, A.has_transpose
        (False, True)
        """
        if self.symmetric or self._source is not None:
            return True
        return "arrays" in self._derived.get("T", ())

    def prepare(self: Any) -> Matrix:
        """Make and keep now what speeds up many products with dense vectors; returns self.

        On a GPU a large matrix whose columns differ much in size gets a second form that gathers
        from shared memory. It takes about the memory of the entries again, and the time of a few
        products; elsewhere there is nothing to make. pagerank and similar ranks do this by
        themselves.

        >>> import spgraph as sg
        >>> A = sg.Matrix.from_coo([0], [1])
        >>> A.prepare() is A
        True
        """
        from spgraph.steps import backend

        prepare = getattr(backend(self.device), "prepare", None)
        if prepare is not None:
            prepare(self)
        return self

    def _new_view(self: Any) -> Any:
        view = object.__new__(type(self))
        view.nrows, view.ncols = self.ncols, self.nrows
        view.iso, view.symmetric, view._transient = self.iso, self.symmetric, False
        view._begin(self)
        return view

    def _living_view(self: Any) -> Any:
        """The view of this Matrix that somebody holds; None where nobody does."""
        view = None if self._view is None else self._view()
        return view if view is not None and view._source is self else None

    def _written_view(self: Any) -> Matrix:
        """The transpose of a Matrix that nobody else holds, as a result: the view may be written,
        and the Matrix, which is the result's `T`, is only read.
        """
        self._derived["T is written"] = True
        return self.T

    def _check_written(self: Any) -> None:
        """DomainMismatch for a view."""
        source = self._source
        own = self._derived if source is None else source._derived
        if (source is None) == ("T is written" in own):
            raise DomainMismatch(
                "expected a Matrix of its own entries to write into, got a view, the transpose of "
                "another, which is only read; A[j, i] = x writes the Matrix itself, A.T.dup() is a "
                "copy that may be written"
            )

    def _follow(self: Any, source: Matrix) -> None:
        """Be the view of another Matrix, of the same entries."""
        self._source, source._view = source, weakref.ref(self)
        if self.symmetric:
            source._derived = self._derived
        else:
            source._derived["T"] = self._derived

    def _decide(self: Any, T: Matrix, symmetric: bool) -> None:
        """Note whether this Matrix equals `T`, its transpose, whose arrays are there; then the view
        among the two has the arrays of the other.
        """
        view, source = (self, T) if self._source is T else (T, self)
        for each in (view, source):
            each.symmetric = symmetric
            each._derived.pop("search", None)  # it may hold the arrays of the transpose
        if symmetric:
            view._share(source)
            view._derived.pop("arrays", None)  # then: another thread may be looking
            source._derived.pop("T", None)


def _not_there(A: Matrix, name: str) -> AttributeError:
    """The error for a name that a Matrix lacks."""
    lacks = f"{type(A).__name__!r} object has no attribute {name!r}"
    if name.startswith("_"):  # what libraries ask for
        return AttributeError(lacks)
    from spgraph import algorithms, operations

    if name in operations.__all__ or name in algorithms.__all__:
        return AttributeError(f"{lacks}; it is a function, sg.{name}(A, ...)")
    return AttributeError(
        f"{lacks}; operations and algorithms are functions, as in sg.mxm(A, B), .tocsr() has the "
        "methods of SciPy's arrays, and docs/names.md lists what other libraries' names are called "
        "here"
    )


def transposed(A: Matrix) -> Matrix:
    """A new Matrix, the transpose of A."""
    from spgraph.steps import backend

    return backend(A.device).transpose(A)
