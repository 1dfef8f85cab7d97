// What a vertex that is found gets beside its level: nothing, or the sum of the products of the
// edges that have found it. The state has `value`, where the sums go, and in_product(exchange, u, v,
// edge): that of in-edge number `edge`, u -> v.

// Whether the first edge that finds a vertex decides.
constexpr bool FIRST_DECIDES = FIRST || !VALUES;

#if VALUES
struct Sum {
    Z sum;
    DEVICE Sum none() { return {identity()}; }
    // True where no further edge can change it.
    MEMBER bool take(Exchange exchange, i64 u, i64 v, i64 edge) {
        sum = add(sum, in_product(exchange, u, v, edge));
        return FIRST || is_terminal(sum);
    }
    MEMBER void combine(const Sum& other) { sum = FIRST ? other.sum : add(sum, other.sum); }
    // At all lanes, the sum of those `who` have found, where others have none().
    MEMBER void merge(u32 who) { sum = FIRST ? shuffle(sum, __ffs(who) - 1) : warp_combine(sum); }
    MEMBER void store(i64 v) const { s.value[v] = sum; }
    // Into what other blocks combine with, too; `first`: no one else finds v first.
    MEMBER void combine_into(i64 v, bool first) const {
        if constexpr (ADD_KIND == ADD_ANY) {
            if (first) store_relaxed(&s.value[v], sum);
        } else {
            ::combine(&s.value[v], sum);
        }
    }
};
typedef Sum Candidate;

// How products combine in memory: what every Row of search_push.cuh has whose terms are products.
struct Products {
    typedef Z Term;
    static constexpr bool ANY = ADD_KIND == ADD_ANY;
    static constexpr bool ONE_WAY =
        ADD_KIND == ADD_MIN || ADD_KIND == ADD_MAX || ADD_KIND == ADD_OR || ADD_KIND == ADD_AND;
    DEVICE Z none() { return identity(); }
    DEVICE bool changes(Z old, Z term) { return add(old, term) != old; }
    DEVICE void combine(Z* sum, Z term) { combine_changed(sum, term); }
};
#else
struct Nothing {
    DEVICE Nothing none() { return {}; }
    MEMBER bool take(Exchange, i64, i64, i64) { return true; }
    MEMBER void combine(const Nothing&) {}
    MEMBER void merge(u32) {}
    MEMBER void store(i64) const {}
    MEMBER void combine_into(i64, bool) const {}
};
typedef Nothing Candidate;
#endif
