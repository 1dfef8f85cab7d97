// The sends and receives of a closure on peers: those of a local step need no step of their own.

// Received values join the own ones; vertices that improve and are near join the next queue.
CALLED void receive() {
    int held = 0;
    for (int q = 0; q < PEERS; q++) held = receive_from(Received(q), (i64)s.received[q], held);
    release_rest(held, NextQueue());
}

// Send the improved value of v to the peer that owns it. That may happen several times between two
// barriers, each time with a better value.
__device__ __forceinline__ void Exchange::send_at_once(bool wanted, I v, Z value) {
    if (PEERS == 1 || !warp_any(wanted)) return;
    const GivenShard& given = s.given;
    const int lane = lane_id();
    int owner = 0;
#pragma unroll
    for (int q = 1; q < PEERS; q++) owner += v >= (I)given.border[q];
    u32 mine = 0; // in lane q: the lanes that send to shard q
#pragma unroll
    for (int q = 0; q < PEERS; q++) {
        const u32 who = warp_ballot(wanted && owner == q);
        if (lane == q) mine = who;
    }
    u64 slot = 0;
    if (mine) slot = atomicAdd(&s.given.control->sent[lane], (u64)__popc(mine));
    slot = shuffle(slot, owner) + __popc(shuffle(mine, owner) & lanes_below());
    const bool fits = (i64)slot < s.given.capacity;
    // a value that does not fit makes another barrier necessary
    const bool near_sent = wanted && (!fits || is_followed(value, s.limit));
    const u32 all = __popc(warp_ballot(near_sent));
    if (lane == 0 && all) atomicAdd(&s.near_sent, (u64)all);
    if (wanted && fits) {
        Outbox(owner, (i64)slot).put(0, v, value);
    } else if (wanted) {
        mark_changed(v);
        Outbox::defer();
    }
}

// A warp's share of the received values joins the own ones, and vertices that improve and are near
// join the ring, which has space for them: see relax_all.
__device__ __forceinline__ int Exchange::receive_local(Ring& ring, u32& tail, int held) {
    const i64 received = (i64)s.all_received;
    if (!received) return held;
    const i64 me = warp_of_grid(), share = local_share(received);
    if (me * share >= received) return held;
    i64 i = me * share + lane_id();
    bool found = lane_id() < share && i < received;
    I v = 0;
    Z z = identity();
    O first = 0, last = 0;
    if (found) {
        int q = 0;
        for (; i >= (i64)s.received[q]; q++) i -= (i64)s.received[q];
        Received(q).load(i, v, z);
        first = s.indptr[v];
        last = s.indptr[v + 1];
        found = join(v, load_relaxed(&s.x[v]), z);
    }
    found = found && first < last;
    const bool light = found && last - first <= HEAVY;
    const u32 who = warp_ballot(light);
    if (light) {
        ring.put(tail + __popc(who & lanes_below()), v, z, first, last);
        note_undercut(z);
    }
    tail += __popc(who);
    warp_sync();
    return claim_own(held, found && !light, v);
}
