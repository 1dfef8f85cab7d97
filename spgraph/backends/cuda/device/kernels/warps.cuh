// What is made of ballots and shuffles (nvidia.cuh): all lanes of the warp call.

// The sum of `value` over the lanes up to this one, itself included.
template <class T>
DEVICE T warp_scan(T value) {
#pragma unroll
    for (int distance = 1; distance < WARP; distance *= 2) {
        T below = shuffle_up(value, distance);
        if (lane_id() >= distance) value += below;
    }
    return value;
}
template <class T>
DEVICE T warp_sum(T value) {
#pragma unroll
    for (int distance = WARP / 2; distance; distance /= 2) value += shuffle_xor(value, distance);
    return value;
}

// The sum of `value` is added to *total.
template <class S, class T>
DEVICE void warp_add(S* total, T value) {
    value = warp_sum(value);
    if (lane_id() == 0 && value) atomicAdd(total, (S)value);
}

// The place of a lane's entry, if it is wanted, after the `held` that the warp has already, which it
// counts on; else -1.
DEVICE int place_after(bool wanted, int& held) {
    const u32 who = warp_ballot(wanted);
    const int place = wanted ? held + __popc(who & lanes_below()) : -1;
    held += __popc(who);
    return place;
}

// With `keys` ascending over the lanes: the last lane whose key is <= x (lane 0 if there is none).
template <class T>
DEVICE int warp_search(T keys, T x) {
    int found = 0;
#pragma unroll
    for (int step = WARP / 2; step; step /= 2) {
        T key = shuffle(keys, found + step);
        if (key <= x) found += step;
    }
    return found;
}

// The lanes whose key, a number of so many bits, is that of this one.
template <int BITS_>
DEVICE u32 lanes_alike(int key) {
    u32 alike = ALL_BITS;
#pragma unroll
    for (int bit = 0; bit < BITS_; bit++) {
        const u32 ones = warp_ballot(key >> bit & 1);
        alike &= key >> bit & 1 ? ones : ~ones;
    }
    return alike;
}

// A bit for each of `size` positions i, set where is_set(i), a warp a word; how many this warp has set.
template <class IsSet>
DEVICE u64 write_bits(i64 size, u32* bits, IsSet is_set) {
    u64 total = 0;
    for (i64 w = thread_id() >> 5; w < (size + 31) / 32; w += thread_count() >> 5) {
        const i64 i = 32 * w + lane_id();
        const u32 found = warp_ballot(i < size && is_set(i));
        if (lane_id() == 0) bits[w] = found;
        total += __popc(found);
    }
    return total;
}

// ---- queues -------------------------------------------------------------------------------------

// Where a lane's entry goes: its slot in the queue and the number of edges before it.
struct Place {
    u64 slot, edge;
};

// A place in a queue for each lane that wants one, with one atomic for the warp. `packed` holds the
// queue's length in its low `count_bits` bits and the sum of the degrees above, so the scanned
// degrees of the queue come for free. All 32 lanes call.
DEVICE Place queue_allocate(bool wanted, u64 degree, u64* packed, u32 count_bits) {
    u32 wanting = warp_ballot(wanted);
    if (!wanting) return Place{0, 0};
    if (!wanted) degree = 0;
    u64 through = warp_scan(degree), total = shuffle(through, 31), base = 0;
    if (lane_id() == 0) base = atomicAdd(packed, (total << count_bits) + (u64)__popc(wanting));
    base = shuffle(base, 0);
    u32 below = wanting & lanes_below();
    return Place{(base & ((1ull << count_bits) - 1)) + (u64)__popc(below),
                 (base >> count_bits) + through - degree};
}
DEVICE u64 queue_count(u64 packed, u32 count_bits) { return packed & ((1ull << count_bits) - 1); }
DEVICE u64 queue_edges(u64 packed, u32 count_bits) { return packed >> count_bits; }
