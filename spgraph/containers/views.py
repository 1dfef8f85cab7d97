"""The transpose of a Matrix as a view of it."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from spgraph.containers.sugar import transposed

if TYPE_CHECKING:
    from spgraph.containers.matrix import Matrix


class MatrixViews:
    """What a Matrix and the view `A.T` know of each other.

    References go one way, so that memory is free as soon as the last of them goes: a view holds its
    source. The source holds what is derived of the view (its arrays first of all), but the view
    itself only weakly, and makes another when it is asked for one that nobody holds. What others
    keep in `_derived` must not refer to the Matrix either.

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
        if source is not None:
            self._derived = source._derived.setdefault("T", self._derived)
            self._take_arrays()

    def __getattr__(self: Any, name: str) -> Any:
        if name not in self._arrays:
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}; operations and "
                "algorithms are functions, as in sg.mxm(A, B), .tocsr() has the methods of SciPy's "
                "arrays, and docs/names.md lists what other libraries' names are called here"
            )
        source = self._source
        if source is not None and "arrays" not in self._derived:
            made = transposed(source)
            self._derived["arrays"] = tuple(getattr(made, each) for each in self._arrays)
        # without a source another thread has just made them and found them symmetric
        self._take_arrays()
        return object.__getattribute__(self, name)

    def _take_arrays(self: Any) -> None:
        """The arrays of a view, if they have been made."""
        arrays = self._derived.get("arrays")
        if arrays is not None:
            for name, array in zip(self._arrays, arrays):  # noqa: B905 (strict takes longer)
                setattr(self, name, array)

    @property
    def _has_arrays(self: Any) -> bool:
        """False for a transpose that nobody has looked into."""
        return self._source is None or "arrays" in self._derived

    @property
    def _with_arrays(self: Any) -> Matrix:
        """Itself, or the transpose of a view."""
        source = self._source
        return self if source is None or "arrays" in self._derived else source

    @property
    def T(self: Any) -> Matrix:
        """The transpose, as a view: its arrays are made when they are first needed, and kept as
        long as the Matrix or the view is. The transpose of a view is the Matrix itself; one known
        to be symmetric is its own. Writing to a Matrix leaves its views as they are.

        >>> import spgraph as sg
        >>> A = sg.Matrix.from_coo([0, 1], [1, 2], nrows=3, ncols=3)
        >>> A.T.to_coo()[0].tolist(), A.T.T is A
        ([1, 2], True)
        """
        if self.symmetric:
            return self
        source = self._source
        if source is not None:
            return source
        view = self._living_view()
        if view is None:
            view = self._new_view()
            self._view = weakref.ref(view)
        return view

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

    def _follow(self: Any, source: Matrix) -> None:
        """Be the view of another Matrix, of the same entries."""
        self._source = source
        source._derived["T"], source._view = self._derived, weakref.ref(self)

    def _decide(self: Any, T: Matrix, symmetric: bool) -> None:
        """Note whether this Matrix equals `T`, its transpose, whose arrays are there; then each is
        its own transpose and holds no other.
        """
        # in this order: another thread may be looking, and finds arrays where it finds no source
        for each in (self, T):
            each.symmetric = symmetric
            each._derived.pop("search", None)  # it may hold the arrays of the transpose
            if symmetric:
                each._source = None
                each._derived.pop("T", None)
