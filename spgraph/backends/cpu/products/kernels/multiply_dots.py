# Sparse times sparse at the positions of a mask: entry (i, j) is the dot product of row i of A and
# row j of the transpose of B. Preamble: multiply, add, IDENTITY, TERMINAL, TERMINAL_VALUE, VALUES
# (False: all values of the result are equal and known), REDUCE (True: only the sum of all entries
# is written, to z[0], made of those of the chunks in their order), and for that `combine`, ZERO,
# its identity, and `cast`; and the text of lower_bound.py.
#
# Row i of A is expanded once, to a bitmap and a dense row of values, and each entry of the rows j
# in the mask is looked up there; a short row is searched itself. If one of the two rows is much
# shorter, its columns are searched for in the other instead.

from collections import namedtuple

from spgraph.backends.cpu.device.prefetching import fetch_rows

SIX = np.uint64(6)
LOW = np.uint64(63)
BIT = np.uint64(1)

# the cost of one step of a binary search, in lookups in the bitmap
HALVING = 4
# rows of at most this length are searched, behind a filter in a register: roads have no others
SHORT = 8

# the value of entry p is values[p & keep]
Rows = namedtuple("Rows", "indptr indices values keep")
# row i of A: its entries first to last, whether it is short, the bits of its columns modulo 64 if
# so, else their bitmap; `values` are those at its columns
Row = namedtuple("Row", "i first last short filter bits values")


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


@inner
def lay(a, first, last, short, bits, values):
    """Expand a row of A; returns the filter of a short one."""
    filter_ = np.uint64(0)
    for p in range(first, last):
        k = np.uint64(a.indices[p])
        if short:
            filter_ |= BIT << (k & LOW)
        else:
            bits[k >> SIX] |= BIT << (k & LOW)
        if VALUES:
            values[k & a.keep] = a.values[p & a.keep]
    return filter_


@inner
def lies_in(a, row, k):
    """The lowest bit: whether column k is one of an expanded row. The others do not matter; masking
    them prevents LLVM from vectorising the loop over columns.
    """
    if not row.short:
        return row.bits[k >> SIX] >> (k & LOW)
    hit = row.filter >> (k & LOW)
    if hit & BIT != 0:
        hit = np.uint64(0)
        for p in range(row.first, row.last):
            hit |= np.uint64(np.uint64(a.indices[p]) == k)
    return hit


@inner
def ends(sum_):
    """Whether further products do not change a sum."""
    return TERMINAL == 1 or not VALUES or (TERMINAL == 2 and sum_ == TERMINAL_VALUE)


@inner
def dot_by_lookup(a, row, b, j):
    """(a number whose lowest bit says whether there is a product, their sum): each column of row j
    of B is looked up in the expanded row of A.
    """
    sum_ = IDENTITY
    hits = np.uint64(0)
    for q in range(np.uint64(b.indptr[j]), np.uint64(b.indptr[j + BIT])):
        k = np.uint64(b.indices[q])
        hit = lies_in(a, row, k)
        hits |= hit
        if hit & BIT != 0:
            if VALUES:
                x, y, at = row.values[k & a.keep], b.values[q & b.keep], np.int64(k)
                sum_ = add(sum_, multiply(x, y, row.i, at, at, np.int64(j)))
            if ends(sum_):
                break
    return hits, sum_


@inner
def dot_by_search(a, row, b, j):
    """As `dot_by_lookup`: each column of the shorter row is searched for in the longer."""
    sum_ = IDENTITY
    hits = np.uint64(0)
    p, last = row.first, row.last
    q, stop = np.uint64(b.indptr[j]), np.uint64(b.indptr[j + BIT])
    a_shorter = last - p < stop - q
    while p < last and q < stop:
        if a_shorter:
            k = np.uint64(a.indices[p])
            q = lower_bound(b.indices, q, stop, k)
            met = q < stop and np.uint64(b.indices[q]) == k
        else:
            k = np.uint64(b.indices[q])
            p = lower_bound(a.indices, p, last, k)
            met = p < last and np.uint64(a.indices[p]) == k
        if met:
            hits = BIT
            if VALUES:
                x, y, at = a.values[p & a.keep], b.values[q & b.keep], np.int64(k)
                sum_ = add(sum_, multiply(x, y, row.i, at, at, np.int64(j)))
            if ends(sum_):
                break
        if a_shorter:
            p += BIT
        else:
            q += BIT
    return hits, sum_


@inner
def expansion_pays(length, m_indices, m_first, m_last, b_indptr):
    """Whether the rows of B that the mask names have enough entries to expand a row of A."""
    streamed = np.int64(0)
    for f in range(m_first, m_last):
        j = np.uint64(m_indices[f])
        streamed += np.int64(b_indptr[j + BIT]) - np.int64(b_indptr[j])
    return length <= 4 * streamed


@inner
def dots_of_row(i, a, b, m_indices, m_first, m_last, bits, values, found, columns, z):
    """The dot products of row i of A at the positions m_first to m_last of the mask: with REDUCE
    added to the sum `found`, else written from position `found` on; returns the sum, or the
    position behind the last.
    """
    first = np.uint64(a.indptr[i])
    last = np.uint64(a.indptr[i + 1])
    length = np.int64(last - first)
    if length == 0:
        return found
    short = length <= SHORT
    laid = short or expansion_pays(length, m_indices, m_first, m_last, b.indptr)
    filter_ = lay(a, first, last, short, bits, values) if laid else np.uint64(0)
    row = Row(i, first, last, short, filter_, bits, values)
    for f in range(m_first, m_last):
        fetch_rows(f, m_indices, b.indptr, b.indices, b.values, b.keep)
        j = np.uint64(m_indices[f])
        other = np.int64(b.indptr[j + BIT]) - np.int64(b.indptr[j])
        if laid and lookups_pay(length, other):
            hits, sum_ = dot_by_lookup(a, row, b, j)
        else:
            hits, sum_ = dot_by_search(a, row, b, j)
        if hits & BIT != 0:
            if REDUCE:
                found = combine(found, cast(sum_))
            else:
                columns[found] = j
                if VALUES:
                    z[found] = sum_
                found += BIT
    if laid and not short:
        for p in range(first, last):
            bits[np.uint64(a.indices[p]) >> SIX] = 0
    return found


@kernel
def multiply_dots(
    thread, threads, sync, a_indptr, a_indices, a_values, a_keep, b_indptr, b_indices, b_values,
    b_keep, m_indptr, m_indices, splits, rows, ticket, all_bits, all_values, counts, lengths,
    columns, z,
):  # fmt: skip
    a = Rows(a_indptr, a_indices, a_values, a_keep)
    b = Rows(b_indptr, b_indices, b_values, b_keep)
    bits, values = all_bits[thread], all_values[thread]
    while True:
        poll(sync)
        chunk = atomic_add(ticket, 0, 1)
        if chunk >= splits.size - 1:
            break
        e = splits[chunk]
        found = ZERO if REDUCE else np.uint64(e)
        i = rows[chunk]
        while e < splits[chunk + 1]:
            while m_indptr[i + 1] <= e:
                i += 1
            if i & 15 == 0:
                poll(sync)
            last = min(splits[chunk + 1], np.int64(m_indptr[i + 1]))
            before = found
            found = dots_of_row(
                *(i, a, b, m_indices, np.uint64(e), np.uint64(last), bits, values, found),
                *(columns, z),
            )
            if not REDUCE:
                # a chunk may begin or end inside a row
                atomic_add(counts, i + 1, np.int64(found - before))
            e = last
        if REDUCE:
            z[chunk] = found
        else:
            lengths[chunk] = np.int64(found) - splits[chunk]
    if REDUCE:
        barrier(sync, threads)
        if thread == 0:
            for chunk in range(1, splits.size - 1):
                z[0] = combine(z[0], z[chunk])
