"""Methods that are named as those of SciPy's sparse arrays and give what those give."""

from spgraph.containers.sparray.elements import MatrixElements, VectorElements
from spgraph.containers.sparray.extremes import Extremes
from spgraph.containers.sparray.formats import MatrixFormats, VectorFormats
from spgraph.containers.sparray.reductions import Reductions


class VectorSparray(VectorFormats, VectorElements, Extremes, Reductions):
    """A Vector as a sparse array of one dimension, `scipy.sparse.coo_array`."""

    __slots__ = ()


class MatrixSparray(MatrixFormats, MatrixElements, Extremes, Reductions):
    """A Matrix as a sparse array of two dimensions, `scipy.sparse.csr_array`."""

    __slots__ = ()


__all__ = ["MatrixSparray", "VectorSparray"]
