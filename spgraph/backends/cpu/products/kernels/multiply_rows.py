# Sparse times sparse, row by row (Gustavson 1978): row i of Z is the sum over the entries (i, k) of
# A of A[i, k] times row k of B. Preamble: multiply, add, IDENTITY, MASK (0: none, 1: a mask, 2: its
# complement), VALUES (False: all values of the result are equal and known), DENSE (with VALUES and
# without a mask: a sum for every column).
#
# A row is made in two passes over its products. The first sets a bit for every column of a product;
# two coarser bitmaps (each bit stands for a word of 64 bits of the finer one) tell which words are
# not zero, so that the columns are listed in order without a sort or a scan of all columns. The
# second pass adds each product at the position of its column in the finished row, which is the
# number of bits before its own. Under a mask that is not complemented the columns are known in
# advance, and the second pass is enough. With DENSE the first pass adds each product to a sum of
# its column, and the listing takes the sums: where columns are so few that the sums stay in a
# core's cache. Then a single word, in a register, tells which 64ths of the bitmap are not zero.
# Without a mask a row of at most SHORT products, as road networks have, needs no bitmap: each is
# inserted at its place among those before it.

from spgraph.backends.cpu.device.prefetching import fetch_rows

SIX = np.uint64(6)
LOW = np.uint64(63)
BIT = np.uint64(1)
SHORT = 32


@inner
def bits_set(word):
    """The number of bits set in a 64-bit word; compiled to one instruction."""
    word = word - ((word >> BIT) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + (
        (word >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@inner
def holds(indices, first, last, j):
    """Whether j is among the ascending indices[first:last]."""
    stop = last
    while first < stop:
        half = (first + stop) >> BIT
        if np.uint64(indices[half]) < j:
            first = half + BIT
        else:
            stop = half
    return first < last and np.uint64(indices[first]) == j


@kernel
def one_value(thread, threads, sync, a, b, z):
    # the sum of any number of equal products, for an idempotent monoid
    z[0] = add(IDENTITY, multiply(a[0], b[0], 0, 0, 0, 0))


@kernel
def row_flops(thread, threads, sync, splits, a_indptr, a_indices, b_indptr, flops):
    for i in range(splits[thread], splits[thread + 1]):
        if i & 0xFFFF == 0:
            poll(sync)
        sum_ = np.int64(0)
        for p in range(np.uint64(a_indptr[i]), np.uint64(a_indptr[i + 1])):
            k = np.uint64(a_indices[p])
            sum_ += np.int64(b_indptr[k + BIT]) - np.int64(b_indptr[k])
        flops[i] = sum_


@kernel
def multiply_rows(
    thread, threads, sync, a_indptr, a_indices, a, a_keep, b_indptr, b_indices, b, b_keep, m_indptr,
    m_indices, flops, splits, offsets, ticket, all_bits, all_middle, all_top, all_met, all_ranks,
    all_sums, counts, columns, z,
):  # fmt: skip
    bits = all_bits[thread]
    middle = all_middle[thread]
    top = all_top[thread]
    met = all_met[thread]
    ranks = all_ranks[thread]
    sums = all_sums[thread]
    wide = np.uint64(0)  # 64ths of the bitmap have 1 << wide words
    while np.uint64(bits.size - 1) >> wide > LOW:
        wide += BIT
    while True:
        poll(sync)
        chunk = atomic_add(ticket, 0, 1)
        if chunk + 1 >= splits.size:
            break
        base = np.uint64(offsets[chunk])
        for i in range(splits[chunk], splits[chunk + 1]):
            if i & 15 == 0:
                poll(sync)
            if flops[i] == 0:
                continue
            first = np.uint64(a_indptr[i])
            last = np.uint64(a_indptr[i + 1])
            count = base
            if DENSE:
                high = np.uint64(0)
                for p in range(first, last):
                    fetch_rows(p, a_indices, b_indptr, b_indices, b, b_keep)
                    k = np.uint64(a_indices[p])
                    x = a[p & a_keep]
                    for q in range(np.uint64(b_indptr[k]), np.uint64(b_indptr[k + BIT])):
                        j = np.uint64(b_indices[q])
                        w = j >> SIX
                        bits[w] |= BIT << (j & LOW)
                        high |= BIT << (w >> wide)
                        y = b[q & b_keep]
                        value = multiply(x, y, i, np.int64(k), np.int64(k), np.int64(j))
                        sums[j] = add(sums[j], value)
                while high != 0:
                    v = lowest_bit(high)
                    high &= high - BIT
                    for w in range(v << wide, min((v + BIT) << wide, np.uint64(bits.size))):
                        low = bits[w]
                        bits[w] = 0
                        while low != 0:
                            j = (w << SIX) | lowest_bit(low)
                            low &= low - BIT
                            columns[count] = j
                            z[count] = sums[j]
                            sums[j] = IDENTITY
                            count += BIT
                counts[i + 1] = count - base
                base = count
                continue
            if MASK == 0 and flops[i] <= SHORT:
                for p in range(first, last):
                    fetch_rows(p, a_indices, b_indptr, b_indices, b, b_keep)
                    k = np.uint64(a_indices[p])
                    x = a[p & a_keep]
                    for q in range(np.uint64(b_indptr[k]), np.uint64(b_indptr[k + BIT])):
                        j = np.uint64(b_indices[q])
                        r = count
                        while r > base and np.uint64(columns[r - BIT]) >= j:
                            r -= BIT
                        if r == count or np.uint64(columns[r]) != j:
                            for s in range(count, r, -1):
                                columns[s] = columns[s - 1]
                                if VALUES:
                                    z[s] = z[s - 1]
                            columns[r] = j
                            count += BIT
                            if VALUES:
                                z[r] = IDENTITY
                        if VALUES:
                            y = b[q & b_keep]
                            value = multiply(x, y, i, np.int64(k), np.int64(k), np.int64(j))
                            z[r] = add(z[r], value)
                counts[i + 1] = count - base
                base = count
                continue
            laid = False
            m_first = m_last = np.uint64(0)
            if MASK:
                m_first = np.uint64(m_indptr[i])
                m_last = np.uint64(m_indptr[i + 1])
                if MASK == 1 and m_first == m_last:
                    continue
                # a row of the mask that is longer than the products is searched instead
                laid = np.int64(m_last - m_first) <= flops[i]
            # mark the columns of the mask
            if MASK and laid:
                before = np.uint64(0xFFFFFFFFFFFFFFFF)
                for f in range(m_first, m_last):
                    j = np.uint64(m_indices[f])
                    w = j >> SIX
                    if MASK == 1:
                        if w != before:
                            ranks[w] = f - m_first
                        before = w
                        bits[w] |= BIT << (j & LOW)
                    else:
                        met[w] |= BIT << (j & LOW)
            # mark the columns of the products, then list them
            if MASK != 1 or not laid:
                for p in range(first, last):
                    fetch_rows(p, a_indices, b_indptr, b_indices, b, b_keep)
                    k = np.uint64(a_indices[p])
                    for q in range(np.uint64(b_indptr[k]), np.uint64(b_indptr[k + BIT])):
                        j = np.uint64(b_indices[q])
                        w = j >> SIX
                        bit = BIT << (j & LOW)
                        if MASK == 2:
                            bit &= ~met[w]
                        word = bits[w]
                        bits[w] = word | bit
                        if word == 0:
                            v = w >> SIX
                            word = middle[v]
                            middle[v] = word | (BIT << (w & LOW))
                            if word == 0:
                                top[v >> SIX] |= BIT << (v & LOW)
                for t in range(np.uint64(top.size)):
                    high = top[t]
                    top[t] = 0
                    while high != 0:
                        v = (t << SIX) | lowest_bit(high)
                        high &= high - BIT
                        mid = middle[v]
                        middle[v] = 0
                        while mid != 0:
                            w = (v << SIX) | lowest_bit(mid)
                            mid &= mid - BIT
                            low = bits[w]
                            ranks[w] = count - base
                            while low != 0:
                                j = (w << SIX) | lowest_bit(low)
                                low &= low - BIT
                                if MASK and not laid:
                                    named = holds(m_indices, m_first, m_last, j)
                                    if named != (MASK == 1):
                                        bits[w] ^= BIT << (j & LOW)
                                        continue
                                columns[count] = j
                                count += BIT
            # add the products
            if VALUES or (MASK == 1 and laid):
                places = count - base
                if MASK == 1 and laid:
                    places = m_last - m_first
                if VALUES:
                    for r in range(base, base + places):
                        z[r] = IDENTITY
                for p in range(first, last):
                    if MASK == 1 and laid:
                        fetch_rows(p, a_indices, b_indptr, b_indices, b, b_keep)
                    k = np.uint64(a_indices[p])
                    x = a[p & a_keep]
                    for q in range(np.uint64(b_indptr[k]), np.uint64(b_indptr[k + BIT])):
                        j = np.uint64(b_indices[q])
                        w = j >> SIX
                        bit = BIT << (j & LOW)
                        word = bits[w]
                        if MASK:
                            if word & bit == 0:
                                continue
                            if MASK == 1 and laid:
                                met[w] |= bit
                        if VALUES:
                            r = base + np.uint64(ranks[w]) + bits_set(word & (bit - BIT))
                            y = b[q & b_keep]
                            value = multiply(x, y, i, np.int64(k), np.int64(k), np.int64(j))
                            z[r] = add(z[r], value)
            # clear the bitmaps for the next row
            if MASK == 1 and laid:
                for f in range(m_first, m_last):
                    j = np.uint64(m_indices[f])
                    if (met[j >> SIX] >> (j & LOW)) & BIT != 0:
                        columns[count] = j
                        if VALUES:
                            z[count] = z[base + (f - m_first)]
                        count += BIT
                for f in range(m_first, m_last):
                    w = np.uint64(m_indices[f]) >> SIX
                    bits[w] = 0
                    met[w] = 0
            else:
                for r in range(base, count):
                    bits[np.uint64(columns[r]) >> SIX] = 0
                if MASK == 2 and laid:
                    for f in range(m_first, m_last):
                        met[np.uint64(m_indices[f]) >> SIX] = 0
            counts[i + 1] = count - base
            base = count


@kernel
def join(thread, threads, sync, offsets, lengths, places, ticket, columns, z, to_columns, to_z):
    # move the results of the chunks, which have gaps between them, next to each other
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
