// The queues that a search on one GPU fills, for the functions of vertex_queue.cuh.

#include "vertex_queue.cuh"

struct Queue {
    static constexpr int SHARE = BATCH / 32;
    u64* packed; // allocates
    I* vertices;
    O* offsets;
    L depth; // of the vertices
    DEVICE I* buffer() { return work().push.found[warp_id()]; }
    MEMBER u64* counter() const { return packed; }
    MEMBER I* queue() const { return vertices; }
    MEMBER O* offset() const { return offsets; }
    DEVICE const O* rows() { return s.indptr; }
    DEVICE bool is_heavy(O) { return false; }
    DEVICE void note_heavy() {}
    MEMBER void joins(I v) const { s.level[v] = depth; }
};

// For levels that push: vertices that are found go to the next level's queue.
struct Found {
    static constexpr bool WANTED = true;
    const Queue& to; // in the stack: a copy in registers costs levels that push 2 to 3 %
    int held = 0;
    MEMBER Found(const Queue& to) : to(to) {}
    MEMBER void add(bool found, I v) { held = enqueue(held, found, v, to); }
};
DEVICE I load_id(const I* id) { return *id; }

#if VALUES
// Terms are products, combined in `value`.
DEVICE Z* partial() { return s.value; }
struct Row : Products {
    static constexpr bool TELLS = false;
    I vertex;
    MEMBER void load(I u, bool) { vertex = u; }
    MEMBER Row of(int lane) const {
        Row row;
        row.vertex = shuffle(vertex, lane);
        return row;
    }
    MEMBER Z term(i64 v, i64 edge) const { return product(s.values, vertex, v, edge); }
};
#endif
