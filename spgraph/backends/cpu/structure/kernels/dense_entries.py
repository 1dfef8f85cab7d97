# The entries of a dense array, of two dimensions in row-major order: those that are present.
# Threads take equal parts of its elements, which begin and end inside of rows. No preamble.


@kernel
def count_present(thread, threads, sync, bounds, ticket, width, present, counts, sizes):
    # counts[c]: the entries of part c; sizes[i + 1]: those of row i
    while True:
        poll(sync)
        part = atomic_add(ticket, 0, 1)
        if part >= bounds.size - 1:
            break
        f, last = bounds[part], bounds[part + 1]
        row = f // width
        while f < last:
            end = min(last, (row + 1) * width)
            found = 0
            for g in range(np.uint64(f), np.uint64(end)):
                found += present[g]
            counts[part] += found
            atomic_add(sizes, row + 1, found)
            f, row = end, row + 1


@kernel
def write_present(
    thread, threads, sync, bounds, ticket, width, present, array, starts, columns, values
):  # fmt: skip
    # starts[c]: where the entries of part c begin
    while True:
        poll(sync)
        part = atomic_add(ticket, 0, 1)
        if part >= bounds.size - 1:
            break
        f = bounds[part]
        k, last = np.uint64(starts[part]), np.uint64(starts[part + 1])
        row = f // width
        while k < last:
            begin = row * width
            g, end = np.uint64(f), np.uint64(begin + width)
            while k < last and g < end:  # written without a branch on what is present
                columns[k] = g - np.uint64(begin)
                values[k] = array[g]
                k += np.uint64(present[g])
                g += np.uint64(1)
            row += 1
            f = row * width
