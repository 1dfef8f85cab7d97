// Two vectors position by position: their union or their intersection.
// Preamble: types U V Z, N (ids), L R (scalars), op, cast (to Z), UNION, FILL: whether scalars stand
// for what one of the two lacks.

#include "ewise_one.cuh"

// By position, a warp a word; no bits mean that every position holds an entry.
extern "C" __global__ void __launch_bounds__(256)
    ewise(const u32* u_bits, const U* u, const u32* v_bits, const V* v, L left, R right, i64 size,
          u32* z_bits, Z* z) {
    for (i64 w = thread_id() >> 5; w < (size + 31) / 32; w += thread_count() >> 5) {
        i64 i = 32 * w + lane_id();
        u32 in_u = u_bits ? u_bits[w] : valid_bits(w, size),
            in_v = v_bits ? v_bits[w] : valid_bits(w, size);
        u32 both = in_u & in_v, bit = 1u << lane_id();
        if (i < size) {
            Z value = (Z)0;
            if (both & bit)
                value = op(u[i], v[i], i, 0, i, 0);
            else if (UNION && in_u & bit)
                value = of_left(u[i], right, i, 0);
            else if (UNION && in_v & bit)
                value = of_right(left, v[i], i, 0);
            z[i] = value;
        }
        if (z_bits && lane_id() == 0) z_bits[w] = UNION ? in_u | in_v : both;
    }
}

// Both sparse. matched[p] = whether u_ids[p] is among v_ids.
extern "C" __global__ void __launch_bounds__(256)
    ewise_match(const N* u_ids, i64 u_count, const N* v_ids, i64 v_count, i64* matched) {
    for (i64 p = thread_id(); p < u_count; p += thread_count()) {
        i64 at = lower_bound(v_ids, v_count, u_ids[p]);
        matched[p] = at < v_count && v_ids[at] == u_ids[p];
    }
}

// `through`, the running sum of `matched`, says where each entry goes.
extern "C" __global__ void __launch_bounds__(256)
    ewise_sparse(const N* u_ids, const U* u, i64 u_count, const N* v_ids, const V* v, i64 v_count,
                 L left, R right, const i64* through, N* z_ids, Z* z) {
    for (i64 t = thread_id(); t < u_count + (UNION ? v_count : 0); t += thread_count()) {
        if (t < u_count) {
            i64 p = t, i = u_ids[p], at = lower_bound(v_ids, v_count, i);
            bool both = at < v_count && v_ids[at] == i;
            i64 before = through[p] - both;
            if (!UNION && !both) continue;
            i64 slot = UNION ? p + at - before : before;
            z_ids[slot] = i;
            z[slot] = both ? op(u[p], v[at], i, 0, i, 0) : of_left(u[p], right, i, 0);
        } else {
            i64 q = t - u_count, i = v_ids[q], at = lower_bound(u_ids, u_count, i);
            if (at < u_count && u_ids[at] == i) continue;
            i64 slot = q + at - (at ? through[at - 1] : 0);
            z_ids[slot] = i;
            z[slot] = of_right(left, v[q], i, 0);
        }
    }
}
