// A closure that finds parents on its way: with PARENTS, a value is the bits of a distance (a float
// that is not negative) above the id of the vertex that it came from. They are compared as one
// integer: so a vertex gets the least distance and, of the vertices that bring it, the least. The
// others that bring it are noted as ties; those that are noted with what is not the least distance
// yet are left out when all is known.

// As limit_after_as() of the distances. Beyond the greatest float limits are no distances, but
// greater than all.
template <class T>
DEVICE T limit_after_distance(T from, float width) {
    const float distance = distance_of(from), to = distance + width;
    if (from == identity()) return from;
    return (T)(distance < to ? to_bits(to) : (u32)(from >> 32) + 1) << 32;
}

// A product that is not less has a greater distance: it is no tie.
template <class T>
DEVICE T greatest_with_distance_of(T value) {
    return value | 0xffffffffu;
}

template <class T>
CALLED void note_tie(I v, T value) {
    const u32 place = atomicAdd(&s.control->ties, 1u);
    if (place < MOST_TIES) s.ties[place] = Tie{v, value};
}

// `value` joins vertex v, which had `old` or a lesser value; whether that is an improvement.
template <class T>
DEVICE bool join_from(I v, T old, T value) {
    if (parent_of(value) == v) return false;
    if (value < old) old = atomicMin((T*)global(&s.x[v]), value);
    if (value != old && value >> 32 == old >> 32 && load_lagging(&s.control->ties) <= MOST_TIES)
        note_tie(v, value < old ? old : value);
    return value < old;
}
