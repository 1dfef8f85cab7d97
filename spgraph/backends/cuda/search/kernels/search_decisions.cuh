// Which form a level takes: decided from totals of the whole graph, so that all blocks, and all GPUs,
// decide alike. Rounds are decided by the host, from the same rule (spgraph/direction.py). The form
// that includes it has `s.m` edges, and is_symmetric() says that out-edges are in-edges; the
// preamble gives PULL_PAYS and CONVERT_EDGES.

constexpr int ENTER = SMALL / 2; // so that a search does not flap between small levels and others

// Whether a level whose frontier has those many edges should pull, with `left` vertices to be found
// and `open` edges at unvisited ones. `queued`: for a push the frontier is a queue already.
DEVICE bool pull_pays(int direction, bool queued, i64 edges, i64 left, i64 open) {
    // out-edges of open vertices are their in-edges only in a symmetric graph
    return direction == PULL ||
           (direction == AUTO && PULL_PAYS(edges + (queued ? 0 : (i64)CONVERT_EDGES), left,
                                           is_symmetric() ? open : s.m, s.m));
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
