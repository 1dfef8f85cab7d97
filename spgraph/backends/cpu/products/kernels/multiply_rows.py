# Sparse times sparse, row by row (Gustavson 1978): row i of Z is the sum over the entries (i, k) of
# A of A[i, k] times row k of B. Preamble: multiply, add, IDENTITY, MASK (0: none, 1: a mask, 2: its
# complement), VALUES (False: all values of the result are equal and known), DENSE (with VALUES and
# without a mask: a sum for every column), the text of lower_bound.py, and those of the three forms
# of a row:
#
# - DENSE (multiply_rows_dense.py): each product is added to a sum of its column;
# - short (multiply_rows_short.py): without a mask a row of at most SHORT products, as road networks
#   have, or of a multiple of one row of B, is a list into which each product is inserted at its
#   place;
# - any other (multiply_rows_bitmap.py): a bitmap of the columns says where each product belongs.
#
# Each writes the entries of a row to `columns` and `z` from position `base` on and returns the
# position behind the last. For LLVM to inline them, each is called in one place.

from collections import namedtuple

from spgraph.backends.cpu.device.prefetching import fetch_rows

SIX = np.uint64(6)
LOW = np.uint64(63)
BIT = np.uint64(1)
SHORT = 32

# the value of entry p is values[p & keep]
Rows = namedtuple("Rows", "indptr indices values keep")
# bitmaps of a thread: of columns, of the nonzero words of that, of the nonzero words of this; of
# the columns in the mask, or met there; for each word of the first the number of columns before it
Maps = namedtuple("Maps", "bits middle top met ranks")


@kernel
def multiply_rows(
    thread, threads, sync, a_indptr, a_indices, a_values, a_keep, b_indptr, b_indices, b_values,
    b_keep, m_indptr, m_indices, flops, splits, offsets, ticket, all_bits, all_middle, all_top,
    all_met, all_ranks, all_sums, counts, columns, z,
):  # fmt: skip
    a = Rows(a_indptr, a_indices, a_values, a_keep)
    b = Rows(b_indptr, b_indices, b_values, b_keep)
    bits = all_bits[thread]
    sums = all_sums[thread]
    maps = Maps(bits, all_middle[thread], all_top[thread], all_met[thread], all_ranks[thread])
    wide = np.uint64(0)  # 64ths of the bitmap have 1 << wide words
    while np.uint64(bits.size - 1) >> wide > LOW:
        wide += BIT
    while True:
        poll(sync)
        chunk = atomic_add(ticket, 0, 1)
        if chunk + 1 >= splits.size:
            break
        base = np.uint64(offsets[chunk])
        for i in range(splits[chunk], splits[chunk + 1]):
            if i & 15 == 0:
                poll(sync)
            if flops[i] == 0:
                continue
            if DENSE:
                last = dense_row(i, a, b, bits, wide, sums, base, columns, z)
            elif MASK == 0 and (flops[i] <= SHORT or a_indptr[i + 1] - a_indptr[i] == 1):
                last = short_row(i, a, b, base, columns, z)
            else:
                last = bitmap_row(i, a, b, m_indptr, m_indices, flops[i], maps, base, columns, z)
            counts[i + 1] = last - base
            base = last
