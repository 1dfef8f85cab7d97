# The values behind the keys of a hash table. It knows no operator, so that all pushes share it.
# Preamble: slot_of.


@njit(nogil=True, cache=True, error_model="numpy")
def lookup(thread, threads, table, keys, z, wanted, found):
    for p in range(wanted.size):
        found[p] = z[table[slot_of(table, keys, np.int64(wanted[p]))]]
