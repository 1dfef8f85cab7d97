// What drivers share that run in one launch: where a block works, and decisions. The form that includes
// it has the state `s`, and Work, what a block keeps in the shared memory that comes with the launch.

extern __shared__ u64 work_memory[];
DEVICE Work& work() { return *reinterpret_cast<Work*>(work_memory); }
DEVICE Pull& pull_memory() { return work().pull; }

// Every block exchanges the roles of the bitmaps, between two barriers of its threads.
DEVICE void swap_frontiers() {
    __syncthreads();
    if (threadIdx.x == 0) swap(s.frontier, s.next);
    __syncthreads();
}

// Which form a level takes is decided from totals of the whole graph, so that all blocks, and all
// GPUs, decide alike; rounds are decided by the host, as pull_pays() does (search_pulls of
// spgraph/direction.py). The form that includes it has `s.m` edges, is_symmetric() says that out-edges
// are in-edges, and words_of_pull() how many words of bitmaps a pull reads whatever it finds; the
// preamble gives PULL_PAYS, CONVERT_EDGES and PUSH_STEP.

constexpr int ENTER = SMALL / 2; // so that a search does not flap between small levels and others

// Whether a level whose frontier has those many edges should pull, with `left` vertices to be found
// and `open` edges at unvisited ones. `queued`: for a push the frontier is a queue already.
DEVICE bool pull_pays(int direction, bool queued, i64 edges, i64 left, i64 open) {
    if (direction != AUTO) return direction == PULL;
    const i64 work = edges + (queued ? 0 : (i64)CONVERT_EDGES);
    // out-edges of open vertices are their in-edges only in a symmetric graph
    return work > words_of_pull() / PUSH_STEP &&
           PULL_PAYS(work, left, is_symmetric() ? open : s.m, s.m);
}

struct Form {
    bool pull, small; // neither: the whole grid pushes
};

// The form of a level of those many vertices and edges; `tried`: it did not fit a small one.
DEVICE Form form_of_level(int direction, bool queued, bool tried, i64 vertices, i64 edges, i64 left,
                          i64 open) {
    const bool fits = !tried && direction != PULL && vertices <= ENTER && edges <= ENTER_EDGES;
    const bool pull = !(queued && fits) && pull_pays(direction, queued, edges, left, open);
    return {pull, fits && !pull};
}

// A row of the trace, by one thread.
CALLED void record(i64 depth, i64 direction, i64 frontier, i64 edges) {
    if (!s.trace) return; // a run that only counts the levels
    const u64 now = globaltimer();
    i64* row = s.trace + 4 * depth;
    row[0] = direction;
    row[1] = frontier;
    row[2] = edges;
    row[3] = (i64)(now - s.since);
    s.since = now;
}
