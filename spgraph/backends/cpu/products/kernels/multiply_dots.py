# Sparse times sparse at the positions of a mask: entry (i, j) is the dot product of row i of A and
# row j of the transpose of B. Preamble: multiply, add, IDENTITY, TERMINAL, TERMINAL_VALUE, VALUES
# (False: all values of the result are equal and known), REDUCE (True: only the sum of all entries
# is written, to z[0], made of those of the chunks in their order), and for that `combine`, ZERO,
# its identity, and `cast`.
#
# Row i of A is expanded once, to a bitmap and a dense row of values, and each entry of the rows j
# in the mask is looked up there; a short row is searched itself. If one of the two rows is much
# shorter, its columns are searched for in the other instead.

from spgraph.backends.cpu.device.prefetching import fetch_rows

SIX = np.uint64(6)
LOW = np.uint64(63)
BIT = np.uint64(1)

# the cost of one step of a binary search, in lookups in the bitmap
HALVING = 4
# rows of at most this length are searched, behind a filter in a register: roads have no others
SHORT = 8


@inner
def lookups_pay(length, other):
    """Whether looking each column of the other row up costs no more than searching for each column
    of the shorter row in the longer.
    """
    if other <= 8 * length:  # the usual case, and true for any number of halvings
        return True
    long = other
    halvings = 2
    while long > 0:
        long >>= 1
        halvings += 1
    return other <= HALVING * length * halvings


@kernel
def multiply_dots(
    thread, threads, sync, a_indptr, a_indices, a, a_keep, b_indptr, b_indices, b, b_keep, m_indptr,
    m_indices, splits, rows, ticket, all_bits, all_values, counts, lengths, columns, z,
):  # fmt: skip
    bits = all_bits[thread]
    row = all_values[thread]
    while True:
        poll(sync)
        chunk = atomic_add(ticket, 0, 1)
        if chunk >= splits.size - 1:
            break
        e = splits[chunk]
        target = np.uint64(e)
        i = rows[chunk]
        if REDUCE:
            total = ZERO
        while e < splits[chunk + 1]:
            while m_indptr[i + 1] <= e:
                i += 1
            if i & 15 == 0:
                poll(sync)
            m_first = np.uint64(e)
            m_last = np.uint64(min(splits[chunk + 1], np.int64(m_indptr[i + 1])))
            e = np.int64(m_last)
            first = np.uint64(a_indptr[i])
            last = np.uint64(a_indptr[i + 1])
            length = np.int64(last - first)
            if length == 0:
                continue
            short = length <= SHORT
            laid = short
            filter_ = np.uint64(0)  # of a short row: the bits of its columns modulo 64
            if not short:
                streamed = np.int64(0)
                for f in range(m_first, m_last):
                    j = np.uint64(m_indices[f])
                    streamed += np.int64(b_indptr[j + BIT]) - np.int64(b_indptr[j])
                laid = length <= 4 * streamed
            if laid:
                for p in range(first, last):
                    k = np.uint64(a_indices[p])
                    if short:
                        filter_ |= BIT << (k & LOW)
                    else:
                        bits[k >> SIX] |= BIT << (k & LOW)
                    if VALUES:
                        row[k & a_keep] = a[p & a_keep]
            before = target
            for f in range(m_first, m_last):
                fetch_rows(f, m_indices, b_indptr, b_indices, b, b_keep)
                j = np.uint64(m_indices[f])
                b_first = np.uint64(b_indptr[j])
                b_last = np.uint64(b_indptr[j + BIT])
                other = np.int64(b_last - b_first)
                sum_ = IDENTITY
                hits = np.uint64(0)  # the lowest bit: whether there was a product
                if laid and lookups_pay(length, other):
                    for q in range(b_first, b_last):
                        k = np.uint64(b_indices[q])
                        # the other bits do not matter; masking them prevents LLVM from vectorising
                        # this loop
                        if short:
                            hit = filter_ >> (k & LOW)
                            if hit & BIT != 0:
                                hit = np.uint64(0)
                                for p in range(first, last):
                                    hit |= np.uint64(np.uint64(a_indices[p]) == k)
                        else:
                            hit = bits[k >> SIX] >> (k & LOW)
                        hits |= hit
                        if hit & BIT != 0:
                            if VALUES:
                                x, y, at = row[k & a_keep], b[q & b_keep], np.int64(k)
                                sum_ = add(sum_, multiply(x, y, i, at, at, np.int64(j)))
                            if TERMINAL == 1 or not VALUES:
                                break
                            if TERMINAL == 2 and sum_ == TERMINAL_VALUE:
                                break
                else:
                    p = first
                    q = b_first
                    while p < last and q < b_last:
                        # the next column of the shorter row, and where it would be in the longer
                        if length < other:
                            k = np.uint64(a_indices[p])
                            stop = b_last
                            while q < stop:
                                half = (q + stop) >> BIT
                                if np.uint64(b_indices[half]) < k:
                                    q = half + BIT
                                else:
                                    stop = half
                            met = q < b_last and np.uint64(b_indices[q]) == k
                        else:
                            k = np.uint64(b_indices[q])
                            stop = last
                            while p < stop:
                                half = (p + stop) >> BIT
                                if np.uint64(a_indices[half]) < k:
                                    p = half + BIT
                                else:
                                    stop = half
                            met = p < last and np.uint64(a_indices[p]) == k
                        if met:
                            hits = BIT
                            if VALUES:
                                x, y, at = a[p & a_keep], b[q & b_keep], np.int64(k)
                                sum_ = add(sum_, multiply(x, y, i, at, at, np.int64(j)))
                            if TERMINAL == 1 or not VALUES:
                                break
                            if TERMINAL == 2 and sum_ == TERMINAL_VALUE:
                                break
                        if length < other:
                            p += BIT
                        else:
                            q += BIT
                if REDUCE:
                    if hits & BIT != 0:
                        total = combine(total, cast(sum_))
                elif hits & BIT != 0:
                    columns[target] = j
                    if VALUES:
                        z[target] = sum_
                    target += BIT
            if laid and not short:
                for p in range(first, last):
                    bits[np.uint64(a_indices[p]) >> SIX] = 0
            if not REDUCE:
                # a chunk may begin or end inside a row
                atomic_add(counts, i + 1, np.int64(target - before))
        if REDUCE:
            z[chunk] = total
        else:
            lengths[chunk] = np.int64(target) - splits[chunk]
    if REDUCE:
        barrier(sync, threads)
        if thread == 0:
            for chunk in range(1, splits.size - 1):
                z[0] = combine(z[0], z[chunk])
