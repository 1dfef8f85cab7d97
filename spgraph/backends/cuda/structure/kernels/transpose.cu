// The entries of a matrix sorted by column, those of a column staying in the order of their rows: a
// radix sort, the least digit first. Each pass counts the digits of every part of the list, and
// then, when the running sums of the counts are known, sorts the part in shared memory and writes
// each digit's run to its place.
// Preamble: types O I (offsets, columns), N (row numbers of the result), V (values as bits), C
// (counts), Q (row lengths of the result, unsigned), VALUES: whether they are sorted too.

#include "rows.cuh"

constexpr int WARPS = 8, ROUNDS = 16; // a thread has an entry of a part in each round
constexpr int SHARE = 32 * ROUNDS;    // entries of a part that are a warp's
constexpr int PART = WARPS * SHARE;   // as in transpose.py
constexpr int DIGITS = 256;           // at most
// blocks at a time on a multiprocessor: they bound the registers
constexpr int BLOCKS = sizeof(I) == 4 ? 4 : 2;

// A pass sorts by the `width` bits from `shift` on.
DEVICE u32 digit_of(I key, i64 shift, u32 digits) { return (u32)(key >> shift) & (digits - 1); }

// counts[d * parts + part] = how often the digit d stands in a part. A block a part.
extern "C" __global__ void __launch_bounds__(256)
    transpose_count(const I* keys, i64 count, i64 shift, i64 width, i64 parts, C* counts) {
    __shared__ u32 tally[DIGITS];
    const u32 digits = 1u << width;
    const i64 first = (i64)blockIdx.x * PART + threadIdx.x;
    tally[threadIdx.x] = 0;
    I key[ROUNDS];
#pragma unroll
    for (int r = 0; r < ROUNDS; r++)
        if (first + 256 * r < count) key[r] = load_once(keys + first + 256 * r);
    __syncthreads();
#pragma unroll
    for (int r = 0; r < ROUNDS; r++)
        if (first + 256 * r < count) atomicAdd(tally + digit_of(key[r], shift, digits), 1u);
    __syncthreads();
    if (threadIdx.x < digits) counts[threadIdx.x * parts + blockIdx.x] = (C)tally[threadIdx.x];
}

// One pass. `through` is the running sum of the counts. The first pass has no `rows`: it finds
// them. The last has no z_keys: it adds the length of each column to lengths[column + 1]. A block a
// part.
extern "C" __global__ void __launch_bounds__(256, BLOCKS)
    transpose(const O* indptr, const i64* tiles, const I* keys, const N* rows, const V* values,
              i64 count, i64 shift, i64 width, i64 parts, const C* through, I* z_keys, N* z_rows,
              V* z_values, Q* lengths) {
    // first how often each digit came before in the warp's share, then where the warp's go
    __shared__ u32 tally[WARPS][DIGITS];
    __shared__ u32 sums[WARPS];
    __shared__ i64 shift_of[DIGITS]; // from a digit's places in the part to those in the result
    __shared__ u8 digit_at[PART];
    __shared__ u64 staged[PART * (sizeof(I) == 8 || sizeof(N) == 8 || sizeof(V) == 8 ? 8 : 4) / 8];
    const u32 digits = 1u << width, lane = lane_id(), warp = warp_id(), d = threadIdx.x;
    const i64 begin = (i64)blockIdx.x * PART, mine = begin + warp * SHARE + lane;
    const u32 here = count - begin < PART ? (u32)(count - begin) : PART;

    I key[ROUNDS];
    u32 place[ROUNDS];
#pragma unroll
    for (int r = 0; r < ROUNDS; r++)
        key[r] = mine + 32 * r < count ? load_once(keys + mine + 32 * r) : (I)0;
    for (int w = 0; w < WARPS; w++) tally[w][d] = 0;
    __syncthreads();
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) {
        const bool valid = mine + 32 * r < count;
        const u32 digit = digit_of(key[r], shift, digits);
        u32 same = warp_ballot(valid);
        for (int b = 0; b < (int)width; b++) {
            const bool set = digit >> b & 1;
            const u32 with = warp_ballot(set);
            same &= set ? with : ~with;
        }
        const u32 below = __popc(same & lanes_below());
        const u32 before = tally[warp][digit];
        place[r] = before + below;
        warp_sync();
        if (valid && below == 0) tally[warp][digit] = before + __popc(same);
        warp_sync();
    }
    __syncthreads();

    // a thread a digit: its entries come after those of lesser digits, and of warps before
    u32 total = 0;
    for (int w = 0; w < WARPS; w++) total += tally[w][d];
    u32 start = warp_scan(total);
    if (lane == 31) sums[warp] = start;
    __syncthreads();
    start -= total;
    for (u32 w = 0; w < warp; w++) start += sums[w];
    if (d < digits) {
        const i64 at = (i64)d * parts + blockIdx.x;
        shift_of[d] = (at ? (i64)through[at - 1] : 0) - (i64)start;
    }
    for (int w = 0; w < WARPS; w++) {
        const u32 those = tally[w][d];
        tally[w][d] = start;
        start += those;
    }
    __syncthreads();

    I* staged_keys = (I*)staged;
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) {
        if (mine + 32 * r >= count) continue;
        place[r] += tally[warp][digit_of(key[r], shift, digits)];
        staged_keys[place[r]] = key[r];
    }
    __syncthreads();
    for (u32 s = threadIdx.x; s < here; s += 256) {
        const I k = staged_keys[s];
        const u32 digit = digit_of(k, shift, digits);
        digit_at[s] = (u8)digit;
        if (z_keys) {
            z_keys[shift_of[digit] + s] = k;
        } else {
            // all lesser digits are in order: equal columns stand together
            const bool begins = s == 0 || staged_keys[s - 1] != k;
            const bool ends = s + 1 == here || staged_keys[s + 1] != k;
            if (begins || ends)
                atomicAdd(lengths + k + 1, (Q)((ends ? s + 1 : 0) - (Q)(begins ? s : 0)));
        }
    }
    __syncthreads();

    N* staged_rows = (N*)staged;
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) {
        const i64 e = mine + 32 * r;
        if (e < count)
            staged_rows[place[r]] = rows ? load_once(rows + e) : (N)row_of(indptr, tiles, e);
    }
    __syncthreads();
    for (u32 s = threadIdx.x; s < here; s += 256)
        z_rows[shift_of[digit_at[s]] + s] = staged_rows[s];
    if (!VALUES) return;
    __syncthreads();

    V* staged_values = (V*)staged;
#pragma unroll
    for (int r = 0; r < ROUNDS; r++)
        if (mine + 32 * r < count) staged_values[place[r]] = load_once(values + mine + 32 * r);
    __syncthreads();
    for (u32 s = threadIdx.x; s < here; s += 256)
        z_values[shift_of[digit_at[s]] + s] = staged_values[s];
}
