// A frontier in the shared memory of one thread block. The form that includes it has SMALL_EDGES
// (the most edges of a small level), PIECE, SmallEdges, the type in which they are counted, and
// KEEPS_PARENTS, which spares every edge back to a parent the access to what is visited.

constexpr int LIGHT = 16; // edges that four lanes walk; a heavier vertex gets a warp for each PIECE
constexpr int PIECES = SMALL + SMALL_EDGES / PIECE;

struct SmallFrontier {
    I vertex[SMALL];
    O start[SMALL], end[SMALL];
#if KEEPS_PARENTS
    I parent[SMALL]; // the vertex that found it, to which no edge is open
#endif
    u32 heavy[PIECES]; // pieces of heavy vertices: place in the low half, number in the high
};

struct SmallCount {
    SmallEdges edges;
    u32 vertices, pieces;
};
