# Which way an edge points where each has one direction. No preamble.


@inner
def leads(indptr, by_degree, degree, i, j):
    """Whether (i, j) is the one of the two, `degree` being that of i."""
    if not by_degree:
        return j < i
    other = np.int64(indptr[j + np.uint64(1)]) - np.int64(indptr[j])
    return other > degree or (other == degree and j < i)
