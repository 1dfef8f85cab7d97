# Part of multiply_rows.py: a row where columns are so few that a sum for each of them stays in a
# core's cache. A bit is set for every column of a product, and a single word, in a register, tells
# which 64ths of that bitmap are not zero, so that the columns are listed in order.


@inner
def dense_row(i, a, b, bits, wide, sums, base, columns, z):
    high = np.uint64(0)
    for p in range(np.uint64(a.indptr[i]), np.uint64(a.indptr[i + 1])):
        fetch_rows(p, a.indices, b.indptr, b.indices, b.values, b.keep)
        k = np.uint64(a.indices[p])
        x = a.values[p & a.keep]
        for q in range(np.uint64(b.indptr[k]), np.uint64(b.indptr[k + BIT])):
            j = np.uint64(b.indices[q])
            w = j >> SIX
            bits[w] |= BIT << (j & LOW)
            high |= BIT << (w >> wide)
            value = multiply(x, b.values[q & b.keep], i, np.int64(k), np.int64(k), np.int64(j))
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
                columns[base] = j
                z[base] = sums[j]
                sums[j] = IDENTITY
                base += BIT
    return base
