# The value of all entries of A B where all products are equal and addition is idempotent.
# Preamble: multiply, add, IDENTITY.


@kernel
def one_value(thread, threads, sync, a, b, z):
    # the sum of any number of equal products, for an idempotent monoid
    z[0] = add(IDENTITY, multiply(a[0], b[0], 0, 0, 0, 0))
