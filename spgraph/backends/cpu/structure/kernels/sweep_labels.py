# Sweeps over vertices in the order given, each of which takes the label that most of its neighbours
# have; of several such labels it keeps its own, or else takes the least. No preamble.


@inner
def most_frequent(indptr, ids, v, label, count):
    # `count` is zero between two calls; a vertex's own label, which decides among equals, counts 1,
    # a neighbour's 2
    best = np.uint64(label[v])
    first, last = np.uint64(indptr[v]), np.uint64(indptr[v + np.uint64(1)])
    count[best] = 1
    for p in range(first, last):
        count[np.uint64(label[np.uint64(ids[p])])] += 2
    most = count[best]
    count[best] = 0
    for p in range(first, last):
        other = np.uint64(label[np.uint64(ids[p])])
        votes = count[other]
        count[other] = 0
        if votes > most or (votes == most and other < best):
            most, best = votes, other
    return best


@inner
def take_labels(sync, indptr, ids, order, low, high, label, stale, count):
    """How many of the vertices order[low:high] take another label. Those without a neighbour that
    took one since they were looked at, which are not `stale`, would keep theirs.
    """
    changes = 0
    for k in range(low, high):
        if k & np.uint64(255) == 0:
            poll(sync)
        v = np.uint64(order[k])
        if not stale[v]:
            continue
        stale[v] = False
        best = most_frequent(indptr, ids, v, label, count)
        if best != np.uint64(label[v]):
            label[v] = best
            changes += 1
            for p in range(np.uint64(indptr[v]), np.uint64(indptr[v + np.uint64(1)])):
                stale[np.uint64(ids[p])] = True
    return changes


@kernel
def sweep_labels(
    thread, threads, sync, indptr, ids, order, steps, shared, pieces, tickets, sweeps, label, stale,
    counts, changes,
):  # fmt: skip
    # Step s is order[steps[s]:steps[s + 1]]: with `shared` a colour, whose vertices are no
    # neighbours, else for one thread. The last sweep's number of changes is left in changes[3].
    count = counts[thread]
    sweep = 0
    while sweep < sweeps:
        found = 0
        for s in range(np.uint64(shared.size)):
            first, last = np.uint64(steps[s]), np.uint64(steps[s + np.uint64(1)])
            piece = np.int64(pieces[s])
            while shared[s]:
                low = first + np.uint64(atomic_add(tickets, np.int64(s), piece))
                if low >= last:
                    break
                high = min(low + np.uint64(piece), last)
                found += take_labels(sync, indptr, ids, order, low, high, label, stale, count)
            if thread == 0 and not shared[s]:
                found += take_labels(sync, indptr, ids, order, first, last, label, stale, count)
            barrier(sync, threads)
            if thread == 0:
                tickets[s] = 0
        # three sums in turns: one that all read, one that is cleared, one for the next sweep
        atomic_add(changes, sweep % 3, found)
        barrier(sync, threads)
        total = changes[sweep % 3]
        if thread == 0:
            changes[(sweep + 2) % 3] = 0
            changes[3] = total
        if total == 0:
            break
        sweep += 1
