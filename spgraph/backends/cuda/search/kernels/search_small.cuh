// Small levels of one GPU: block 0 alone, in its shared memory, while the others wait.

#include "search_small_steps.cuh"

#if !VALUES
// Whether nobody has asked so for v lately; then v is noted, in the place of another vertex maybe. So a
// level's accesses to memory are hardly more than it finds vertices: of the edges of a road or a grid
// that do not lead to a parent most lead to what another edge has just found.
DEVICE bool is_new(I v) {
    Bits<I>* const place = reinterpret_cast<Bits<I>*>(&work().small.recent[v & (RECENT - 1)]);
    return atomicExch(place, to_bits(v)) != to_bits(v);
}
#endif

// One level of block 0.
DEVICE void small_level(const SmallFrontier& from, SmallFrontier& to, const SmallCount& size,
                        SmallCount& count, L depth) {
#if VALUES // what the last level claimed is visited from now on
    for (u32 i = threadIdx.x; i < size.vertices; i += THREADS) {
        const I v = from.vertex[i];
        atomicOr(&s.visited[v >> 5], 1u << (v & 31));
        atomicAnd(&s.next[v >> 5], ~(1u << (v & 31)));
    }
    __syncthreads();
    u32* const claims = s.next;
#else
    u32* const claims = s.visited;
#endif
    const O* const indptr = s.indptr;
    small_walk(from, size,
               [&](const I(&u)[PAIR], const I(&v)[PAIR], const O(&e)[PAIR], bool (&found)[PAIR]) {
                   u32 word[PAIR];
                   O first[PAIR], last[PAIR];
#if VALUES
#pragma unroll
                   for (int k = 0; k < PAIR; k++)
                       word[k] = found[k] ? load_relaxed(&s.visited[v[k] >> 5]) : 0;
#pragma unroll
                   for (int k = 0; k < PAIR; k++) {
                       found[k] = found[k] && !((word[k] >> (v[k] & 31)) & 1u);
                       if (ADD_KIND != ADD_ANY && found[k])
                           combine(&s.value[v[k]], product(s.values, u[k], v[k], e[k]));
                   }
#else // nothing is lost with an edge that finds a vertex again
#pragma unroll
                   for (int k = 0; k < PAIR; k++) found[k] = found[k] && is_new(v[k]);
#endif
        // the row is wanted only of those that are found, but to wait for that costs more than to
        // load all
#pragma unroll
                   for (int k = 0; k < PAIR; k++) {
                       word[k] =
                           found[k] ? atomicOr(&claims[v[k] >> 5], 1u << (v[k] & 31)) : ALL_BITS;
                       first[k] = found[k] ? indptr[v[k]] : 0;
                       last[k] = found[k] ? indptr[v[k] + 1] : 0;
                   }
#pragma unroll
                   for (int k = 0; k < PAIR; k++) {
                       found[k] = !((word[k] >> (v[k] & 31)) & 1u);
                       if (found[k]) {
                           s.level[v[k]] = depth;
#if VALUES
                           if (ADD_KIND == ADD_ANY)
                               store_relaxed(&s.value[v[k]], product(s.values, u[k], v[k], e[k]));
#endif
                       }
                   }
                   small_add(to, count, found, u, v, first, last);
               });
}

// Block 0 runs levels until the frontier outgrows it, and leaves the last one in `queue` and
// `offset`. The first is the queue, or the sources if there are any; `open_edges` counts its edges
// as open still.
CALLED void small_levels(const I* sources, const Z* source_values, i64 nf, i64 depth, i64 left,
                         i64 open_edges) {
    SmallFrontier* frontier = work().small.frontier;
    SmallCount* count = small_count;
    if (threadIdx.x < 9) reinterpret_cast<u32*>(count)[threadIdx.x] = 0;
#if !VALUES
    for (u32 k = threadIdx.x; k < RECENT; k += THREADS) work().small.recent[k] = -1;
#endif
    __syncthreads();
    small_fill(frontier[0], count[0], nf, [&](i64 i, I& v, O& first, O& last) {
        v = sources ? sources[i] : s.queue[i];
        first = s.indptr[v];
        last = s.indptr[v + 1];
        if (sources) {
            atomicOr(&s.visited[v >> 5], 1u << (v & 31));
            s.level[v] = 0;
#if VALUES
            s.value[v] = source_values[i];
#endif
            if (can_be_found(v)) atomicAdd(&s.control->covered, 1ull);
        }
        return true;
    });
    __syncthreads();
    if (sources) left -= (i64)load_relaxed(&s.control->covered);
    int side = 0, turn = 0;
    while (count[turn].vertices && left > 0 && depth < s.max_depth &&
           count[turn].vertices <= SMALL && count[turn].edges <= SMALL_EDGES) {
        const int next = turn == 2 ? 0 : turn + 1, after = next == 2 ? 0 : next + 1;
        // now: warp 0 clears this count in the next level, while slower warps may still be in this
        const u32 vertices = count[turn].vertices, edges = count[turn].edges;
        open_edges -= edges; // exact: the level fitted
        small_level(frontier[side], frontier[side ^ 1], count[turn], count[next], (L)(depth + 1));
        if (threadIdx.x < 3) (&count[after].edges)[threadIdx.x] = 0;
        __syncthreads();
        if (threadIdx.x == 0) {
            if (TRACE) record(depth, PUSH, vertices, edges);
            store_relaxed(&s.control->barrier.heartbeat, (u64)depth);
        }
        left -= count[next].vertices;
        depth++;
        side ^= 1;
        turn = next;
    }
    const u32 vertices = count[turn].vertices;
    const O edges = small_queue(frontier[side], vertices);
    if (threadIdx.x == 0) {
        i64* state = s.control->state;
        state[0] = vertices;
        state[1] = (i64)edges;
        state[2] = depth;
        state[3] = left;
        state[4] = open_edges - (i64)edges;
    }
}
