// Small levels of peers: thread block 0 of each GPU alone, in its shared memory.

#include "block_scan.cuh"
#include "search_small_steps.cuh"

__shared__ SmallCount small_count[3];
__shared__ u32 small_sent[PEERS], small_come[PEERS], small_covered, small_lost;
__shared__ u64 small_sum[WORDS_SENT];

constexpr int BIG = 40; // from this bit on, the third word that is exchanged counts the GPUs whose
                        // level does not fit; below lies how many vertices the next one may have

// Claim an own vertex for the level of `to`, with a product; true for the first that does.
DEVICE bool small_claim(I v, Z product, L depth) {
    u32* const word = &s.visited_next[s.base + (v >> 5)];
    const u32 bit = 1u << (v & 31);
#if PARENTS // the sum tells who is first: nothing waits for the claim
    if (atomicMin(&s.partial[32 * s.base + v], product) != nothing()) return false;
    atomicOr(word, bit);
#elif VALUES
    Z* const sum = &s.partial[32 * s.base + v];
    if (ADD_KIND != ADD_ANY) combine(sum, product);
    if (atomicOr(word, bit) & bit) return false;
    if (ADD_KIND == ADD_ANY) store_relaxed(sum, product);
#else
    if (atomicOr(word, bit) & bit) return false;
#endif
    s.level[v] = depth;
    return true;
}

// The sums of own vertices that small levels have claimed are their values. `first` of the threads
// and those after it call.
DEVICE void small_values(const SmallFrontier& list, const SmallCount& size, u32 first) {
    for (u32 i = threadIdx.x - first; i < size.vertices; i += THREADS - first) {
        const I v = small_vertex(list, i);
        Z* const partial = &s.partial[32 * s.base + v];
        s.value[v] = load_relaxed(partial);
        *partial = nothing();
    }
}

// What the edges of `from` reach joins `to` or is sent. `parity` is that of the barrier that follows.
DEVICE void small_level(const SmallFrontier& from, SmallFrontier& to, const SmallCount& size,
                        SmallCount& count, L depth, int parity) {
    const Borders borders;
    Message* const box = s.messages + (i64)(parity * PEERS + s.me) * SMALL_EDGES;
    small_walk(from, size,
               [&](const I(&u)[PAIR], I(&v)[PAIR], const O(&e)[PAIR], bool (&found)[PAIR]) {
                   I place[PAIR];
                   u32 word[PAIR];
                   O first[PAIR], last[PAIR];
                   Z product[PAIR];
#pragma unroll
                   for (int k = 0; k < PAIR; k++)
                       product[k] = VALUES && found[k] ? out_product(u[k], v[k], e[k]) : Z();
#pragma unroll
                   for (int k = 0; k < PAIR; k++) {
                       place[k] = borders.position(v[k]);
                       word[k] = found[k] ? load_relaxed(&s.visited[place[k] >> 5]) : ALL_BITS;
                       const int q = borders.owner(v[k]);
                       v[k] -= (I)s.first[q];
                       first[k] = last[k] = 0;
                       found[k] = !((word[k] >> (place[k] & 31)) & 1u);
                       if (q == s.me) {
                           // wanted only of those that are found, but to wait for that costs more
                           first[k] = s.indptr[v[k]];
                           last[k] = s.indptr[v[k] + 1];
                       } else if (found[k]) {
                           found[k] = false;
                           // once for each edge: the level may be done again in another form, so that what is
                           // sent does not become visited yet
                           const u32 slot = atomicAdd(&small_sent[q], 1u);
                           at_peer(q, box)[slot] = {(L)v[k], product[k]};
                       }
                   }
#pragma unroll
                   for (int k = 0; k < PAIR; k++)
                       if (found[k]) found[k] = small_claim(v[k], product[k], depth);
                   small_add(to, count, found, u, v, first, last);
               });
}

// What the peers have sent joins the next level.
DEVICE void small_receive(SmallFrontier& to, SmallCount& count, L depth, int parity) {
    for (int q = 0; q < PEERS; q++) {
        const Message* const box = s.messages + (i64)(parity * PEERS + q) * SMALL_EDGES;
        const u32 come = q == s.me ? 0 : small_come[q];
        small_fill(to, count, come, [&](i64 i, I& v, O& first, O& last) {
            v = (I)load_relaxed(&box[i].vertex);
            const Z product = load_relaxed(&box[i].product);
            const u32 word = load_relaxed(&s.visited[s.base + (v >> 5)]);
            first = s.indptr[v];
            last = s.indptr[v + 1];
            return !((word >> (v & 31)) & 1u) && small_claim(v, product, depth);
        });
    }
}

// Warp 0 of the block, after a __syncthreads: the sizes of this level and what has been sent go to
// the peers; their sums to small_sum, what they have sent to small_come.
DEVICE void small_exchange(const SmallCount& size, const SmallCount& next, bool big, bool sources) {
    const int lane = lane_id(), q = lane / WORDS_SENT, k = lane % WORDS_SENT;
    const u32 sent = warp_sum(lane < PEERS ? small_sent[lane] : 0u);
    u64 word = 0, got;
    if (k == 0) word = sources ? small_covered : size.vertices;
    if (k == 1) word = size.edges;
    if (k == 2) word = (u64)big << BIG | (next.vertices + sent);
    if (k == 3) word = q < PEERS ? small_sent[q] : 0;
    warp_sync();
    const bool met = exchange(word, got);
    if (k == 3 && q < PEERS) {
        small_come[q] = (u32)got;
        small_sent[q] = 0;
    }
    const u64 sum = sum_of_peers(got);
    if (lane < WORDS_SENT) small_sum[lane] = sum;
    if (lane == 0) small_lost = !met;
    warp_sync();
}

// Block 0 runs levels until they outgrow one of the GPUs, and leaves the last frontier as the
// queue, or claimed. The first frontier is this GPU's sources if `from_sources`, or the queue,
// which is counted already.
CALLED void small_levels(bool from_sources, i64 all_sources, i64 depth, i64 left, i64 open,
                         i64 max_depth, int direction) {
    SmallFrontier* frontier = work().small;
    SmallCount* count = small_count;
    const i64 nf =
        from_sources ? s.number : (i64)queue_count(load_relaxed(&s.control->packed), s.count_bits);
    __syncthreads();
    if (threadIdx.x < 3) count[threadIdx.x] = SmallCount{};
    if (threadIdx.x < PEERS) small_sent[threadIdx.x] = 0;
    if (threadIdx.x == 0) {
        small_covered = small_lost = 0;
        s.control->packed = 0;
    }
    __syncthreads();
    small_fill(frontier[0], count[0], nf, [&](i64 i, I& v, O& first, O& last) {
        v = from_sources ? source_at(i) : s.queue[i];
        first = s.indptr[v];
        last = s.indptr[v + 1];
        if (from_sources) {
            s.level[v] = 0;
            atomicOr(&s.visited_next[s.base + (v >> 5)], 1u << (v & 31));
#if VALUES
            s.value[v] = value_at(i);
#endif
            if (can_be_found(v)) atomicAdd(&small_covered, 1u);
        }
        return true;
    });
    __syncthreads();
    bool counted = !from_sources, handed = false, fresh = from_sources, queued = false;
    bool found = false; // the frontier, by a small level
    int side = 0, turn = 0;
    for (;;) {
        const int next = turn == 2 ? 0 : turn + 1, after = next == 2 ? 0 : next + 1;
        const SmallCount& size = count[turn];
        const bool big = size.vertices > SMALL || size.edges > SMALL_EDGES;
        const bool last = depth >= max_depth;
        // what products look at; other values wait for an exchange
        if (USES_X && found) small_values(frontier[side], size, 0);
        // what the last level claimed is visited from now on, unless it is left to the grid
        for (u32 i = threadIdx.x; (last || !big) && i < size.vertices; i += THREADS) {
            const I v = small_vertex(frontier[side], i);
            atomicOr(&s.visited[s.base + (v >> 5)], 1u << (v & 31));
        }
        if (last) {
            if (VALUES && !USES_X && found) small_values(frontier[side], size, 0);
            break;
        }
        const int parity = (int)((load_relaxed(&s.barrier->round) + 1) & 1);
        __syncthreads();
        if (!big)
            small_level(frontier[side], frontier[side ^ 1], size, count[next], (L)(depth + 1),
                        parity);
        __syncthreads();
        if (threadIdx.x < 32)
            small_exchange(size, count[next], big, fresh);
        else if (VALUES && !USES_X && found)
            small_values(frontier[side], size, 32);
        __syncthreads();
        if (small_lost) break;
        const i64 covered = (i64)small_sum[0], edges = (i64)small_sum[1];
        const i64 may_follow = (i64)(small_sum[2] & ((1ull << BIG) - 1));
        const i64 vertices = fresh ? all_sources : covered;
        handed = small_sum[2] >> BIG;
        if (!counted) {
            left -= covered;
            open -= edges;
        }
        counted = fresh = false;
        if (handed) { // this level is left to the grid, and what was found is not
            for (u32 i = threadIdx.x; i < count[next].vertices; i += THREADS) {
                const I v = small_vertex(frontier[side ^ 1], i);
                atomicAnd(&s.visited_next[s.base + (v >> 5)], ~(1u << (v & 31)));
                if (VALUES) s.partial[32 * s.base + v] = nothing();
            }
            queued = !pull_pays(direction, true, edges, left, open) && size.vertices <= SMALL;
            for (u32 i = threadIdx.x; queued == big && i < size.vertices; i += THREADS) {
                const I v = small_vertex(frontier[side], i);
                u32* const word = &s.visited[s.base + (v >> 5)];
                const u32 bit = 1u << (v & 31);
                if (big)
                    atomicOr(word, bit);
                else
                    atomicAnd(word, ~bit);
            }
            if (queued) small_queue(frontier[side], size.vertices);
            if (threadIdx.x == 0) {
                if (queued) s.control->packed = (size.edges << s.count_bits) + size.vertices;
                s.control->vertices = vertices;
                s.control->edges = edges;
            }
            break;
        }
        if (vertices) {
            if (threadIdx.x == 0) record(depth, PUSH, vertices, edges);
            depth++;
        }
        if (!may_follow || left <= 0) break;
        if (threadIdx.x == 0) store_relaxed(&s.barrier->heartbeat, (u64)depth);
        small_receive(frontier[side ^ 1], count[next], (L)depth, parity);
        if (threadIdx.x == 0) count[after] = SmallCount{};
        __syncthreads();
        side ^= 1;
        turn = next;
        found = true;
    }
    if (threadIdx.x == 0) {
        Control* const control = s.control;
        control->depth = depth;
        control->left = left;
        control->open = open;
        control->done = small_lost ? LOST : !handed;
        control->queued = queued;
    }
    __syncthreads();
}
