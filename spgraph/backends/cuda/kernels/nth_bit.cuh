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
