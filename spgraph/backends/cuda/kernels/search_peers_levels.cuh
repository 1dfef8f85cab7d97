// Levels of the whole grid: pull, push, and what turns one form of a frontier into another.

// Warps take these many neighbouring words of a part at a time.
DEVICE i64 words_at_a_time(i64 words) {
    const i64 warps = (i64)gridDim.x * WARPS, batch = (words + warps - 1) / warps;
    return batch < 32 ? batch : 32;
}

// The vertex of `rank` among the bits of the 32 words from `begin` on, one a lane, of which there
// are `upto` through this lane's. All lanes of a warp call; the lanes' ranks ascend.
struct Ranked {
    int word, bit;
    I vertex;
    __device__ __forceinline__ Ranked(u32 bits, int upto, i64 begin, int rank, bool active) {
        word = warp_search(upto - __popc(bits), active ? rank : 0);
        const int before = shuffle(upto - __popc(bits), word);
        bit = nth_bit(shuffle(bits, word), active ? rank - before : 0);
        vertex = (I)(32 * (begin + word) + bit);
    }
};

// Adds this thread's counts to what its GPU brings to the next meeting, with one atomic a block.
CALLED void bring(u64 vertices, u64 edges, u64 others) {
    if (threadIdx.x < WORDS_SENT) block_sum[threadIdx.x] = 0;
    __syncthreads();
    vertices = warp_sum(vertices);
    edges = warp_sum(edges);
    others = warp_sum(others);
    if (lane_id() == 0) {
        if (vertices) atomicAdd(&block_sum[0], vertices);
        if (edges) atomicAdd(&block_sum[1], edges);
        if (others) atomicAdd(&block_sum[2], others);
    }
    __syncthreads();
    if (threadIdx.x < WORDS_SENT && block_sum[threadIdx.x])
        atomicAdd(&s.meeting->mine[threadIdx.x], block_sum[threadIdx.x]);
}

// What is claimed in the own part, with level and parent, becomes known and the next frontier.
CALLED void announce() {
    u64 vertices = 0, edges = 0, covered = 0;
    for (i64 w = thread_id(); w < s.words; w += thread_count()) {
        const u32 bits = claimed_bits(w);
        tell(w, bits);
        if (!bits) continue;
        s.known[s.base + w] |= bits;
        vertices += __popc(bits);
        covered += __popc(s.nonempty ? bits & s.nonempty[w] : bits);
        for (u32 rest = bits; rest; rest &= rest - 1)
            edges += (u64)degree_of(32 * w + __ffs(rest) - 1);
    }
    bring(vertices, edges, covered);
}

// ---- pull --------------------------------------------------------------------------------------

// One lane: u is a neighbour in the frontier. True where nothing further can be better.
DEVICE bool take(I u, bool& found, L& least) {
    found = true;
#if PARENTS
    const L id = user_id(u);
    least = id < least ? id : least;
#endif
    return FIRST;
}

// One lane looks at up to PROBES in-edges from `e` on.
DEVICE bool scan_start(const Borders& borders, O& e, O end, bool& found, L& least, u32& probes) {
    bool stop = false;
    for (int k = 0; k < PROBES && !stop && e < end; k += EACH) {
        I u[EACH];
        bool here[EACH];
#pragma unroll
        for (int j = 0; j < EACH; j++) u[j] = j < end - e ? s.t_indices[e + j] : -1;
#pragma unroll
        for (int j = 0; j < EACH; j++)
            here[j] = u[j] >= 0 && test_bit(s.frontier, borders.position(u[j]));
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            probes += !stop && u[j] >= 0;
            if (!stop && here[j]) stop = take(u[j], found, least);
        }
        e += EACH < end - e ? EACH : end - e;
    }
    return stop;
}

// A whole warp looks on from edge `e` to `end`; true where nothing further can be better.
CALLED bool scan_row(i64 e, i64 end, bool& found, L& least, u32& probes) {
    const Borders borders;
    bool stop = false;
    for (; e < end && !stop; e += 64) {
        I u[2];
        bool here[2];
#pragma unroll
        for (int k = 0; k < 2; k++) {
            const i64 x = e + 32 * k + lane_id();
            here[k] = x < end;
            u[k] = here[k] ? s.t_indices[x] : 0;
        }
#pragma unroll
        for (int k = 0; k < 2; k++)
            here[k] = here[k] && test_bit(s.frontier, borders.position(u[k]));
#pragma unroll
        for (int k = 0; k < 2; k++) {
            const u32 who = __ballot_sync(FULL_WARP, here[k]);
            probes += !stop && e + 32 * k + lane_id() < end;
            if (stop || !who) continue;
            if (FIRST) { // the least of the row: the lowest lane
                if (lane_id() == __ffs(who) - 1) take(u[k], found, least);
                stop = true;
            } else if (here[k]) {
                take(u[k], found, least);
            }
        }
    }
    return stop;
}

// The least over the lanes.
DEVICE L warp_least(L least) {
#pragma unroll
    for (int distance = 16; distance; distance /= 2) {
        const L other = shuffle_xor(least, distance);
        least = other < least ? other : least;
    }
    return least;
}

// Look for the frontier among the in-edges of the open vertices.
CALLED void sweep(L depth) {
    const Borders borders;
    const int lane = lane_id();
    // the warps of a block take neighbouring words
    const i64 warps = (i64)gridDim.x * WARPS, me = (i64)blockIdx.x * WARPS + warp_id();
    const i64 batch = words_at_a_time(s.words);
    u64 edges = 0;
    u32 count = 0, probes = 0;
    u32* hit = work().hit[warp_id()];
    for (i64 begin = me * batch; begin < s.words; begin += warps * batch) {
        const i64 w = begin + lane;
        const bool mine = lane < batch && w < s.words;
        const u32 seen = mine ? s.known[s.base + w] : 0;
        const u32 open = mine ? s.nonempty[w] & ~seen : 0;
        const int upto = warp_scan(__popc(open)), total = shuffle(upto, 31);
        hit[lane] = 0;
        __syncwarp();
        for (int base = 0; base < total; base += 32) {
            const bool active = base + lane < total;
            const Ranked which(open, upto, begin, base + lane, active);
            const I v = which.vertex;
            O e = 0, end = 0;
            bool found = false, stop = false;
            L least = max_label();
            if (active) {
                e = s.t_indptr[v];
                end = s.t_indptr[v + 1];
            }
            if (FIRST && s.heads && active) {
                const Heads heads = s.heads[v];
                bool here[4];
#pragma unroll
                for (int k = 0; k < 4; k++)
                    here[k] =
                        heads.id[k] >= 0 && !(k && here[0]) && test_bit(s.frontier, heads.id[k]);
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    probes += !stop && heads.id[k] >= 0;
                    if (!stop && here[k]) stop = take(borders.vertex(heads.id[k]), found, least);
                }
                // for parents the heads are the row's own first entries; else any four
                if (end - e <= 4)
                    e = end;
                else if (PARENTS)
                    e += 4;
            }
            if (!stop) stop = scan_start(borders, e, end, found, least, probes);
            // rows that go on get the warp one after the other; what it does not finish, the grid
            for (u32 rest = __ballot_sync(FULL_WARP, !stop && e < end); rest; rest &= rest - 1) {
                const int from = __ffs(rest) - 1;
                const O row = shuffle(e, from), all = shuffle(end, from);
                const O to = all - row > LONG_ROW ? row + LONG_ROW : all;
                bool row_found = found && lane == from;
                L row_least = row_found ? least : max_label();
                const bool done = scan_row(row, to, row_found, row_least, probes);
                const u32 who = __ballot_sync(FULL_WARP, row_found);
                if (PARENTS && who) row_least = warp_least(row_least);
                if (lane != from) continue;
                found = who != 0;
                least = row_least;
                if (!done && to < all) {
                    const u64 k = atomicAdd(&s.control->long_rows, 1ull);
                    s.queue[k] = v; // the queue is free while a level pulls
                    s.offset[k] = to;
#if PARENTS
                    s.parent[v] = least; // what the grid finds is compared with it
#endif
                }
            }
            __syncwarp();
            if (found) {
                atomicOr(&hit[which.word], 1u << which.bit);
                s.level[v] = depth;
#if PARENTS
                s.parent[v] = least;
#endif
                edges += (u64)degree_of(v);
                count++;
            }
        }
        __syncwarp();
        if (mine) {
            const u32 bits = hit[lane];
            tell(w, bits);
            if (bits) s.known[s.base + w] = s.reached[s.base + w] = seen | bits;
        }
        __syncwarp();
    }
    bring(count, edges, probes);
}

// The rows that sweep left to the grid, after all blocks have met.
CALLED void pull_long_rows(i64 rows, L depth) {
    const i64 warps = (i64)gridDim.x * WARPS, me = (i64)blockIdx.x * WARPS + warp_id();
    u64 edges = 0;
    u32 count = 0, probes = 0;
    for (i64 r = 0; r < rows; r++) {
        const I v = s.queue[r];
        const i64 end = s.t_indptr[v + 1];
        u32* const word = s.next + s.base + (v >> 5);
        for (i64 e = (i64)s.offset[r] + 1024 * me; e < end; e += 1024 * warps) {
            if (!PARENTS && (load_relaxed(word) >> (v & 31)) & 1u) break;
            bool found = false;
            L least = max_label();
            scan_row(e, e + 1024 < end ? e + 1024 : end, found, least, probes);
            const bool any = __any_sync(FULL_WARP, found);
            if (found) {
#if PARENTS
                atomicMin(&s.parent[v], least);
#endif
                const u32 bit = 1u << (v & 31);
                if (!(atomicOr(word, bit) & bit)) {
                    atomicOr(&s.known[s.base + (v >> 5)], bit);
                    atomicOr(&s.reached[s.base + (v >> 5)], bit);
                    s.level[v] = depth;
                    edges += (u64)degree_of(v);
                    count++;
                }
            }
            if (any && FIRST) break; // what this warp would see later lies further back in the row
        }
    }
    bring(count, edges, probes);
}

// The words in which those rows lie, for the peers, after all blocks have met.
CALLED void tell_long_rows(i64 rows) {
    for (i64 r = thread_id(); r < rows; r += thread_count()) {
        const i64 w = s.base + (s.queue[r] >> 5);
        const u32 bits = load_relaxed(&s.next[w]);
#pragma unroll
        for (int q = 0; q < PEERS; q++)
            if (q != s.me) in_memory_of<u32>(q, s.frontiers[s.side ^ 1])[w] = bits;
    }
    if (thread_id() == 0) store_relaxed(&s.control->long_rows, (u64)0);
}

// ---- push --------------------------------------------------------------------------------------

// The own part of the frontier, of `all` vertices in all parts, becomes the queue with its scanned
// degrees. If it is `claimed` it becomes known, and the peers do not hear of it.
CALLED void convert(bool claimed, i64 all) {
    const int lane = lane_id();
    const i64 warps = (i64)gridDim.x * WARPS, me = (i64)blockIdx.x * WARPS + warp_id();
    const i64 batch = words_at_a_time(s.words);
    for (i64 begin = me * batch; begin < s.words; begin += warps * batch) {
        const i64 w = begin + lane;
        const bool mine = lane < batch && w < s.words;
        const u32 bits = !mine ? 0 : claimed ? claimed_bits(w) : s.frontier[s.base + w];
        if (claimed && bits) s.known[s.base + w] |= bits;
        const int upto = warp_scan(__popc(bits)), total = shuffle(upto, 31);
        if (!total) continue;
        u64 edges = 0;
        for (int base = 0; base < total; base += 32) {
            const bool active = base + lane < total;
            const Ranked which(bits, upto, begin, base + lane, active);
            if (active) edges += (u64)degree_of(which.vertex);
        }
        edges = warp_sum(edges);
        u64 place = 0;
        if (lane == 0) place = atomicAdd(&s.control->packed, (edges << s.count_bits) + (u64)total);
        place = shuffle(place, 0);
        const i64 slot = (i64)queue_count(place, (u32)s.count_bits);
        O edge = (O)queue_edges(place, (u32)s.count_bits);
        for (int base = 0; base < total; base += 32) {
            const bool active = base + lane < total;
            const Ranked which(bits, upto, begin, base + lane, active);
            const O degree = active ? degree_of(which.vertex) : 0, through = warp_scan(degree);
            if (active) {
                s.queue[slot + base + lane] = which.vertex;
                s.offset[slot + base + lane] = edge + through - degree;
            }
            edge += shuffle(through, 31);
        }
    }
    // nobody has to know of a large frontier
    if (PEERS == 1 || claimed || all < s.word[PEERS]) return;
    for (i64 w = thread_id(); w < s.word[PEERS]; w += thread_count()) {
        const u32 bits = w >= s.base && w < s.base + s.words ? 0 : s.frontier[w];
        if (bits) s.reached[w] = s.known[w] |= bits;
    }
}

#include "edge_shares.cuh"

struct Pusher {
    const Borders borders;
    Key key = 0; // of this lane's row as a parent
    __device__ __forceinline__ O load(i64 i, bool here) {
        const I u = here ? s.queue[i] : 0;
        if (PARENTS) key = here ? key_of(own_user_id(u)) : 0;
        return here ? s.indptr[u] - s.offset[i] : 0;
    }
    template <bool ONE>
    __device__ __forceinline__ void take(const int (&owner)[EACH], const O (&entry)[EACH],
                                         const bool (&open)[EACH]) {
        I p[EACH];
        u32 word[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++) p[k] = open[k] ? load_once(&s.indices[entry[k]]) : 0;
#if PARENTS
        Key parent[EACH], old[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            p[k] = borders.position(p[k]);
            word[k] = s.known[p[k] >> 5];
            parent[k] = shuffle(key, owner[k]);
        }
#pragma unroll
        for (int k = 0; k < EACH; k++)
            old[k] =
                open[k] && !((word[k] >> (p[k] & 31)) & 1u) ? load_lagging(&s.best[p[k]]) : ~(Key)0;
#pragma unroll
        for (int k = 0; k < EACH; k++)
            if (parent[k] > old[k] && !atomicMax(&s.best[p[k]], parent[k])) // the first
                atomicOr(&s.reached[p[k] >> 5], 1u << (p[k] & 31));
#else
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            p[k] = borders.position(p[k]);
            word[k] = load_lagging(&s.reached[p[k] >> 5]);
        }
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const u32 bit = 1u << (p[k] & 31);
            if (open[k] && !(word[k] & bit)) atomicOr(&s.reached[p[k] >> 5], bit);
        }
#endif
    }
};

// What the edges of the queue reach is claimed, with the best parent in this GPU's part.
CALLED void push_level(u64 packed) {
    const i64 nf = (i64)queue_count(packed, (u32)s.count_bits);
    const i64 mf = (i64)queue_edges(packed, (u32)s.count_bits);
    const i64 warps = (i64)gridDim.x * WARPS, me = (i64)warp_id() * gridDim.x + blockIdx.x;
    i64 share = (mf + warps - 1) / warps;
    share = (share + 31) / 32 * 32;
    const i64 begin = me * share, end = begin + share < mf ? begin + share : mf;
    if (begin >= end) return;
    i64 window = row_at(s.offset, nf, begin);
    Pusher pusher;
    walk<EACH>(s.offset, nf, mf, window, begin, end, work().lanes[warp_id()], pusher);
}

// What is claimed of the peers' parts goes there, with its parents.
CALLED void send_claims() {
    if (thread_id() == 0) s.control->packed = 0;
    const int lane = lane_id();
    const i64 warps = (i64)gridDim.x * WARPS, warp = (i64)blockIdx.x * WARPS + warp_id();
    for (int k = 1; k < PEERS; k++) {
        const int q = (int)(s.me + k) % PEERS; // not all to the same one
        const i64 first = s.word[q], words = s.word[q + 1] - first;
        const i64 batch = words_at_a_time(words);
        u32* const inbox = in_memory_of<u32>(q, s.inbox) + s.me * words;
        Key* const parents = in_memory_of<Key>(q, s.parents) + 32 * s.me * words;
        Key* const best = s.best + 32 * first;
        for (i64 begin = warp * batch; begin < words; begin += warps * batch) {
            const i64 w = begin + lane;
            const bool mine = lane < batch && w < words;
            const u32 known = mine ? s.known[first + w] : 0;
            const u32 bits = mine ? load_relaxed(&s.reached[first + w]) & ~known : 0;
            if (bits) {
                s.known[first + w] = known | bits;
                inbox[w] = bits;
            }
            if (!PARENTS) continue;
            const int upto = warp_scan(__popc(bits)), total = shuffle(upto, 31);
            for (int base = 0; base < total; base += 32) {
                const bool active = base + lane < total;
                const Ranked which(bits, upto, begin, base + lane, active);
                if (!active) continue;
                parents[which.vertex] = load_relaxed(&best[which.vertex]);
                best[which.vertex] = 0;
            }
        }
    }
}

// What edges of the frontier have reached of the own part, here and at the peers, and is new.
CALLED void settle(L depth) {
    const int lane = lane_id();
    const i64 warps = (i64)gridDim.x * WARPS, warp = (i64)blockIdx.x * WARPS + warp_id();
    const i64 batch = words_at_a_time(s.words);
    u32* const inbox = in_memory_of<u32>((int)s.me, s.inbox);
    const Key* const parents = in_memory_of<Key>((int)s.me, s.parents);
    Key* const best = s.best + 32 * s.base;
    u64 edges = 0;
    u32 count = 0;
    for (i64 begin = warp * batch; begin < s.words; begin += warps * batch) {
        const i64 w = begin + lane;
        const bool mine = lane < batch && w < s.words;
        const u32 seen = mine ? s.known[s.base + w] : 0;
        u32 part[PEERS], bits = 0;
#pragma unroll
        for (int q = 0; q < PEERS; q++) {
            const u32* const place = q == s.me ? s.reached + s.base + w : inbox + q * s.words + w;
            part[q] = mine ? load_relaxed(place) : 0;
        }
#pragma unroll
        for (int q = 0; q < PEERS; q++) {
            if (q != s.me && part[q]) inbox[q * s.words + w] = 0;
            part[q] &= ~seen;
            bits |= part[q];
        }
        if (mine) {
            tell(w, bits);
            if (bits) s.known[s.base + w] = s.reached[s.base + w] = seen | bits;
        }
        const int upto = warp_scan(__popc(bits)), total = shuffle(upto, 31);
        for (int base = 0; base < total; base += 32) {
            const bool active = base + lane < total;
            const Ranked which(bits, upto, begin, base + lane, active);
            const I v = which.vertex;
#if PARENTS
            Key key[PEERS];
#pragma unroll
            for (int q = 0; q < PEERS; q++) {
                const bool sent = (shuffle(part[q], which.word) >> which.bit) & 1u;
                const Key* const place = q == s.me ? best : parents + 32 * q * s.words;
                key[q] = active && sent ? load_relaxed(&place[v]) : 0;
            }
#pragma unroll
            for (int q = 1; q < PEERS; q++) key[0] = key[q] > key[0] ? key[q] : key[0];
#endif
            if (!active) continue;
            s.level[v] = depth;
#if PARENTS
            s.parent[v] = parent_of(key[0]);
            best[v] = 0;
#endif
            edges += (u64)degree_of(v);
            count++;
        }
    }
    bring(count, edges, 0);
}
