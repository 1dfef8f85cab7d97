// Rows that gather: the sum over the entries of a row that meet an entry of u. Preamble: types O I
// A U Z R (row ids), the semiring, ISO, FLIP, MASKED, FULL.
//
// Rows are binned by length once per matrix (row_bins.py), and every warp has about the same to do:
// a piece of a split row, a wide row, four narrow rows (8 lanes each) or 32 single ones (a lane
// each). A warp reads 32 neighbouring entries at a time, not four a lane: the columns of a long row
// lie close together, so the gathers of neighbouring lanes share cache lines, and it is the number
// of those that bounds the kernel.

constexpr int PIECE = 1024, NARROW = 32, SINGLE = 4;

struct Sum {
    Z value;
    bool hit;
};

DEVICE void take(Sum& sum, Z value) {
    if constexpr (ADD_KIND == ADD_ANY) {
        if (!sum.hit) sum.value = value;
    } else {
        sum.value = add(sum.value, value);
    }
    sum.hit = true;
}

// The sum over each aligned group of `width` lanes, in its first lane at least. All 32 lanes call.
DEVICE Sum merge(Sum sum, int width) {
    u32 group = lane_group(width);
    u32 hits = warp_ballot(sum.hit) & group;
    if constexpr (ADD_KIND == ADD_ANY)
        sum.value = shuffle(sum.value, hits ? __ffs(hits) - 1 : 0);
    else
        sum.value = warp_combine(sum.value, width);
    sum.hit = hits != 0;
    return sum;
}

DEVICE Z product(i64 i, i64 k, A x, U y) {
    if constexpr (FLIP)
        return multiply(y, x, 0, k, k, i);
    else
        return multiply(x, y, i, k, k, 0);
}

// What passes by once must not drive the values of u out of the cache.
template <bool ONCE, class T>
DEVICE T load(const T* p) {
    if constexpr (ONCE)
        return load_once(p);
    else
        return *p;
}

// Add to `sum` the entries from `start` to `stop` of row i that this lane meets: those at base +
// offset, + STRIDE, ... ; BATCH of them are in flight at a time. With STOPS the whole warp walks
// one row, and ends where some lane knows the sum.
template <int BATCH, int STRIDE, bool ONCE, bool STOPS>
DEVICE void walk(Sum& sum, i64 i, i64 base, int offset, i64 start, i64 stop, const I* indices,
                 const A* a, const u32* u_bits, const U* u) {
    for (; base < stop; base += BATCH * STRIDE) {
        I k[BATCH];
        A x[BATCH];
        U y[BATCH];
        bool meets[BATCH];
#pragma unroll
        for (int j = 0; j < BATCH; j++) {
            i64 p = base + offset + j * STRIDE;
            meets[j] = p >= start && p < stop;
            k[j] = meets[j] ? load<ONCE>(indices + p) : (I)0;
        }
        if constexpr (!FULL) {
#pragma unroll
            for (int j = 0; j < BATCH; j++) meets[j] = meets[j] && test_bit(u_bits, k[j]);
        }
#pragma unroll
        for (int j = 0; j < BATCH; j++) {
            x[j] = ISO ? a[0] : meets[j] ? load<ONCE>(a + base + offset + j * STRIDE) : (A)0;
            y[j] = meets[j] ? u[k[j]] : (U)0;
        }
#pragma unroll
        for (int j = 0; j < BATCH; j++)
            if (meets[j]) take(sum, product(i, k[j], x[j], y[j]));
        if constexpr (STOPS)
            if (warp_any(sum.hit && is_terminal(sum.value))) break;
    }
}

DEVICE bool allowed(const u32* mask, u32 invert, i64 i) {
    return !MASKED || ((mask[i >> 5] ^ invert) >> (i & 31)) & 1;
}

// The rows of a matrix that have entries, bin by bin: `split` rows of more than PIECE entries, then
// wide, narrow and single ones. Piece p belongs to rows[piece_row[p]], whose first piece is
// piece_first[piece_row[p]].
struct RowBins {
    const R* rows;
    i64 split, pieces, wide, narrow, single;
    const int* piece_row;
    const i64* piece_first;
};

// One of the tasks, by a whole warp: a piece or a wide row, then four narrow rows, then 32 single ones.
// store(sum, i) for every row i of it that is not split (and for others, without a hit); the sum of
// piece p goes to partial[p], hits[p]. settled[s]: nothing more changes the sum of rows[s].
template <class Store>
DEVICE void gather(i64 task, const RowBins& c, const O* indptr, const I* indices, const A* a,
                   const u32* u_bits, const U* u, const u32* mask, u32 invert, u32* settled,
                   bool* hits, Z* partial, Store store) {
    const int lane = lane_id();
    const R* rows = c.rows;
    Sum sum = {identity(), false};
    if (task < c.pieces + c.wide) {
        const bool piece = task < c.pieces;
        const int s = piece ? c.piece_row[task] : 0;
        const i64 i = rows[piece ? s : c.split + task - c.pieces];
        bool wanted = allowed(mask, invert, i);
        // one lane looks: others might see what another warp writes meanwhile, and the warp has to
        // stay together
        if (ENDS && piece)
            wanted = wanted && !shuffle(lane == 0 ? load_lagging(settled + s) : 0u, 0);
        if (wanted) {
            i64 start = indptr[i], stop = indptr[i + 1];
            if (piece) {
                start += (task - c.piece_first[s]) * PIECE;
                if (stop > start + PIECE) stop = start + PIECE;
            }
            walk<ENDS ? 2 : 4, 32, true, ENDS>(sum, i, start & ~31ll, lane, start, stop, indices, a,
                                               u_bits, u);
        }
        sum = merge(sum, 32);
        if (lane != 0) return;
        if (piece) {
            hits[task] = sum.hit;
            partial[task] = sum.value;
            if (ENDS && sum.hit && is_terminal(sum.value)) store_relaxed(settled + s, 1u);
        } else {
            store(sum, i);
        }
        return;
    }
    task -= c.pieces + c.wide;
    rows += c.split + c.wide;
    if (task < (c.narrow + 3) / 4) {
        i64 q = task * 4 + lane / 8, i = q < c.narrow ? rows[q] : 0;
        bool wanted = q < c.narrow && allowed(mask, invert, i);
        i64 start = wanted ? indptr[i] : 0, stop = wanted ? indptr[i + 1] : 0;
        walk<NARROW / 8, 8, false, false>(sum, i, start, lane % 8, start, stop, indices, a, u_bits,
                                          u);
        sum = merge(sum, 8);
        if (lane % 8 == 0) store(sum, i);
        return;
    }
    task -= (c.narrow + 3) / 4;
    rows += c.narrow;
    i64 q = task * 32 + lane;
    if (q >= c.single) return;
    i64 i = rows[q];
    if (!allowed(mask, invert, i)) return;
    i64 start = indptr[i];
    walk<SINGLE, 1, false, false>(sum, i, start, 0, start, indptr[i + 1], indices, a, u_bits, u);
    store(sum, i);
}
