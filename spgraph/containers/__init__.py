"""Matrix, Vector and Mask: where the arrays live."""

from spgraph.containers.argument import MatrixLike, as_matrix
from spgraph.containers.mask import Mask
from spgraph.containers.matrix import Matrix
from spgraph.containers.vector import Vector

__all__ = ["Mask", "Matrix", "MatrixLike", "Vector", "as_matrix"]
