// The exchange between the GPUs of a closure: a few words when they meet, and values before that.

// Warp 0 of block 0 exchanges WORDS_SENT words with each peer: the number of values sent there; the
// edges of the next queue, above 4 bits that count the GPUs whose queue is not empty; and either,
// in two halves, the best far value, or the number of near values sent and, above two flags counted
// in 4 bits each, the edges looked at.
DEVICE bool exchange_counts(bool about_buckets) {
    PeerControl* const c = s.given.control;
    const int lane = lane_id(), q = lane / WORDS_SENT, k = lane % WORDS_SENT;
    const u64 packed = load_relaxed(s.packed), looked = load_relaxed(&c->looked);
    const u64 best = (u64)to_bits(load_relaxed(s.best));
    u64 word = 0, got;
    if (k == 0 && q < PEERS) {
        word = load_relaxed(&c->sent[q]);
        if (word > (u64)s.given.capacity) word = (u64)s.given.capacity;
    }
    if (k == 1)
        word = queue_edges(packed, s.count_bits) << 4 | (queue_count(packed, s.count_bits) != 0);
    if (k == 2) word = about_buckets ? best & 0xffffffffu : load_relaxed(&c->near_sent);
    if (k == 3)
        word = about_buckets ? best >> 32
                             : (looked - load_relaxed(&c->published)) << 8 |
                                   (u64)(load_relaxed(&c->undercut) != 0) << 4 |
                                   (u64)(load_relaxed(&c->unsettled) != 0);
    warp_sync();
    if (!exchange(word, got)) return false;
    const u64 sum = sum_of_peers(got);
    Z least = identity();
    for (int p = 0; p < PEERS; p++) {
        const u64 low = shuffle(got, WORDS_SENT * p + 2), high = shuffle(got, WORDS_SENT * p + 3);
        least = add(least, from_bits<Z>((Bits<Z>)(high << 32 | low)));
    }
    if (k == 0 && q < PEERS) {
        store_relaxed(&c->received[q], q == peers.me ? 0 : got);
        store_relaxed(&c->sent[q], (u64)0);
    }
    if (lane == 0) store_relaxed(&c->deferred_then, load_relaxed(&c->deferred));
    if (lane == 1) store_relaxed(&c->queued, sum);
    if (about_buckets) {
        if (lane == 0) store_relaxed(&c->best_of_all, least);
    } else {
        if (lane == 0) {
            store_relaxed(&c->near_sent, (u64)0);
            store_relaxed(&c->published, looked);
        }
        if (lane == 2) store_relaxed(&c->near_of_all, sum);
        if (lane == 3) store_relaxed(&c->flags, sum);
    }
    return true;
}

// A barrier of all blocks of all GPUs, after which every block has the counts of all. PASSED;
// DETOUR where *detour is not zero; LOST: the caller returns.
CALLED int meet_peers(bool about_buckets, const u64* detour = nullptr) {
    add_counts();
    const int outcome = barrier_and([&] { return exchange_counts(about_buckets); }, detour);
    if (outcome == PASSED && threadIdx.x == 0) {
        PeerControl* const c = s.given.control;
        const u64 queued = load_relaxed(&c->queued), flags = load_relaxed(&c->flags);
        s.queued = queued >> 4;
        s.active = queued & 15;
        s.best_of_all = load_relaxed(&c->best_of_all);
        s.near = load_relaxed(&c->near_of_all);
        s.relaxations = flags >> 8;
        s.undercut = s.undercut || (flags >> 4 & 15);
        s.unsettled = flags & 15;
        s.all_received = 0;
        for (int q = 0; q < PEERS; q++)
            s.all_received += s.received[q] = load_relaxed(&c->received[q]);
        s.side ^= 1;
        s.exchanges++;
        s.marked = s.marked || load_relaxed(&c->deferred_then) == s.exchanges;
    }
    if (outcome == DETOUR && threadIdx.x == 0) s.all_received = 0;
    __syncthreads();
    return outcome;
}

// A barrier of the blocks of this GPU: PASSED or LOST.
CALLED int meet_own() {
    add_counts();
    const int outcome = barrier_local();
    if (threadIdx.x == 0) s.all_received = 0;
    __syncthreads();
    return outcome;
}

CALLED bool meet_and_turn() {
    if (meet_own() == LOST) return false;
    turn();
    return true;
}
__device__ __forceinline__ bool Exchange::meet_here() { return meet_and_turn(); }

__device__ __forceinline__ bool Exchange::meet_all(bool buckets) {
    if (meet_peers(buckets) == LOST) return false;
    turn();
    return true;
}

// Send the peers' vertices that have improved to their owners, who have them after the next
// barrier.
DEVICE void send_marked() {
    __syncthreads(); // all threads have read s.marked
    if (threadIdx.x == 0) s.marked = false;
    send();
}

// One step on the queue and on received values; whether it was a push.
DEVICE bool relax_all() {
    if (s.all_received && !(is_local() && (i64)s.all_received <= warps_of_grid() * (RING / 4))) {
        receive(); // the next step relaxes these vertices
        if (threadIdx.x == 0) s.all_received = 0;
        __syncthreads();
    }
    return relax_queue();
}

// Write the own values that are better than the threshold to all peers.
CALLED void publish_values() {
    for_each_own([](i64 v, const Z(&x)[AT_ONCE]) {
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            if (v + 32 * k >= s.last || !better(x[k], s.threshold)) continue;
#pragma unroll
            for (int q = 0; q < PEERS; q++)
                if (q != peers.me) in_memory_of<Z>(q, s.given.whole)[v + 32 * k] = x[k];
        }
    });
}
__device__ __forceinline__ void Exchange::publish() { publish_values(); }

__device__ __forceinline__ bool Exchange::gave_up() {
    return s.unsettled || is_unsettled(s.progress.rounds, s.given.border[PEERS]);
}

// Rounds until no GPU has a near vertex.
__device__ __forceinline__ bool Exchange::settle() {
    const i64 n = s.given.border[PEERS];
    // the sources have not been counted: then all GPUs take a round
    bool on = s.active || s.exchanges == 1, saturated = is_saturated(s.queued, PEERS);
    for (i64 steps = 0; on;) {
        if (saturated) BLOCK_SETS(consider_threshold(s, s.progress, (i64)s.queued, s);)
        bool passed = false, marked = s.marked, filled = saturated;
        if (saturated) {
            const i64 edges = s.edges;
            const bool pushed = s.vertices && relax_queue();
            marked = marked || pushed;
            if (pushed) count_step(edges);
            if (meet_own() == LOST) return false;
        }
        for (int alone = 1; !saturated && (s.vertices || s.all_received); alone++) {
            const i64 edges = s.edges;
            const bool pushed = relax_all();
            marked = marked || pushed;
            if (pushed) count_step(edges);
            if (thread_id() == 0 && is_unsettled(++steps, 2 * n)) s.given.control->unsettled = 1;
            // values that were sent at once need no second barrier
            const bool goes_on = alone < ALONE;
            const int outcome =
                marked ? meet_own() : meet_peers(false, goes_on ? s.packed : nullptr);
            if (outcome == LOST) return false;
            passed = !marked && outcome == PASSED;
            const u64 packed = load_relaxed(s.packed);
            const bool rests = passed ? goes_on : packed == 0;
            if (rests) steps = 0;
            // others may be idle
            filled =
                passed || rests || !goes_on || is_saturated(queue_edges(packed, s.count_bits), 1);
            if (filled) break;
            __syncthreads(); // all have looked at `packed`
            turn();
        }
        if (!passed) {
            if (marked) send_marked();
            if (meet_peers(false) == LOST) return false;
        }
        BLOCK_SETS(count_round(s.progress, (i64)s.relaxations);)
        if (gave_up()) break;
        on = s.active || s.near;
        saturated = on && is_saturated(s.queued + s.near * (u64)(s.m / n + 1), PEERS);
        if (saturated || !on) {
            const bool received = s.all_received != 0;
            if (received) receive();
            if (saturated ? meet_peers(false) == LOST : received && meet_own() == LOST)
                return false;
            if (saturated || received) turn();
        } else if (filled) {
            __syncthreads(); // all have looked at `packed`
            turn();
        }
    }
    return true;
}
