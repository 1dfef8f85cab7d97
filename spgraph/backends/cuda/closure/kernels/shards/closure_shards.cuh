// What the exchanges of a closure over shards have in common: the vertices of other shards that
// have improved are marked, sent to their owners, and received. An exchange has, beside what
// closure_none.cuh lists, `struct Outbox`, where a warp writes values for the owner of vertices:
//   Outbox(q, slot)   a place for values for shard q, of which `free` fit
//   put(i, v, value)  write value number i
//   defer()           the marked vertices whose values did not fit are sent in the next exchange
// and TOGETHER, the values that a lane sends or receives side by side. In rounds one: four are a
// tenth more code, of a program that is larger than the instruction cache already.

constexpr int TOGETHER = Exchange::TOGETHER;

// Add the counts of this block to those of its GPU.
DEVICE void add_counts() {
    __syncthreads();
    if (threadIdx.x) return;
    if (s.looked) atomicAdd(&s.given.control->looked, s.looked);
    if (s.near_sent) atomicAdd(&s.given.control->near_sent, s.near_sent);
    s.looked = s.near_sent = 0;
}

// Whether the queues of so many GPUs have so many edges that a GPU takes one step at a time: others
// may have nothing to do, and its further steps would be done again when better values arrive.
DEVICE bool is_saturated(u64 edges, int gpus) { return edges > (u64)SATURATED_EDGES * gpus; }

// Thread 0 sets the shared state from s.given; the queues have swapped `swaps` times.
DEVICE void take_given(Z* x, Control* control, u32 swaps) {
    const GivenShard& g = s.given;
    take_arrays(g, x, g.border[g.me], g.border[g.me + 1], g.border[PEERS], control, swaps);
    s.looked = s.near_sent = 0;
}

// Nothing is reached, nothing is marked. All blocks call.
DEVICE void clear_shard() {
    const GivenShard& g = s.given;
    const i64 n = g.border[PEERS], words = (n + 31) / 32;
    clear(n, s.x, g.bits, g.claims);
    for (i64 w = thread_id(); w < words; w += thread_count()) g.changed[w] = 0;
    for (i64 w = thread_id(); w < (words + 31) / 32; w += thread_count()) g.groups[w] = 0;
}

// ---- send ---------------------------------------------------------------------------------------

// Send the vertices that are marked in the 32 words of group g; bits of `filled` say which words
// are not zero. How many values this lane has sent, or could not send, that are near or the
// identity. A warp calls.
DEVICE u32 send_group(i64 g, u32 filled) {
    const Given& given = s.given;
    const int lane = lane_id();
    const i64 w = 32 * g + lane;
    const bool mine = filled >> lane & 1;
    const u32 bits = mine ? load_relaxed(&given.changed[w]) : 0;
    u32 near_sent = 0, left = 0;
    for (int q = 0; q < PEERS; q++) {
        const i64 begin = given.border[q], end = given.border[q + 1];
        if (q == given.me || begin >= 1024 * (g + 1) || end <= 1024 * g) continue;
        u32 part = bits & valid_bits(w, end);
        if (32 * w < begin) part &= begin - 32 * w < 32 ? ALL_BITS << (begin - 32 * w) : 0;
        const int many = __popc(part), upto = warp_scan(many), all = shuffle(upto, 31);
        if (!all) continue;
        u64 slot = 0;
        if (lane == 0) slot = atomicAdd(&given.control->sent[q], (u64)all);
        const Outbox box(q, (i64)shuffle(slot, 0));
        const int sent = box.free < 0 ? 0 : all < box.free ? all : (int)box.free;
        for (int base = lane; base < 32 * ((sent + 31) / 32); base += 32 * TOGETHER) {
            I v[TOGETHER];
            Z z[TOGETHER];
#pragma unroll
            for (int k = 0; k < TOGETHER; k++) {
                const int rank = base + 32 * k;
                const RankedBit at(part, upto, rank, rank < sent);
                v[k] = (I)at.position(32 * g);
            }
#pragma unroll
            for (int k = 0; k < TOGETHER; k++)
                z[k] = base + 32 * k < sent ? load_relaxed(&s.x[v[k]]) : identity();
#pragma unroll
            for (int k = 0; k < TOGETHER; k++) {
                if (base + 32 * k >= sent) continue;
                box.put(base + 32 * k, v[k], z[k]);
                near_sent += is_followed(z[k], s.limit);
            }
        }
        warp_sync();
        if (sent < all) { // the inbox is full: the rest is sent in the next exchange
            u32 rest = part;
            for (int k = upto - many; k < sent && rest; k++) rest &= rest - 1;
            left |= rest;
            near_sent += __popc(rest);
            Outbox::defer();
        }
    }
    if (mine) store_relaxed(&given.changed[w], left);
    const u32 still = warp_ballot(left != 0);
    if (lane == 0) store_relaxed(&given.groups[g], still);
    return near_sent;
}

// Send all vertices that are marked to their owners.
CALLED void send() {
    if (PEERS == 1) return;
    const i64 groups = (s.given.border[PEERS] + 1023) / 1024;
    const i64 warps = (i64)gridDim.x * WARPS, me = (i64)blockIdx.x * WARPS + warp_id();
    const i64 share = (groups + warps - 1) / warps, batch = share < 32 ? share : 32;
    u32 near_sent = 0;
    for (i64 begin = me * batch; begin < groups; begin += warps * batch) {
        const bool mine = lane_id() < batch && begin + lane_id() < groups;
        const u32 filled = mine ? load_relaxed(&s.given.groups[begin + lane_id()]) : 0;
        for (u32 rest = warp_ballot(filled != 0); rest; rest &= rest - 1) {
            const int which = __ffs(rest) - 1;
            near_sent += send_group(begin + which, shuffle(filled, which));
        }
    }
    warp_add(&s.near_sent, near_sent);
}

// ---- receive ------------------------------------------------------------------------------------

// `number` received values join the own ones; vertices that improve and are near join the next
// queue. from.load(i, v, z) reads value number i. How many vertices the warp buffers then.
template <class Received>
DEVICE int receive_from(const Received& from, i64 number, int held) {
    for (i64 base = (thread_id() >> 5) * 32 * TOGETHER; base < number;
         base += thread_count() * TOGETHER) {
        I v[TOGETHER];
        Z z[TOGETHER], old[TOGETHER];
        bool wanted[TOGETHER];
#pragma unroll
        for (int k = 0; k < TOGETHER; k++) {
            const i64 i = base + 32 * k + lane_id();
            wanted[k] = i < number;
            v[k] = 0;
            z[k] = identity();
            if (wanted[k]) from.load(i, v[k], z[k]);
        }
#pragma unroll
        for (int k = 0; k < TOGETHER; k++)
            old[k] = wanted[k] ? load_relaxed(&s.x[v[k]]) : identity();
#pragma unroll
        for (int k = 0; k < TOGETHER; k++) {
            if (wanted[k]) wanted[k] = join(v[k], old[k], z[k]);
            held = claim_own(held, wanted[k], v[k]);
        }
    }
    return held;
}
