"""Products over a semiring: matrix times vector, matrix times matrix."""
