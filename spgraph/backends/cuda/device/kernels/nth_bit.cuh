// Set bits by their number: of a word, and of 32 words that a warp holds.

// The position of bit number r, counted from 0, among the set bits of a word.
DEVICE int nth_bit(u32 word, int r) {
    int position = 0;
#pragma unroll
    for (int width = 16; width; width >>= 1) {
        const int below = __popc((word >> position) & ((1u << width) - 1u));
        if (r >= below) {
            r -= below;
            position += width;
        }
    }
    return position;
}

// The set bit of number `rank` among those of 32 words, one a lane, of which there are `upto`
// through this lane's. All lanes of a warp call; the ranks of those that are `active` ascend.
struct RankedBit {
    int word, bit; // word is a lane
    MEMBER RankedBit(u32 bits, int upto, int rank, bool active) {
        word = warp_search(upto - __popc(bits), active ? rank : 0);
        const int before = shuffle(upto - __popc(bits), word);
        bit = nth_bit(shuffle(bits, word), active ? rank - before : 0);
    }
    // its position in the bitmap in which the words begin at word `begin`
    MEMBER i64 position(i64 begin) const { return 32 * (begin + word) + bit; }
};

// each(which, rank, active) for the bits of 32 words, one a lane, a bit a lane at a time. All lanes of
// a warp call; returns how many bits there are.
template <class Each>
DEVICE int for_each_bit(u32 bits, Each each) {
    const int upto = warp_scan(__popc(bits)), total = shuffle(upto, 31);
#pragma unroll 1
    for (int base = 0; base < total; base += 32) {
        const int rank = base + lane_id();
        each(RankedBit(bits, upto, rank, rank < total), rank, rank < total);
    }
    return total;
}
