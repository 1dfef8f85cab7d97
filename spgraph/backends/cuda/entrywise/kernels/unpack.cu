// The entries of a bitmap as a list, in order. Each block takes an equal share of the words.
// Preamble: types T (an unsigned number of as many bytes as a value), N (ids), O (64 bits).

constexpr int WARPS = 8; // of a block
#include "block_scan.cuh"

struct Share {
    i64 first, last; // words
    MEMBER Share(i64 words) {
        const i64 each = (words + gridDim.x - 1) / gridDim.x;
        first = each * blockIdx.x;
        last = first + each < words ? first + each : words;
    }
};

// counts[b] = how many bits are set in the words of block b.
extern "C" __global__ void __launch_bounds__(256)
    unpack_count(const u32* bits, i64 words, i64* counts) {
    const Share own(words);
    O count = 0, before, all;
    u32 none, no;
    for (i64 w = own.first + threadIdx.x; w < own.last; w += blockDim.x) count += __popc(bits[w]);
    block_scan(0, count, none, before, no, all);
    if (threadIdx.x == 0) counts[blockIdx.x] = all;
}

// The ids and values of all entries, by as many blocks as have counted.
extern "C" __global__ void __launch_bounds__(256)
    unpack(const u32* bits, i64 words, const i64* counts, const T* values, N* ids, T* z) {
    const Share own(words);
    O sum = 0, before, at;
    u32 slot, total;
    for (u32 b = threadIdx.x; b < blockIdx.x; b += blockDim.x) sum += counts[b];
    block_scan(0, sum, slot, before, total, at);
    for (i64 base = own.first; base < own.last; base += blockDim.x) {
        const i64 w = base + threadIdx.x;
        u32 word = w < own.last ? bits[w] : 0;
        O none, no;
        __syncthreads();
        block_scan(__popc(word), 0, slot, none, total, no);
        for (i64 to = at + slot; word; word &= word - 1, to++) {
            const i64 i = 32 * w + __ffs(word) - 1;
            ids[to] = i;
            z[to] = values[i];
        }
        at += total;
    }
}
