// The monoid as a relation: what an idempotent sum does to a value in memory, and, where it is min
// or max, which of two values is the better one.

#include "closure_order.cuh"
#include "closure_parents.cuh"

DEVICE bool same(Z a, Z b) { return a == b || (a != a && b != b); }

// The sum of a value in memory and another. `any` keeps the first one.
DEVICE Z joined(Z old, Z value) {
    if constexpr (ADD_KIND == ADD_ANY) return same(old, identity()) ? value : old;
    return add(old, value);
}

// What a product is to a vertex without a value: min and max omit NaN, and leave the identity.
DEVICE Z sum_of(Z product) {
    if constexpr ((double)(Z)0.5 == 0.5)
        return product == product ? product : add(identity(), product);
    return product;
}

// Whether adding `value`, which is no NaN where the monoid is min or max, to `old` would change it.
DEVICE bool changes(Z old, Z value) {
    if constexpr (LEAST) return !(value >= old);
    if constexpr (GREATEST) return !(value <= old);
    return !same(joined(old, value), old);
}

// The value as min and max over floats store it: -0.0 becomes 0.0, and NaN one whose bits are worse
// than those of every number.
DEVICE Z normal(Z value) {
    if constexpr ((LEAST || GREATEST) && (double)(Z)0.5 == 0.5) {
        const Bits<Z> bits = (Bits<Z>)~(Bits<Z>)0;
        if (value != value) return from_bits<Z>(LEAST ? bits >> 1 : bits);
        return value + (Z)0;
    }
    return value;
}

template <class T>
DEVICE bool improve_as(T* address, T value, T& stored) {
    typedef Bits<T> B;
    address = global(address);
    if constexpr ((LEAST || GREATEST) && sizeof(T) >= 4) {
        stored = value = value + (T)0; // normal(), without NaN
        return changes(from_bits<T>(atomic_best<LEAST>(address, value)), value);
    } else {
        // the aligned word around it: an allocation never ends inside one
        typedef Word<T> W;
        const u64 place = (u64)address;
        W* const word = global((W*)(place & ~(u64)(sizeof(W) - 1)));
        const int shift = (int)(place & (sizeof(W) - 1)) * 8;
        const W field = (W)(B) ~(B)0 << shift, bits = (W)to_bits(value) << shift;
        if constexpr (ADD_KIND == ADD_OR || ADD_KIND == ADD_AND) {
            constexpr bool sets = ADD_KIND == ADD_OR;
            const W before = load_lagging(word);
            if (!(sets ? bits & ~before : before & field & ~bits)) return false;
            const W old = (sets ? atomicOr(word, bits) : atomicAnd(word, bits | ~field)) & field;
            const W now = sets ? old | bits : old & bits;
            stored = from_bits<T>((B)(now >> shift));
            return now != old;
        } else {
            W old = load_relaxed(word);
            for (;;) {
                const T here = from_bits<T>((B)(old >> shift));
                stored = joined(here, value);
                if (same(stored, here)) return false;
                const W found =
                    atomicCAS(word, old, (old & ~field) | ((W)to_bits(stored) << shift));
                if (found == old) return true;
                old = found;
            }
        }
    }
}

// *address = add(*address, value), atomically. True where that changed it: `stored` is then the
// value that this thread wrote, and no other thread gets the same one. `value` is as for changes().
DEVICE bool improve(Z* address, Z value, Z& stored) {
    return improve_as<Z>(address, value, stored);
}
