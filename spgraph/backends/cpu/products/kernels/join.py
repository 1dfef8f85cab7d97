# Move the results of chunks, which have gaps between them, next to each other.


@kernel
def join(thread, threads, sync, offsets, lengths, places, ticket, columns, z, to_columns, to_z):
    while True:
        poll(sync)
        chunk = atomic_add(ticket, 0, 1)
        if chunk >= lengths.size:
            break
        length = np.uint64(lengths[chunk])
        source = np.uint64(offsets[chunk])
        target = np.uint64(places[chunk])
        for r in range(length):
            to_columns[target + r] = columns[source + r]
        if z.size:  # not where all values are one
            for r in range(length):
                to_z[target + r] = z[source + r]
