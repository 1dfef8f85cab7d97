# The left fold of each group of values.
# Preamble: op, cast (to the type of z).


@kernel
def fold(thread, threads, sync, starts, values, has_first, first, z):
    # the fold of group g begins with first[g] if has_first[g] (which may be empty), else with the
    # first value of the group
    for g in range(starts.size * thread // threads, starts.size * (thread + 1) // threads):
        if g & 0xFFF == 0:
            poll(sync)
        p = np.int64(starts[g])
        stop = np.int64(starts[g + 1]) if g + 1 < starts.size else values.size
        if has_first.size and has_first[g]:
            sum_ = cast(first[g])
        else:
            sum_ = cast(values[p])
            p += 1
        while p < stop:
            sum_ = cast(op(sum_, values[p], 0, 0, 0, 0))
            p += 1
        z[g] = sum_
