// A step over a small queue: every warp relaxes some of its vertices, and then those that these
// improve, by itself.

// A warp's own queue, the ring, is first in first out. When the vertex of an entry improves
// further, the new value is a new entry; the old entry has another value than the vertex, and is
// skipped.
CALLED void follow(i64 vertices) {
    Ring& ring = warp_work().ring;
    const int lane = lane_id(), sub = lane % ROW_LANES;
    const i64 me = warp_of_grid(), share = local_share(vertices);
    const I* const indices = global(s.indices);
    const O* const indptr = global(s.indptr);
    const A* const values = global(s.values);
    Z* const all_x = global(s.x);
    const Z threshold = s.threshold;
    u32 head = 0, tail = 0;
    int held = 0;
    u32 tried = 0;
    unclaim(vertices);
    if (me * share < vertices) {
        const i64 left = vertices - me * share;
        tail = (u32)(share < left ? share : left);
        for (u32 i = lane; i < tail; i += 32) {
            const I v = s.queue[me * share + i];
            const Z x = load_relaxed(&all_x[v]);
            ring.put(i, v, x, indptr[v], indptr[v + 1]);
            note_undercut(x);
        }
        warp_sync();
    }
    held = Exchange::receive_local(ring, tail, held);
    for (int step = 0; step < STEPS && head != tail; step++) {
        const u32 i = head + lane / ROW_LANES;
        const bool active = i < tail;
        const u32 at = i % RING;
        const I u = active ? ring.vertex[at] : 0;
        const Z x = active ? ring.value[at] : identity();
        O e = active ? ring.first[at] + sub : 0;
        const O last = active ? ring.last[at] : 0;
        head = tail - head < 32 / ROW_LANES ? tail : head + 32 / ROW_LANES;
        warp_sync();
        const Z now = active ? load_relaxed(&all_x[u]) : identity();
        while (warp_any(e < last)) {
            const bool open = e < last;
            I v = 0;
            O first = 0, end = 0;
            Z z = identity();
            bool found = false;
            if (open) {
                v = indices[e];
                z = product(x, values, e, u, v);
                // needed only where v improves, but waiting for that costs more than loading
                if (Exchange::is_own(v)) {
                    first = indptr[v];
                    end = indptr[v + 1];
                }
                tried++;
                found = same(x, now) && is_followed_from(x, z, threshold) && join_unseen(v, z);
            }
            const bool abroad = found && !Exchange::is_own(v);
            found = found && first < end;
            const bool light = found && end - first <= HEAVY;
            const u32 who = warp_ballot(light), free = RING - (tail - head);
            const u32 rank = __popc(who & lanes_below()), all = __popc(who);
            const bool kept = light && rank < free;
            if (kept) {
                ring.put(tail + rank, v, z, first, end);
                note_undercut(z);
            }
            tail += all < free ? all : free;
            Exchange::send_at_once(abroad, v, z);
            held = claim(held, found && !kept, v);
            e += ROW_LANES;
        }
        warp_sync();
    }
    Exchange::count_edges(tried);
    for (; head != tail; head = tail - head < 32 ? tail : head + 32) {
        const u32 i = head + lane;
        const bool here = i < tail;
        const I v = here ? ring.vertex[i % RING] : 0;
        held = claim_own(held, here && same(load_relaxed(&all_x[v]), ring.value[i % RING]), v);
    }
    release_rest(held, NextQueue());
}
