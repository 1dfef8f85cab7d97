// Union-find over a forest of labels: label[v] <= v leads to a smaller vertex of the same tree, a
// root to itself. Threads see old labels now and then; an old label is an ancestor all the same,
// and only compare and swap makes a root lead elsewhere.
//
// The program gives type L (labels).

constexpr int NEAR = 8; // hops in which a label from this multiprocessor's cache will do

// The label of v. Many look at the same few roots, which the cache serves; but on a long path that
// others shorten at the same time, an old label is a long way round.
DEVICE L look(const L* label, L v, int hops) {
    return hops < NEAR ? load_lagging(label + v) : load_relaxed(label + v);
}

// Join the trees of u and v: the larger root under the smaller. `hooked` is called with both, once
// for each root that comes to lead elsewhere.
template <class Hooked>
DEVICE void union_trees(L* label, L u, L v, Hooked hooked) {
    L x = load_lagging(label + u), y = load_lagging(label + v);
    for (int hops = 0; x != y; hops++) {
        if (x < y) {
            const L z = x;
            x = y;
            y = z;
        }
        L above = look(label, x, hops);
        if (above == x) {
            above = from_bits<L>(atomicCAS((Bits<L>*)(label + x), to_bits<L>(x), to_bits<L>(y)));
            if (above == x) {
                hooked(x, y);
                return;
            }
        }
        // halve the path behind; threads may overwrite each other, each time by an ancestor
        const L next = look(label, above, hops);
        if (next != above) store_relaxed(label + x, next);
        x = next;
        y = look(label, y, hops);
    }
}

DEVICE void union_trees(L* label, L u, L v) {
    union_trees(label, u, v, [](L, L) {});
}
