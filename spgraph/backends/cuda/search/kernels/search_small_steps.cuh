// The steps of small levels, whether one GPU runs them or peers do: thread block 0 alone, in its
// shared memory. A frontier is filled, its edges are walked, and the last one becomes the queue.

constexpr int PAIR = 2; // edges a lane has in flight

// Put the vertices v, found from u, with their edges first to last, into a frontier in shared
// memory; what does not fit goes to the queue. A warp calls.
DEVICE void small_add(SmallFrontier& to, SmallCount& count, const bool (&found)[PAIR],
                      const I (&u)[PAIR], const I (&v)[PAIR], const O (&first)[PAIR],
                      const O (&last)[PAIR]) {
    constexpr bool exact = sizeof(SmallEdges) == 8; // also of a level that does not fit
    u32 who[PAIR], all = 0;
    SmallEdges edges = 0;
#pragma unroll
    for (int k = 0; k < PAIR; k++) {
        who[k] = warp_ballot(found[k]);
        all += __popc(who[k]);
        const O degree = last[k] - first[k];
        if (found[k])
            edges += exact || degree < SMALL_EDGES ? (SmallEdges)degree : SMALL_EDGES + 1u;
    }
    if (!all) return;
    if constexpr (exact)
        edges = warp_sum(edges);
    else
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
#if KEEPS_PARENTS
            to.parent[place] = u[k];
#endif
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

DEVICE I small_vertex(const SmallFrontier& list, u32 i) {
    return i < SMALL ? list.vertex[i] : s.queue[i];
}

// Of `number` candidates those join a frontier for which take(i, v, first, last) is true: it gives
// number i, and its edges. All threads of the block call.
template <class Take>
DEVICE void small_fill(SmallFrontier& to, SmallCount& count, i64 number, Take take) {
    for (i64 base = 32 * warp_id(); base < number; base += THREADS) {
        const i64 i = base + lane_id();
        I v[PAIR] = {};
        O first[PAIR] = {}, last[PAIR] = {};
        const bool found[PAIR] = {i < number && take(i, v[0], first[0], last[0])};
        small_add(to, count, found, v, v, first, last);
    }
}

// Walks the edges of a frontier: four lanes those of a light vertex, a warp those of a piece of a
// heavy one. look(u, v, e, open) takes PAIR edges of each lane: the number e[k] of u[k] -> v[k], if
// it is one. The chain of accesses that wait for each other, and the instructions between them, are
// the time of a level: the id of the neighbour, the atomic that claims it, its place in the next
// frontier.
template <class Look>
DEVICE void small_walk(const SmallFrontier& from, const SmallCount& size, Look look) {
    constexpr u32 GROUP = 32 / 4 * PAIR; // light vertices of a warp
    const u32 light = (size.vertices + GROUP - 1) / GROUP, tasks = light + size.pieces;
    const I* const indices = s.indices;
    for (u32 task = warp_id(); task < tasks; task += WARPS) {
        const bool heavy = task >= light;
        const u32 piece = heavy ? from.heavy[task - light] : 0;
        I u[PAIR];
#if KEEPS_PARENTS
        I parent[PAIR];
#endif
        O e[PAIR], end[PAIR];
#pragma unroll
        for (int k = 0; k < PAIR; k++) {
            const u32 i = heavy ? piece & 0xffff : GROUP * task + 8 * k + lane_id() / 4;
            e[k] = end[k] = 0;
            if (i >= size.vertices) continue;
            u[k] = from.vertex[i];
#if KEEPS_PARENTS
            parent[k] = from.parent[i];
#endif
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
            bool open[PAIR];
#pragma unroll
            for (int k = 0; k < PAIR; k++) {
                open[k] = e[k] < end[k];
                v[k] = open[k] ? indices[e[k]] : 0;
#if KEEPS_PARENTS
                open[k] = open[k] && v[k] != parent[k];
#endif
            }
            look(u, v, e, open);
#pragma unroll
            for (int k = 0; k < PAIR; k++) e[k] += stride;
        }
    }
}

// A frontier becomes the queue, with its scanned degrees; how many edges it has. All threads of the
// block call.
DEVICE O small_queue(const SmallFrontier& list, u32 vertices) {
    O all_edges = 0;
    for (u32 base = 0; base < vertices; base += THREADS) {
        const u32 i = base + threadIdx.x;
        const I v = i < vertices ? small_vertex(list, i) : 0;
        const O degree = i < vertices ? degree_of(v) : 0;
        u32 slot, total;
        O place, edges;
        block_scan(i < vertices, degree, slot, place, total, edges);
        if (i < vertices) {
            s.queue[i] = v;
            s.offset[i] = all_edges + place;
        }
        all_edges += edges;
        __syncthreads();
    }
    return all_edges;
}
