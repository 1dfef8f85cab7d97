# Sorted entries, of which several may be of one position: one each, in place, by one thread.
# Preamble: VALUES (False: positions only), and with them op and cast (to the type of values).


@kernel
def fold_entries(thread, threads, sync, indptr, indices, values):
    # entries move to the front, indptr follows; what is behind its last element is left over
    put = np.uint64(0)
    begin = np.uint64(indptr[0])
    for row in range(np.uint64(indptr.size - 1)):
        if row & np.uint64(0xFFF) == 0:
            poll(sync)
        end = np.uint64(indptr[row + np.uint64(1)])
        first = put
        for p in range(begin, end):
            if put > first and indices[put - np.uint64(1)] == indices[p]:
                if VALUES:
                    before = values[put - np.uint64(1)]
                    values[put - np.uint64(1)] = cast(op(before, values[p], 0, 0, 0, 0))
            else:
                indices[put] = indices[p]
                if VALUES:
                    values[put] = values[p]
                put += np.uint64(1)
        indptr[row + np.uint64(1)] = put
        begin = end
