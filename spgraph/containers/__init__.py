"""Matrix, Vector and Mask: where the arrays live."""

from spgraph.containers.mask import Mask
from spgraph.containers.matrix import Matrix, as_matrix
from spgraph.containers.vector import Vector

__all__ = ["Mask", "Matrix", "Vector", "as_matrix"]
