// Entry by entry through a matrix, whatever the lengths of its rows: the row of an entry, a
// column's place in a row, and the numbers of the entries that a result keeps.

// tiles[t], made by `rows` in rows.cu, is the row of entry t * TILE; one more is the last entry's
constexpr int TILE_BITS = 8;

// A warp looks at BATCH times 32 neighbouring entries, so that their loads overlap; they lie in one
// tile.
constexpr int BATCH = 4, STEP = 32 * BATCH;

// The row of entry e, which is none before `low` and none after `high`: the last that begins at e
// or before it.
template <class T>
DEVICE i64 row_between(const T* indptr, i64 low, i64 high, i64 e) {
    while (low < high) {
        i64 middle = (low + high + 1) >> 1;
        if ((i64)indptr[middle] <= e)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}
template <class T>
DEVICE i64 row_of(const T* indptr, const i64* tiles, i64 e) {
    return row_between(indptr, tiles[e >> TILE_BITS], tiles[(e >> TILE_BITS) + 1], e);
}

// The first of the entries `low` to `high` of a row whose column is not below j, `high` if there is
// none. `likely` is tried first: matrices often have the same pattern.
template <class T>
DEVICE i64 place_of(const T* ids, i64 low, i64 high, i64 j, i64 likely) {
    if (low <= likely && likely < high) {
        i64 id = ids[likely];
        if (id == j) return likely;
        if (id < j)
            low = likely + 1;
        else
            high = likely;
    }
    // a row has no more entries than there are columns
    const T* first = ids + low;
    Bits<T> from = 0, to = (Bits<T>)(high - low);
    while (from < to) {
        Bits<T> middle = from + (to - from) / 2;
        i64 id = first[middle];
        if (id == j) return low + (i64)middle;
        if (id < j)
            from = middle + 1;
        else
            to = middle;
    }
    return low + (i64)from;
}

// Entries are kept where their bit is set; before[w] of them lie before word w. The words are
// counted here, the running sum is taken between the launches: a bit and a quarter of a byte an
// entry. All lanes of a warp call.
DEVICE void put_word(bool kept, i64 word, u32* bits, i64* before) {
    const u32 found = warp_ballot(kept);
    if (lane_id() != 0) return;
    bits[word] = found;
    before[word + 1] = __popc(found);
    if (word == 0) before[0] = 0;
}
// The same of each of `count` entries, kept where stays(loaded, e, row) is true of entry e and its row.
// What load(e) gives for all that a lane looks at is on its way before the first is waited for.
template <class T, class Load, class Stays>
DEVICE void keep_entries(const T* indptr, const i64* tiles, i64 count, u32* bits, i64* before,
                         Load load, Stays stays) {
    for (i64 base = (thread_id() >> 5) * STEP; base < count; base += (thread_count() >> 5) * STEP) {
        decltype(load(base)) loaded[BATCH];
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            const i64 e = base + 32 * b + lane_id();
            if (e < count) loaded[b] = load(e);
        }
        i64 row = tiles[base >> TILE_BITS];
        const i64 last = tiles[(base >> TILE_BITS) + 1];
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            if (base + 32 * b >= count) break;
            const i64 e = base + 32 * b + lane_id();
            if (e < count) row = row_between(indptr, row, last, e);
            put_word(e < count && stays(loaded[b], e, row), e >> 5, bits, before);
        }
    }
}
// How many of the entries before p are kept; p may be the number of entries.
DEVICE i64 rank_of(const u32* bits, const i64* before, i64 p) {
    const u32 below = (1u << (p & 31)) - 1;
    return before[p >> 5] + (below ? __popc(bits[p >> 5] & below) : 0);
}
