// What one shard brings to a vertex in a level: the sum of the products of its own edges, which the
// owner of the vertex adds to those of the other shards. Stands before the state.

// A parent, so that the least is the greatest and 0 is none: max_label() less the user's id.
typedef Bits<L> Key;
DEVICE L max_label() { return (L)(~(u64)0 >> (65 - 8 * sizeof(L))); }
DEVICE Key key_of(L parent) { return (Key)(max_label() - parent); }
DEVICE L parent_of(Key key) { return max_label() - (L)key; }

// Whether vertices get sums of products: not levels alone, and not parents, of which the least is
// found without a product for each edge.
#define SUMS (VALUES && !PARENTS)

#if SUMS
typedef Z Partial;
#else
typedef Key Partial;
#endif

DEVICE Partial no_partial() {
#if SUMS
    return identity();
#else
    return 0;
#endif
}

// x and y together; y is no_partial() unless it is `here`.
DEVICE Partial merged(Partial x, Partial y, bool here) {
#if SUMS
    return ADD_KIND == ADD_ANY ? (here ? y : x) : add(x, y);
#else
    return y > x ? y : x;
#endif
}

DEVICE Z value_of(Partial partial) {
#if SUMS
    return partial;
#else
    return parent_of(partial);
#endif
}
