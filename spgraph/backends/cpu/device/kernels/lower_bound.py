# Searches among ascending ids, such as the columns of a row: a part of the texts that need one.
# Positions are uint64; ids and `wanted` are integers >= 0 of any type.


@inner
def lower_bound(ids, low, high, wanted):
    """The first position in ids[low:high] of an id >= `wanted`, `high` if there is none."""
    while low < high:
        middle = (low + high) >> np.uint64(1)
        if np.uint64(ids[middle]) < np.uint64(wanted):
            low = middle + np.uint64(1)
        else:
            high = middle
    return low


@inner
def exponential_search(ids, low, high, wanted):
    """The same, faster where that position is near `low`."""
    step = np.uint64(1)
    end = low
    while end < high and np.uint64(ids[end]) < np.uint64(wanted):
        low = end + np.uint64(1)
        end = low + step
        step += step
    return lower_bound(ids, low, min(end, high), wanted)
