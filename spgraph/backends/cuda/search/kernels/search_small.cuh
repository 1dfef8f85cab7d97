// Small levels: block 0 alone, in its shared memory, while the others wait.

constexpr int LIGHT = 16; // edges that four lanes walk; a heavier vertex gets a warp for each PIECE
constexpr int PAIR = 2;   // edges a lane has in flight

// Put the found vertices, with their edges first to last, into a frontier in shared memory; what
// does not fit goes to the queue. A warp calls.
DEVICE void small_add(SmallFrontier& to, SmallCount& count, const bool (&found)[PAIR],
                      const I (&v)[PAIR], const O (&first)[PAIR], const O (&last)[PAIR]) {
    u32 who[PAIR], all = 0, edges = 0;
#pragma unroll
    for (int k = 0; k < PAIR; k++) {
        who[k] = warp_ballot(found[k]);
        all += __popc(who[k]);
        const O degree = last[k] - first[k];
        if (found[k]) edges += degree < SMALL_EDGES ? (u32)degree : SMALL_EDGES + 1u;
    }
    if (!all) return;
    edges = reduce_add(edges);
    u32 slot = 0;
    if (lane_id() == 0) {
        slot = atomicAdd(&count.vertices, all);
        atomicAdd(&count.edges, edges);
    }
    slot = shuffle(slot, 0);
#pragma unroll
    for (int k = 0; k < PAIR; k++) {
        const u32 place = slot + __popc(who[k] & lanes_below());
        slot += __popc(who[k]);
        if (!found[k]) continue;
        if (place < SMALL) {
            to.vertex[place] = v[k];
            to.start[place] = first[k];
            to.end[place] = last[k];
            const O degree = last[k] - first[k];
            // with a larger one there is no next small level
            if (degree > LIGHT && degree <= SMALL_EDGES) {
                const u32 pieces = ((u32)degree + PIECE - 1) / PIECE;
                const u32 at = atomicAdd(&count.pieces, pieces);
                for (u32 p = 0; p < pieces && at + p < PIECES; p++)
                    to.heavy[at + p] = place | p << 16;
            }
        } else {
            s.queue[place] = v[k];
        }
    }
}

// One level of block 0: four lanes walk the edges of a light vertex, a warp those of a piece of a
// heavy one. The chain of accesses that wait for each other, and the instructions between them, are
// the time of a level: the id of the neighbour, the atomic that claims it, its place in the next
// frontier.
DEVICE void small_level(const SmallFrontier& from, SmallFrontier& to, const SmallCount& size,
                        SmallCount& count, L depth) {
    constexpr u32 GROUP = 32 / 4 * PAIR; // light vertices of a warp
    const u32 light = (size.vertices + GROUP - 1) / GROUP, tasks = light + size.pieces;
#if VALUES // what the last level claimed is visited from now on
    for (u32 i = threadIdx.x; i < size.vertices; i += THREADS) {
        const I v = from.vertex[i];
        atomicOr(&s.visited[v >> 5], 1u << (v & 31));
        atomicAnd(&s.next[v >> 5], ~(1u << (v & 31)));
    }
    __syncthreads();
    u32* const claims = s.next;
#else
    u32* const claims = s.visited;
#endif
    const I* const indices = s.indices;
    const O* const indptr = s.indptr;
    for (u32 task = warp_id(); task < tasks; task += WARPS) {
        const bool heavy = task >= light;
        const u32 piece = heavy ? from.heavy[task - light] : 0;
        I u[PAIR];
        O e[PAIR], end[PAIR];
#pragma unroll
        for (int k = 0; k < PAIR; k++) {
            const u32 i = heavy ? piece & 0xffff : GROUP * task + 8 * k + lane_id() / 4;
            e[k] = end[k] = 0;
            if (i >= size.vertices) continue;
            u[k] = from.vertex[i];
            const O start = from.start[i], stop = from.end[i];
            if (heavy) {
                const O offset = (O)(piece >> 16) * PIECE;
                e[k] = start + offset + 32 * k + lane_id();
                end[k] = stop - start - offset > PIECE ? start + offset + PIECE : stop;
            } else if (stop - start <= LIGHT) {
                e[k] = start + (lane_id() & 3);
                end[k] = stop;
            }
        }
        const int stride = heavy ? 32 * PAIR : 4;
        while (warp_any(e[0] < end[0] || e[1] < end[1])) {
            I v[PAIR];
            bool found[PAIR];
            u32 word[PAIR];
            O first[PAIR], last[PAIR];
#pragma unroll
            for (int k = 0; k < PAIR; k++) {
                found[k] = e[k] < end[k];
                v[k] = found[k] ? indices[e[k]] : 0;
            }
#if VALUES
#pragma unroll
            for (int k = 0; k < PAIR; k++)
                word[k] = found[k] ? load_relaxed(&s.visited[v[k] >> 5]) : 0;
#pragma unroll
            for (int k = 0; k < PAIR; k++) {
                found[k] = found[k] && !((word[k] >> (v[k] & 31)) & 1u);
                if (ADD_KIND != ADD_ANY && found[k])
                    combine(&s.value[v[k]], product(s.values, u[k], v[k], e[k]));
            }
#endif
            // the row is wanted only of those that are found, but to wait for that costs more than
            // to load all
#pragma unroll
            for (int k = 0; k < PAIR; k++) {
                word[k] = found[k] ? atomicOr(&claims[v[k] >> 5], 1u << (v[k] & 31)) : ALL_BITS;
                first[k] = found[k] ? indptr[v[k]] : 0;
                last[k] = found[k] ? indptr[v[k] + 1] : 0;
            }
#pragma unroll
            for (int k = 0; k < PAIR; k++) {
                found[k] = !((word[k] >> (v[k] & 31)) & 1u);
                if (found[k]) {
                    s.level[v[k]] = depth;
#if VALUES
                    if (ADD_KIND == ADD_ANY)
                        store_relaxed(&s.value[v[k]], product(s.values, u[k], v[k], e[k]));
#endif
                }
                e[k] += stride;
            }
            small_add(to, count, found, v, first, last);
        }
    }
}

// Block 0 runs levels until the frontier outgrows it, and leaves the last one in `queue` and
// `offset`. The first is the queue, or the sources if there are any; `open_edges` counts its edges
// as open still.
CALLED void small_levels(const I* sources, const Z* source_values, i64 nf, i64 depth, i64 left,
                         i64 open_edges) {
    SmallFrontier* frontier = work().small;
    SmallCount* count = small_count;
    if (threadIdx.x < 9) reinterpret_cast<u32*>(count)[threadIdx.x] = 0;
    __syncthreads();
    for (i64 base = 32 * warp_id(); base < nf; base += THREADS) {
        const i64 i = base + lane_id();
        I v[PAIR] = {};
        O first[PAIR] = {}, last[PAIR] = {};
        const bool found[PAIR] = {i < nf};
        if (found[0]) {
            v[0] = sources ? sources[i] : s.queue[i];
            first[0] = s.indptr[v[0]];
            last[0] = s.indptr[v[0] + 1];
            if (sources) {
                atomicOr(&s.visited[v[0] >> 5], 1u << (v[0] & 31));
                s.level[v[0]] = 0;
#if VALUES
                s.value[v[0]] = source_values[i];
#endif
                if (can_be_found(v[0])) atomicAdd(&s.control->covered, 1ull);
            }
        }
        small_add(frontier[0], count[0], found, v, first, last);
    }
    __syncthreads();
    if (sources) left -= (i64)load_relaxed(&s.control->covered);
    int side = 0, turn = 0;
    while (count[turn].vertices && left > 0 && depth < s.max_depth &&
           count[turn].vertices <= SMALL && count[turn].edges <= SMALL_EDGES) {
        const int next = turn == 2 ? 0 : turn + 1, after = next == 2 ? 0 : next + 1;
        // now: warp 0 clears this count in the next level, while slower warps may still be in this
        const u32 vertices = count[turn].vertices, edges = count[turn].edges;
        open_edges -= edges; // exact: the level fitted
        small_level(frontier[side], frontier[side ^ 1], count[turn], count[next], (L)(depth + 1));
        if (threadIdx.x < 3) (&count[after].vertices)[threadIdx.x] = 0;
        __syncthreads();
        if (threadIdx.x == 0) {
            if (TRACE) record(depth, PUSH, vertices, edges);
            store_relaxed(&s.control->barrier.heartbeat, (u64)depth);
        }
        left -= count[next].vertices;
        depth++;
        side ^= 1;
        turn = next;
    }
    // the queue with its scanned degrees
    const u32 vertices = count[turn].vertices;
    u32 slot, total = 0;
    O place, edges = 0;
    for (u32 base = 0; base < vertices; base += THREADS) {
        const u32 i = base + threadIdx.x;
        const I v = i < vertices ? (i < SMALL ? frontier[side].vertex[i] : s.queue[i]) : 0;
        const O degree = i < vertices ? s.indptr[v + 1] - s.indptr[v] : 0;
        block_scan(i < vertices, degree, slot, place, total, edges);
        if (i < vertices) {
            s.queue[i] = v;
            s.offset[i] = place;
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        i64* state = s.control->state;
        state[0] = vertices;
        state[1] = (i64)edges;
        state[2] = depth;
        state[3] = left;
        state[4] = open_edges - (i64)edges;
    }
}
