// The triangles of a symmetric pattern of short rows: at each edge (i, j), j < i, the k < j in both
// rows. Preamble: types O I.
//
// Only entries below the diagonal are looked at, the first ones of each row. A thread takes a row of up
// to SHORT entries, whose lesser neighbours it has in a filter of 64 bits; a warp takes a longer one.

#ifndef SHORT
#define SHORT 32
#endif

// How many of indices[first:last], which ascend, are k.
DEVICE u32 search_row(const I* indices, i64 first, i64 last, i64 k) {
    const i64 at = first + lower_bound(indices + first, last - first, k);
    return at < last && (i64)indices[at] == k;
}

// How many k < j of row j are among indices[first:last], the entries of row i below j; the filter has
// the bit k & 63 of each of them.
DEVICE u32 common(const O* indptr, const I* indices, i64 first, i64 last, u64 filter, i64 j) {
    u32 found = 0;
    for (i64 q = indptr[j], stop = indptr[j + 1]; q < stop; q++) {
        const i64 k = indices[q];
        if (k >= j) break;
        if (filter >> (k & 63) & 1) found += search_row(indices, first, last, k);
    }
    return found;
}

extern "C" __global__ void __launch_bounds__(256)
    triangles(const O* indptr, const I* indices, i64 n, u64* total) {
    u64 found = 0;
    for (i64 base = thread_id() & ~31ll; base < n; base += thread_count()) {
        const i64 i = base + lane_id();
        const i64 first = i < n ? (i64)indptr[i] : 0, end = i < n ? (i64)indptr[i + 1] : 0;
        const bool long_row = end - first > SHORT;
        u64 filter = 0;
        // the least neighbour has none below it among the others
        if (!long_row)
            for (i64 p = first; p < end; p++) {
                const i64 j = indices[p];
                if (j >= i) break;
                if (p > first) found += common(indptr, indices, first, p, filter, j);
                filter |= 1ull << (j & 63);
            }
        for (u32 rest = warp_ballot(long_row); rest; rest &= rest - 1) {
            const int lane = __ffs(rest) - 1;
            const i64 row = base + lane, from = shuffle(first, lane), stop = shuffle(end, lane);
            const i64 last = from + lower_bound(indices + from, stop - from, row);
            for (i64 p = from + 1 + lane_id(); p < last; p += 32)
                found += common(indptr, indices, from, p, ~0ull, (i64)indices[p]);
            warp_sync();
        }
    }
    warp_add(total, found);
}

// total += the sum of the squares of the lengths of all rows.
extern "C" __global__ void __launch_bounds__(256)
    triangles_squares(const O* indptr, i64 n, double* total) {
    double sum = 0;
    for (i64 i = thread_id(); i < n; i += thread_count()) {
        const double length = (double)(indptr[i + 1] - indptr[i]);
        sum += length * length;
    }
    sum = warp_sum(sum);
    if (lane_id() == 0) atomicAdd(total, sum);
}
