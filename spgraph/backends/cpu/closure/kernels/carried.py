# Which edges carry the values of a closure: a part of dag_edges.py and parents.py.
# Preamble: the text of bits.py, multiply.


@inner
def has_value(bits, v):
    """Whether v has a value; without bits all have."""
    return bits.size == 0 or has_bit(bits, v)


@inner
def carries(x, a, i, j, value, bits):
    """Whether the edge from i to j, of value a, makes of x the value that j has."""
    return multiply(x, a, 0, i, i, j) == value[j] and has_value(bits, j)
