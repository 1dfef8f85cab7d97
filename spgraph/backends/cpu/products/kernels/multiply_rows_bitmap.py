# Part of multiply_rows.py: a row in two passes over its products. The first sets a bit for every
# column of a product; two coarser bitmaps (each bit stands for a word of 64 bits of the finer one)
# tell which words are not zero, so that the columns are listed in order without a sort or a scan of
# all columns. The second adds each product at the position of its column in the finished row, which
# is the number of bits before its own. Under a mask that is not complemented the columns are known
# in advance, and the second pass is enough: the mask is `laid` into the bitmap, unless its row is
# longer than the products; then it is searched for each column.


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
    at = lower_bound(indices, first, last, j)
    return at < last and np.uint64(indices[at]) == j


@inner
def bitmap_row(i, a, b, m_indptr, m_indices, products, maps, base, columns, z):
    first = last = np.uint64(0)
    laid = False
    if MASK:
        first = np.uint64(m_indptr[i])
        last = np.uint64(m_indptr[i + 1])
        if MASK == 1 and first == last:
            return base
        laid = np.int64(last - first) <= products
        if laid:
            lay_mask(m_indices, first, last, maps)
    if MASK == 1 and laid:
        if VALUES:
            for r in range(base, base + (last - first)):
                z[r] = IDENTITY
        add_products(i, a, b, maps, laid, base, z)
        return take_met(m_indices, first, last, maps, base, columns, z)
    mark_products(i, a, b, maps)
    count = list_columns(m_indices, first, last, laid, maps, base, columns)
    if VALUES:
        for r in range(base, count):
            z[r] = IDENTITY
        add_products(i, a, b, maps, laid, base, z)
    for r in range(base, count):
        maps.bits[np.uint64(columns[r]) >> SIX] = 0
    if MASK == 2 and laid:
        for f in range(first, last):
            maps.met[np.uint64(m_indices[f]) >> SIX] = 0
    return count


@inner
def lay_mask(m_indices, first, last, maps):
    """Mark the columns of the mask: to be taken, or in its complement to be left out."""
    before = np.uint64(0xFFFFFFFFFFFFFFFF)
    for f in range(first, last):
        j = np.uint64(m_indices[f])
        w = j >> SIX
        if MASK == 1:
            if w != before:
                maps.ranks[w] = f - first
            before = w
            maps.bits[w] |= BIT << (j & LOW)
        else:
            maps.met[w] |= BIT << (j & LOW)


@inner
def mark_products(i, a, b, maps):
    """Mark the columns of the products."""
    bits, middle = maps.bits, maps.middle
    for p in range(np.uint64(a.indptr[i]), np.uint64(a.indptr[i + 1])):
        fetch_rows(p, a.indices, b.indptr, b.indices, b.values, b.keep)
        k = np.uint64(a.indices[p])
        for q in range(np.uint64(b.indptr[k]), np.uint64(b.indptr[k + BIT])):
            j = np.uint64(b.indices[q])
            w = j >> SIX
            bit = BIT << (j & LOW)
            if MASK == 2:
                bit &= ~maps.met[w]
            word = bits[w]
            bits[w] = word | bit
            if word == 0:
                v = w >> SIX
                word = middle[v]
                middle[v] = word | (BIT << (w & LOW))
                if word == 0:
                    maps.top[v >> SIX] |= BIT << (v & LOW)


@inner
def list_columns(m_indices, first, last, laid, maps, base, columns):
    """List the marked columns, without those that a mask which is not laid excludes."""
    bits, middle, top = maps.bits, maps.middle, maps.top
    count = base
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
                maps.ranks[w] = count - base
                while low != 0:
                    j = (w << SIX) | lowest_bit(low)
                    low &= low - BIT
                    if MASK and not laid and holds(m_indices, first, last, j) != (MASK == 1):
                        bits[w] ^= BIT << (j & LOW)
                        continue
                    columns[count] = j
                    count += BIT
    return count


@inner
def add_products(i, a, b, maps, laid, base, z):
    """Add each product of a marked column at its place, or note that the column was met."""
    bits = maps.bits
    for p in range(np.uint64(a.indptr[i]), np.uint64(a.indptr[i + 1])):
        if MASK == 1 and laid:  # else the first pass has fetched them
            fetch_rows(p, a.indices, b.indptr, b.indices, b.values, b.keep)
        k = np.uint64(a.indices[p])
        x = a.values[p & a.keep]
        for q in range(np.uint64(b.indptr[k]), np.uint64(b.indptr[k + BIT])):
            j = np.uint64(b.indices[q])
            w = j >> SIX
            bit = BIT << (j & LOW)
            word = bits[w]
            if MASK:
                if word & bit == 0:
                    continue
                if MASK == 1 and laid:
                    maps.met[w] |= bit
            if VALUES:
                r = base + np.uint64(maps.ranks[w]) + bits_set(word & (bit - BIT))
                value = multiply(x, b.values[q & b.keep], i, np.int64(k), np.int64(k), np.int64(j))
                z[r] = add(z[r], value)


@inner
def take_met(m_indices, first, last, maps, base, columns, z):
    """Move the entries of a laid mask that were met next to each other, and clear the bitmaps."""
    bits, met = maps.bits, maps.met
    count = base
    for f in range(first, last):
        j = np.uint64(m_indices[f])
        if (met[j >> SIX] >> (j & LOW)) & BIT != 0:
            columns[count] = j
            if VALUES:
                z[count] = z[base + (f - first)]
            count += BIT
    for f in range(first, last):
        w = np.uint64(m_indices[f]) >> SIX
        bits[w] = 0
        met[w] = 0
    return count
