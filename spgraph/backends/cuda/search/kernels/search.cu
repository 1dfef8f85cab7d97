// The masked level iteration  q<!visited> = q (+.x) A  until q is empty: one cooperative launch for
// a whole search.
//
// A vertex is settled in one level, by all edges that reach it from the frontier of that level:
// `visited` is frozen while a level runs, and what the level finds is claimed in the bitmap `next`.
// (Without values there is nothing to combine, and a vertex is visited when it is found.) Every
// level takes one of three forms:
//   push   warps take equal shares of the frontier's edges; found vertices are buffered in shared
//          memory, and 128 of them get their queue slots and edge offsets from one 64-bit atomic
//          add, so that the next level's scanned degrees are there when it starts (Merrill,
//          Garland, Grimshaw 2015; Davidson et al. 2014);
//   pull   warps take words of the bitmap, line up the vertices that are still open, and look for
//          the frontier among their in-edges (Beamer, Asanovic, Patterson 2012), stopping where the
//          monoid cannot change any more;
//   small  block 0 alone runs level after level in shared memory while the others wait: a road
//          network has thousands of levels too small for a grid barrier each.
//
// The preamble is that of search_common.cuh, and TRACE.
//
// A search runs most of its code once or twice, so instructions that miss their cache cost more
// than those that run: the state lies in shared memory, where functions that are not inlined find
// it, and loops are unrolled only to overlap loads.

#include "search_state.cuh"
#include "search_queue.cuh"
#include "search_push.cuh"
#include "search_pull.cuh"
#include "search_small.cuh"

// The least id among those that find a vertex decides. Then a level of many edges is pushed in parts,
// in the order of ids, the first of them small: what an earlier part has found is visited, and the
// edges to it are done with a look at a bit instead of a value.
#if VALUES
constexpr bool LEAST_FIRST = FIRST && ADD_KIND == ADD_MIN;
#else
constexpr bool LEAST_FIRST = false;
#endif

// Where the frontier lies: in the bitmap `frontier`, in `queue`, or there and in the bitmap `next`.
enum Held { BITMAP = 0, QUEUE = 1, CLAIMED = 2 };

// All edges of the queue, or, if `part` is not zero, those that `convert` has added for it.
CALLED void push_level(i64 vertices, i64 edges, L depth, int part, int turn) {
    const Queue to = {&s.control->totals[turn].packed, s.next_queue, s.next_offset, depth};
    Pusher pusher(Found(to), false);
    i64 first = 0;
    if (LEAST_FIRST && part) {
        const u64 all = load_relaxed(&s.control->converted);
        vertices = (i64)queue_count(all, s.count_bits);
        edges = (i64)queue_edges(all, s.count_bits);
        first = s.pushed;
    }
    push_edges(vertices, first, edges, work().push.lanes[warp_id()], pusher);
    release_rest(pusher.found.held, pusher.found.to);
    if (LEAST_FIRST && threadIdx.x == 0) s.pushed = part > 1 ? edges : 0;
}

// ---- what happens once -------------------------------------------------------------------------

// The sources enter the queue as level 0.
CALLED void start(const I* sources, const Z* source_values, i64 number) {
    const Queue to = {&s.control->totals[0].packed, s.queue, s.offset, 0};
    int held = 0;
    u32 covered = 0;
    for (i64 base = thread_id() - lane_id(); base < number; base += thread_count()) {
        const i64 i = base + lane_id();
        const bool ok = i < number;
        const I v = ok ? sources[i] : 0;
        if (ok) {
            atomicOr(&s.visited[v >> 5], 1u << (v & 31));
#if VALUES
            s.value[v] = source_values[i];
#endif
            covered += can_be_found(v);
        }
        held = enqueue(held, ok, v, to);
    }
    release_rest(held, to);
    if (covered) atomicAdd(&s.control->covered, (u64)covered);
}

// The queue becomes visited, and the bitmap `next` what the coming level needs: the frontier to
// pull from, or all clear. `claimed`: `next` has the frontier already.
CALLED void settle(i64 nf, bool pull, bool claimed) {
    if (VALUES && claimed && nf > s.words) { // there are fewer words than vertices
        for (i64 w = thread_id(); w < s.words; w += thread_count()) {
            s.visited[w] |= s.next[w];
            if (!pull) s.next[w] = 0;
        }
        return;
    }
    for (i64 i = thread_id(); i < nf; i += thread_count()) {
        const I v = s.queue[i];
        const u32 bit = 1u << (v & 31);
        if (VALUES) atomicOr(&s.visited[v >> 5], bit);
        if (pull)
            atomicOr(&s.next[v >> 5], bit);
        else
            s.next[v >> 5] = 0;
    }
}

// The bitmap `frontier` becomes the queue, and the other bitmap the empty `next`; or, of PARTS parts,
// of which number 1 is the last and has half of all ids, one is added to the queue, and what those
// before have found becomes visited.
CALLED void convert(L depth, int part) {
    const i64 begin = part && part < PARTS ? s.words >> part : 0;
    const i64 end = part ? s.words >> (part - 1) : s.words;
    const Queue to = {&s.control->converted, s.queue, s.offset, depth};
    int held = 0;
    for (i64 base = thread_id() - lane_id(); base < s.words; base += thread_count()) {
        const i64 w = base + lane_id();
        u32 bits = 0;
        if (w < s.words) {
            if (w >= begin && w < end) bits = s.frontier[w];
            if (begin)
                s.visited[w] |= s.next[w];
            else
                s.next[w] = 0;
        }
        for (u32 who = warp_ballot(bits); who; who &= who - 1) {
            const int k = __ffs(who) - 1;
            const bool found = (shuffle(bits, k) >> lane_id()) & 1u;
            held = enqueue(held, found, (I)(32 * (base + k) + lane_id()), to);
        }
    }
    release_rest(held, to);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    search(i64 n, i64 m, const O* indptr, const I* indices, const A* values, const O* t_indptr,
           const I* t_indices, const A* t_values, const Leading* leading, const u32* nonempty,
           i64 findable, const I* sources, const Z* source_values, i64 number_of_sources, L* level,
           Z* value, u32* value_bits, u32* visited, u32* bitmaps, I* queues, O* offsets,
           Control* control, u32 count_bits, int direction, i64 max_depth, i64* trace) {
    const i64 words = (n + 31) / 32;
    const Rows rows = {count_bits, m,         indptr,   indices, values,
                       t_indptr,   t_indices, t_values, leading, nonempty};
    if (threadIdx.x == 0)
        s = {rows,        m,       words,           max_depth,    level,   value,
             visited,     bitmaps, bitmaps + words, queues,       offsets, queues + n,
             offsets + n, control, trace,           globaltimer()};
    __syncthreads();

    const i64 thread = thread_id(), threads = thread_count();
#pragma unroll 1
    for (i64 w = thread; w < words; w += threads) {
        visited[w] = 0;
        bitmaps[w] = 0;
        bitmaps[words + w] = 0;
    }
#if VALUES
    if constexpr (ADD_KIND != ADD_ANY)
#pragma unroll 1
        for (i64 v = thread; v < n; v += threads) value[v] = identity();
#endif
    if (barrier_failed()) return;

    // a few sources start block 0 alone
    bool small = number_of_sources <= ENTER && direction != PULL;
    i64 depth = 0, nf = number_of_sources, mf = 0, left = findable, open_edges = m;
    if (!small) {
        start(sources, source_values, number_of_sources);
        if (barrier_failed()) return;
        mf = (i64)queue_edges(load_relaxed(&control->totals[0].packed), count_bits);
        left -= (i64)load_relaxed(&control->covered);
        open_edges -= mf;
    }
    int turn = 0; // of the totals: the last level's
    Held held = QUEUE;
    while (small || (nf > 0 && mf > 0 && left > 0 && depth < max_depth)) {
        if (small) {
            if (blockIdx.x == 0)
                small_levels(sources, source_values, nf, depth, left, open_edges + mf);
            sources = nullptr;
            if (barrier_failed()) return;
            nf = load_relaxed(&control->state[0]);
            mf = load_relaxed(&control->state[1]);
            depth = load_relaxed(&control->state[2]);
            left = load_relaxed(&control->state[3]);
            open_edges = load_relaxed(&control->state[4]);
            small = false;
            continue;
        }
        const Form form = form_of_level(direction, held, false, nf, mf, left, open_edges);
        const bool pull = form.pull;
        small = form.small;
        turn = turn == 2 ? 0 : turn + 1;
        if (thread == 0) {
            Totals* const after = &control->totals[turn == 2 ? 0 : turn + 1];
            after->packed = after->long_rows = 0;
            if (TRACE) after->probes = 0;
        }
        // where edges outnumber what they can find, many lead to what others have found
        const bool heavy = LEAST_FIRST && !pull && mf > PARTS_EDGES && 2 * mf > left;
        int part = heavy ? PARTS : 0;
        if (held && (pull || VALUES)) {
            settle(nf, pull || heavy, held == CLAIMED);
            if (barrier_failed()) return;
            if (pull || heavy) swap_frontiers();
        }
        if (!pull) {
            do {
                if (part || !held) {
                    convert((L)depth, part);
                    if (barrier_failed()) return;
                }
                if (small) break;
                push_level(nf, mf, (L)(depth + 1), part, turn);
                if (barrier_failed()) return;
            } while (LEAST_FIRST && --part > 0);
        }
        if (thread == 0) control->converted = 0;
        held = pull ? BITMAP : small ? QUEUE : CLAIMED;
        if (small) continue;
        Totals* const totals = &control->totals[turn];
        if (pull) {
            pull_level((L)(depth + 1), totals);
            if (barrier_failed()) return;
            const i64 rows = (i64)load_relaxed(&totals->long_rows);
            if (rows) {
                pull_long_rows(rows, (L)(depth + 1), totals);
                if (barrier_failed()) return;
            }
            swap_frontiers();
        } else {
            swap_queues();
        }
        if (TRACE && thread == 0)
            record(depth, pull ? PULL : PUSH, nf, pull ? (i64)load_relaxed(&totals->probes) : mf);
        const u64 found = load_relaxed(&totals->packed);
        nf = (i64)queue_count(found, count_bits);
        mf = (i64)queue_edges(found, count_bits);
        left -= nf;
        open_edges -= mf;
        depth++;
    }
#if VALUES
    if (held) settle(nf, false, held == CLAIMED); // what the last level has claimed
    if (barrier_failed()) return;
#pragma unroll 1
    for (i64 w = thread_id(); w < s.words; w += thread_count()) value_bits[w] = s.visited[w];
#endif
    if (thread == 0) {
        control->depth = depth;
        control->num_visited =
            number_of_sources + findable - (i64)load_relaxed(&control->covered) - left;
    }
}
