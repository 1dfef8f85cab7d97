"""Every error spgraph raises by name. Each derives from what a Python user would catch anyway."""

__all__ = [
    "BackendMismatch",
    "BackendUnavailable",
    "CommunicationError",
    "ConvergenceError",
    "DimensionMismatch",
    "DomainMismatch",
    "FormatError",
    "IndexOutOfBound",
    "NegativeWeight",
]


class DimensionMismatch(ValueError):
    """Two shapes that have to agree do not."""


class FormatError(ValueError):
    """A file or an array does not hold what its format promises. Names the file and the line where
    there is one.
    """


class NegativeWeight(ValueError):
    """An edge weight is negative where the algorithm allows none."""


class DomainMismatch(TypeError):
    """An operator is not defined for the types it was given, or an argument has the wrong kind."""


class IndexOutOfBound(IndexError):
    """An index lies outside of its container."""


class BackendMismatch(RuntimeError):
    """Containers on different devices meet in one operation."""


class BackendUnavailable(RuntimeError):
    """A device or library that was asked for is not there. The message says what to install."""


class CommunicationError(RuntimeError):
    """Shards, devices or processes could not reach each other, or one of them was lost. The message
    names the device, the collective and the process.
    """


class ConvergenceError(RuntimeError):
    """An iteration ran out of steps; `result` holds the last iterate."""

    def __init__(self, message: str, result: object = None) -> None:
        super().__init__(message)
        self.result = result


def not_square(name: str, nrows: int, ncols: int) -> DimensionMismatch:
    """The error of the operation `name` for a matrix that is no graph."""
    return DimensionMismatch(
        f"{name}: A: expected a square matrix, got {nrows} x {ncols}; if it was built from "
        "coordinates, from_coo with nrows= and ncols= makes a square one of as many vertices"
    )


def unsettled(semiring: str, n: int, result: object) -> ConvergenceError:
    """The error of a closure over n vertices that still improves after n rounds."""
    return ConvergenceError(
        f"closure: values of {semiring} still improve after {n} rounds, as many as there are "
        "vertices: some cycle makes its own values better; remove it, or take a semiring whose "
        "products are never better than their first operand",
        result,
    )


def __dir__() -> list[str]:
    return sorted(__all__)
