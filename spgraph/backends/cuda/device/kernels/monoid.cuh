// Sums over the monoid: what depends on it exists only where the preamble defines ADD_KIND.

enum AddKind {
    ADD_OTHER, // whatever add() does
    ADD_ANY,   // either operand
    ADD_PLUS,
    ADD_MIN,
    ADD_MAX,
    ADD_OR, // bitwise; also the logical ones over bool, whose values are 0 and 1
    ADD_AND,
    ADD_XOR
};

#ifdef ADD_KIND

// Whether some sum can be known before its last term.
#ifdef TERMINAL
constexpr bool ENDS = true;
#else
constexpr bool ENDS = ADD_KIND == ADD_ANY;
#endif

// No further term can change `value`.
DEVICE bool is_terminal(Z value) {
    if constexpr (ADD_KIND == ADD_ANY) return true;
#ifdef TERMINAL
    return value == terminal();
#else
    return false;
#endif
}

// *address = add(*address, value) by compare and swap on the word of type W that holds it from bit
// `shift` on.
template <class W>
DEVICE void combine_in_word(W* word, int shift, Z value) {
    const W field = (W)(Bits<Z>)~(Bits<Z>)0 << shift;
    W old = load_relaxed(word);
    for (;;) {
        Z sum = add(from_bits<Z>((Bits<Z>)(old >> shift)), value);
        W desired = (old & ~field) | ((W)to_bits(sum) << shift);
        if (desired == old) return;
        W seen = atomicCAS(word, old, desired);
        if (seen == old) return;
        old = seen;
    }
}

// *address = the lesser or the greater of *address and value, atomically, of 32 or 64 bits; the bits
// that were there. Of floats, which are no NaN, -0.0 counts as 0.0.
template <bool LEAST_, class T>
DEVICE Bits<T> atomic_best(T* address, T value) {
    typedef decltype(signed_of<sizeof(T)>()) S;
    typedef Bits<T> B;
    constexpr bool floating = (double)(T)0.5 == 0.5;
    if constexpr (floating) value = value + (T)0;
    // the bits of floats ascend as signed integers where positive, descend as unsigned ones where
    // negative
    const bool descends = floating && !(value >= 0);
    if ((floating || (T)-1 < (T)0) && !descends)
        return LEAST_ ? (B)atomicMin((S*)address, (S)to_bits(value))
                      : (B)atomicMax((S*)address, (S)to_bits(value));
    return LEAST_ != descends ? atomicMin((B*)address, to_bits(value))
                              : atomicMax((B*)address, to_bits(value));
}

template <class T, bool KNOWN = false>
DEVICE void combine_as(T* address, T value) {
    constexpr bool floating = (double)(T)0.5 == 0.5;
    constexpr bool least = ADD_KIND == ADD_MIN, greatest = ADD_KIND == ADD_MAX;
    constexpr bool bitwise = ADD_KIND == ADD_OR || ADD_KIND == ADD_AND || ADD_KIND == ADD_XOR;
    if constexpr (ADD_KIND == ADD_ANY) {
        store_relaxed(address, value);
    } else if constexpr (bitwise || sizeof(T) < 4) {
        // the aligned word around it: an allocation never ends inside one
        typedef Bits<T> B;
        typedef Word<T> W;
        u64 place = (u64)address;
        W* word = (W*)(place & ~(u64)(sizeof(W) - 1));
        int shift = (int)(place & (sizeof(W) - 1)) * 8;
        W bits = (W)to_bits(value) << shift, others = ~((W)(B) ~(B)0 << shift);
        if constexpr (ADD_KIND == ADD_OR) {
            if (bits & ~load_lagging(word)) atomicOr(word, bits);
        } else if constexpr (ADD_KIND == ADD_AND) {
            if (load_lagging(word) & ~(bits | others)) atomicAnd(word, bits | others);
        } else if constexpr (ADD_KIND == ADD_XOR) {
            if (bits) atomicXor(word, bits);
        } else {
            combine_in_word(word, shift, value);
        }
    } else if constexpr (ADD_KIND == ADD_PLUS && floating) {
        atomicAdd(address, value);
    } else if constexpr (ADD_KIND == ADD_PLUS) {
        atomicAdd((Bits<T>*)address, to_bits(value));
    } else if constexpr (least || greatest) {
        // false for NaN
        if (!KNOWN || floating) {
            const T seen = load_lagging(address);
            if (!(least ? value < seen : value > seen)) return;
        }
        atomic_best<least>(address, value);
    } else {
        combine_in_word((Bits<T>*)address, 0, value);
    }
}

// *address = add(*address, value), atomically and unordered. *address holds identity() or such a
// sum before. Min and max over floats omit NaN and take -0.0 for 0.0.
DEVICE void combine(Z* address, Z value) { combine_as<Z>(address, value); }
// The same where `value` is known to change the sum that was there a moment ago.
DEVICE void combine_changed(Z* address, Z value) { combine_as<Z, true>(address, value); }

// The sum over the lanes of the aligned groups of `width` lanes (a power of 2), in every lane of
// the group. All lanes call; those without a term bring identity().
DEVICE Z warp_combine(Z value, int width = WARP) {
    for (int distance = width / 2; distance; distance /= 2)
        value = add(value, shuffle_xor(value, distance));
    return value;
}

#endif
