// Load-balanced search: warps take equal shares of edges, wherever rows begin and end (Davidson et
// al. 2014).

// Walks the edges from `begin` to `end` of `count` rows of which row i has the edges from offset[i]
// on; offset[count] is not read, `total` stands for it. `window` is a row at or before the one that
// `begin` lies in; it is moved to where the walk ends. `lanes` are 32 words of the warp that calls.
// `worker` has
//   fetch(i, here)  row i, if it is `here`, is the lane's of the next 32: what load() waits for may
//                  be loaded ahead
//   load(i, from, first, here)  looks up what the lane has to know about row i, if it is `here`,
//                  whose edges begin at number `first` and which lane `from` has fetched; returns what
//                  to add to an edge's number to find its entry
//   take<ONE>(owner, entry, open)  takes 32 * EACH edges: for each of this lane's, the lane whose
//                  row it belongs to, its entry, and whether it is one at all; if ONE they are all
//                  open and of one owner. Without TWICE there is only take<false>, once in the text
//                  instead of twice
template <int EACH, bool TWICE = true, class Worker>
DEVICE void walk(const O* offset, i64 count, i64 total, i64& window, i64 begin, i64 end, u32* lanes,
                 Worker& worker) {
    constexpr O MANY = 32 * EACH;
    const int lane = lane_id();
    const u32 upto = (2u << lane) - 1u;
    for (O edge = (O)begin; edge < (O)end; window += 32) {
        const O next = window + 32 < count ? offset[window + 32] : (O)total;
        const O stop = next < (O)end ? next : (O)end;
        O first = window + lane < count ? offset[window + lane] : (O)total;
        worker.fetch(window + lane, window + lane < count);
        // the rows that have edges, in the first lanes: no two of them start at the same edge
        const O after = shuffle(first, (lane + 1) & 31);
        const bool filled = first < (lane < 31 ? after : next);
        const u32 who = warp_ballot(filled);
        if (filled) lanes[__popc(who & (upto >> 1))] = lane;
        warp_sync();
        const bool here = lane < __popc(who);
        const int mine = here ? (int)lanes[lane] : 0;
        first = shuffle(first, mine);
        if (!here) first = next;
        const O shift = worker.load(window + mine, mine, first, here);
        while (edge < stop) {
            int owner[EACH];
            O entry[EACH];
            bool open[EACH];
            const O left = stop - edge;
            // a row of many edges owns all of these: then there is nothing to search
            const int row = __popc(warp_ballot(first <= edge)) - 1;
            const O row_end = shuffle(first, (row + 1) & 31);
            if (left >= MANY && (row < 31 ? row_end : next) - edge >= MANY) {
                const O start = shuffle(shift, row) + edge + lane;
#pragma unroll
                for (int k = 0; k < EACH; k++) {
                    owner[k] = row;
                    entry[k] = start + 32 * k;
                    if (TWICE) open[k] = true;
                }
                if (TWICE) worker.template take<true>(owner, entry, open);
            } else {
                // the owner is the last row that starts at or before an edge: count the starts
                int before = __popc(warp_ballot(first < edge)) - 1;
                const O distance = first - edge;
                const u32 start = 1u << ((u32)distance & 31);
#pragma unroll
                for (int k = 0; k < EACH; k++) {
                    const u32 starts = reduce_or(distance >> 5 == k ? start : 0u);
                    owner[k] = before + __popc(starts & upto);
                    before += __popc(starts);
                    if (TWICE) open[k] = 32 * k + lane < left;
                    entry[k] = shuffle(shift, owner[k]) + edge + 32 * k + lane;
                }
                if (TWICE) worker.template take<false>(owner, entry, open);
            }
            if (!TWICE) {
#pragma unroll
                for (int k = 0; k < EACH; k++) open[k] = 32 * k + lane < left;
                worker.template take<false>(owner, entry, open);
            }
            edge = left > MANY ? edge + MANY : stop;
        }
        if (next > (O)end) return;
        warp_sync();
    }
}

// How many of `edges` each of `warps` takes: equal shares of whole 32s.
DEVICE i64 share_of(i64 edges, i64 warps) { return ((edges + warps - 1) / warps + 31) / 32 * 32; }

// The last of `count` > 0 rows whose edges start at or before `edge`. A warp calls.
template <class T>
DEVICE i64 row_at(const T* offset, i64 count, i64 edge) {
    i64 low = 0, high = count;
    while (high - low > 1) { // 32 looks at a time
        const i64 step = (high - low + 31) >> 5, i = low + lane_id() * step;
        const int many = __popc(warp_ballot(i < high && (i64)offset[i] <= edge));
        low += (many - 1) * step;
        high = low + step < high ? low + step : high;
    }
    return low;
}

// Walks the equal share of warp `me`, of `warps`, of the edges from `first` to `total` of `count`
// rows.
template <int EACH, bool TWICE = true, class Worker>
DEVICE void walk_share(const O* offset, i64 count, i64 first, i64 total, i64 me, i64 warps,
                       u32* lanes, Worker& worker) {
    const i64 share = share_of(total - first, warps);
    const i64 begin = first + me * share, end = begin + share < total ? begin + share : total;
    if (begin >= end) return;
    i64 window = row_at(offset, count, begin);
    walk<EACH, TWICE>(offset, count, total, window, begin, end, lanes, worker);
}
