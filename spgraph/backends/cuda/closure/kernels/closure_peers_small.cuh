// What a small step of a closure sends and takes in by itself, without a step of its own for that.

DEVICE bool is_heeded(Z value) { return is_near(value) || same(value, identity()); }

// What is marked and does not go now goes in the next exchange.
DEVICE void keep() { store_relaxed(&s.given.control->kept, s.exchanges + 1); }

template <class T>
DEVICE T* inbox(int of, i64 offset, int side, int sender) {
    return in_memory_of<T>(of, offset) + ((i64)side * PEERS + sender) * s.given.capacity;
}

// Vertex v of a peer has improved to `value`. It may go to its owner several times before they meet:
// every time a better one.
DEVICE void send_at_once(bool wanted, I v, Z value) {
    if (PEERS == 1 || !__any_sync(FULL_WARP, wanted)) return;
    const Given& given = s.given;
    const int lane = lane_id();
    int owner = 0;
#pragma unroll
    for (int q = 1; q < PEERS; q++) owner += v >= (I)given.border[q];
    u32 mine = 0; // lane q's: who sends to block q
#pragma unroll
    for (int q = 0; q < PEERS; q++) {
        const u32 who = __ballot_sync(FULL_WARP, wanted && owner == q);
        if (lane == q) mine = who;
    }
    u64 slot = 0;
    if (mine) slot = atomicAdd(&given.control->sent[lane], (u64)__popc(mine));
    slot = shuffle(slot, owner) + __popc(shuffle(mine, owner) & lanes_below());
    const bool fits = (i64)slot < given.capacity;
    // what does not fit is to bring about another meeting
    const bool heeded = wanted && (!fits || is_heeded(value));
    const u32 all = __popc(__ballot_sync(FULL_WARP, heeded));
    if (lane == 0 && all) atomicAdd(&s.heeded, (u64)all);
    if (wanted && fits) {
        inbox<I>(owner, given.inbox_ids, s.side, peers.me)[slot] = v;
        inbox<Z>(owner, given.inbox_values, s.side, peers.me)[slot] = value;
    } else if (wanted) {
        tell_owner(v);
        keep();
    }
}

// A warp's share of what has come joins the own values, and the ring what improves and is near. There
// is room: see relax_all.
DEVICE int take_in(Ring& ring, u32& tail, int held) {
    const i64 come = (i64)s.all_come;
    if (!come) return held;
    const i64 warps = (i64)gridDim.x * WARPS, me = (i64)warp_id() * gridDim.x + blockIdx.x;
    i64 share = (come + warps - 1) / warps;
    if (share < LOCAL_SHARE) share = LOCAL_SHARE;
    if (me * share >= come) return held;
    i64 i = me * share + lane_id();
    bool found = lane_id() < share && i < come;
    I v = 0;
    Z z = identity();
    O first = 0, last = 0;
    if (found) {
        int q = 0;
        for (; i >= (i64)s.come[q]; q++) i -= (i64)s.come[q];
        v = load_relaxed(inbox<I>(peers.me, s.given.inbox_ids, s.side ^ 1, q) + i);
        z = load_relaxed(inbox<Z>(peers.me, s.given.inbox_values, s.side ^ 1, q) + i);
        first = s.indptr[v];
        last = s.indptr[v + 1];
        found =
            changes(load_relaxed(&s.x[v]), z) ? improve(&s.x[v], z, z) && is_near(z) : reach(v, z);
    }
    found = found && first < last;
    const bool light = found && last - first <= HEAVY;
    const u32 who = __ballot_sync(FULL_WARP, light);
    if (light) {
        const u32 place = (tail + __popc(who & lanes_below())) % RING;
        ring.vertex[place] = v;
        ring.value[place] = z;
        ring.first[place] = first;
        ring.last[place] = last;
        watch(z);
    }
    tail += __popc(who);
    __syncwarp();
    return claim(held, found && !light, v);
}
