// What the steps of a closure share. The file that includes this has
//   is_own(v)      whether this device relaxes the edges of v: then v may be queued
//   tell_owner(v)  v, which is not its own, has improved

DEVICE bool is_near(Z value) { return !ORDERED || better(value, s.limit); }
DEVICE bool is_followed(Z value, Z cut) {
    return !ORDERED || better(value, cut) || same(value, identity());
}

// A product that is no better than nothing still reaches its vertex: true for the first such one.
DEVICE bool reach(I v, Z value) { return same(value, identity()) && set_bit(s.bits, v); }

DEVICE Z product(Z x, const A* values, i64 entry, i64 u, i64 v) {
    return multiply(x, load_once(values + (entry & (i64)s.every)), (i64)0, u, u, v);
}

// Vertex v is to know of its new value now: when a far one of its own is due, its value says so.
DEVICE bool is_wanted(I v, Z value) { return !is_own(v) || is_near(value); }

// Vertex v has improved and is wanted: it joins the next queue, unless it is in it.
DEVICE int claim(int held, bool wanted, I v) {
    const bool own = is_own(v);
    if (wanted && !own) tell_owner(v);
    return enqueue(held, wanted && own && set_bit(s.claims, v), v);
}

template <class T>
DEVICE void swap(T*& x, T*& y) {
    T* z = x;
    x = y;
    y = z;
}

DEVICE void aim(u32 step) {
    s.step = step;
    s.packed = &s.control->packed[step % 3];
    s.best = &s.control->best[step % 3];
    s.heavy = &s.control->heavy[step % 3];
    if (blockIdx.x == 0) { // two steps ahead: no one looks at those any more, no one at them yet
        store_relaxed(&s.control->packed[(step + 1) % 3], (u64)0);
        store_relaxed(&s.control->best[(step + 1) % 3], identity());
        store_relaxed(&s.control->heavy[(step + 1) % 3], 0u);
    }
}

CALLED void record(i64 kind, i64 vertices, i64 edges) {
    const u64 now = globaltimer();
    const i64 at = s.control->steps++;
    if (at < s.trace_rows) {
        i64* row = s.trace + 4 * at;
        row[0] = kind;
        row[1] = vertices;
        row[2] = edges;
        row[3] = (i64)(now - s.since);
    }
    s.since = now;
}

// All blocks have met after a step: the queues exchange their roles.
DEVICE void turn(bool exchange_claims) {
    if (threadIdx.x == 0) {
        const u64 packed = load_relaxed(s.packed);
        s.far = load_relaxed(s.best);
        s.heavy_queue = load_relaxed(s.heavy) != 0;
        s.vertices = (i64)queue_count(packed, s.count_bits);
        s.edges = (i64)queue_edges(packed, s.count_bits);
        swap(s.queue, s.next_queue);
        swap(s.offset, s.next_offset);
        if (exchange_claims) swap(s.claims, s.claimed);
        aim(s.step + 1);
    }
    __syncthreads();
}

// The queue's vertices are no longer claimed.
DEVICE void unclaim(i64 vertices) {
    for (i64 i = thread_id(); i < vertices; i += thread_count()) s.claimed[s.queue[i] >> 5] = 0;
}

// A value is followed to its neighbours.
DEVICE void watch(Z x) {
    if (ORDERED && s.cutting && better(x, s.floor)) store_relaxed(&s.control->undercut, 1u);
}

// Where a lane puts its product behind the `tries` that the warp holds; -1 if it has none.
DEVICE int line_up(bool wanted, int& tries) {
    const u32 who = __ballot_sync(FULL_WARP, wanted);
    const int place = wanted ? tries + __popc(who & lanes_below()) : -1;
    tries += __popc(who);
    return place;
}

// The edges of the whole grid's warps: [begin, end) is this one's part.
DEVICE void part(i64 edges, i64& begin, i64& end) {
    const i64 warps = (i64)gridDim.x * WARPS, me = (i64)warp_id() * gridDim.x + blockIdx.x;
    const i64 share = ((edges + warps - 1) / warps + 31) / 32 * 32;
    begin = me * share < edges ? me * share : edges;
    end = begin + share < edges ? begin + share : edges;
}
