# Bitmaps, a bit for each vertex in words of 32: a part of the texts that read them.


@inner
def has_bit(bits, v):
    return bits[v >> np.uint64(5)] >> np.uint32(v & np.uint64(31)) & np.uint32(1) != 0
