# Part of multiply_rows.py: a row of few products, each inserted at its place among those before it.


@inner
def short_row(i, a, b, base, columns, z):
    count = base
    for p in range(np.uint64(a.indptr[i]), np.uint64(a.indptr[i + 1])):
        fetch_rows(p, a.indices, b.indptr, b.indices, b.values, b.keep)
        k = np.uint64(a.indices[p])
        x = a.values[p & a.keep]
        for q in range(np.uint64(b.indptr[k]), np.uint64(b.indptr[k + BIT])):
            j = np.uint64(b.indices[q])
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
                value = multiply(x, b.values[q & b.keep], i, np.int64(k), np.int64(k), np.int64(j))
                z[r] = add(z[r], value)
    return count
