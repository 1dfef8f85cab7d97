// Hook and compress: the components of a graph in a few launches. `label` is a forest: label[v] <=
// v leads to a smaller vertex of the same component, a root to itself; in the end every vertex
// leads straight to the smallest.
//
//   start      every vertex under its least neighbour, where that is smaller
//   hook       one more edge of every vertex
//   compress   every vertex under its root; then a vote: which root do most edges lead to, the
//              giant?
//   mark       directed graphs only: a bitmap of the vertices under the giant
//   rest       the other edges; those inside of the giant change nothing
//   rest_long  what `rest` has left of long rows
//   compress   again
//
// In an undirected graph the edges of the giant's vertices are not even read: the one that leads
// out stands at its other end, too. Threads see old labels now and then; an old label is an
// ancestor all the same, and only compare and swap makes a root lead elsewhere.
//
// Preamble: types I (ids), O (offsets), L (labels).

#include "union_find.cuh"

constexpr int EACH = 4;        // accesses that a thread has in flight
constexpr int SAMPLES = 1024;  // edges that vote
constexpr int LONG_ROW = 2048; // a longer row is cut into pieces of as many edges, a warp for each
constexpr int WARPS = 8;       // of a block

struct Piece { // of a long row: from an edge on
    i64 row, edge;
};

struct Control { // as contract.py allocates it
    u64 pieces;
    u64 arrived; // blocks of `compress` that are done
    i64 giant;   // -1 where there are no edges
};

// How many edges of row v, the first of which leads to u, `start` and `hook` follow.
DEVICE int followed(i64 v, I u) { return u <= v ? 2 : 1; }

extern "C" __global__ void start(i64 n, const O* indptr, const I* indices, L* label, L* other,
                                 Control* control) {
    if (thread_id() == 0) *control = {0, 0, -1};
    for (i64 v = thread_id(); v < n; v += thread_count()) {
        const O first = indptr[v], last = indptr[v + 1];
        // rows ascend: the first neighbour is the least
        const I u = first < last ? indices[first] : (I)v;
        const I w = first + 1 < last ? indices[first + 1] : (I)v;
        const bool down = followed(v, u) == 2;
        label[v] = down ? u : v;
        other[v] = down ? w : u;
    }
}

extern "C" __global__ void hook(i64 n, const L* other, L* label) {
    for (i64 v = thread_id(); v < n; v += thread_count()) {
        const L u = other[v];
        if (u != v) union_trees(label, (L)v, u);
    }
}

// Boyer and Moore's vote: whoever has more than half of all votes is the candidate in the end.
struct Votes {
    L candidate;
    int count;
    __device__ __forceinline__ void add(L other, int more) {
        if (other == candidate) {
            count += more;
        } else if (count >= more) {
            count -= more;
        } else {
            candidate = other;
            count = more - count;
        }
    }
};

// The giant, by one block of 32 * WARPS threads: the candidate of a sample of the edges. Any vertex
// would do; the root that most edges lead to saves the most.
DEVICE void elect(i64 m, const I* indices, const L* label, Control* control) {
    __shared__ Votes elected[WARPS];
    Votes votes = {0, 0};
    const i64 samples = m < SAMPLES ? m : SAMPLES;
    for (i64 k = threadIdx.x; k < samples; k += blockDim.x)
        votes.add(load_relaxed(label + indices[m / samples * k]), 1);
    for (int distance = 16; distance; distance /= 2)
        votes.add(shuffle_xor(votes.candidate, distance), shuffle_xor(votes.count, distance));
    if (lane_id() == 0) elected[warp_id()] = votes;
    __syncthreads();
    if (threadIdx.x) return;
    for (int warp = 1; warp < WARPS; warp++)
        votes.add(elected[warp].candidate, elected[warp].count);
    if (m) control->giant = votes.candidate;
}

// All blocks run at the same time, so that what is below a vertex is done, or being done.
extern "C" __global__ void compress(i64 n, i64 m, const I* indices, L* label, Control* control,
                                    int vote) {
    const i64 stride = thread_count();
    for (i64 base = thread_id(); base < n; base += EACH * stride) {
        L above[EACH], next[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const i64 v = base + k * stride;
            above[k] = v < n ? load_lagging(label + v) : 0;
        }
#pragma unroll
        for (int k = 0; k < EACH; k++) next[k] = load_lagging(label + above[k]);
#pragma unroll
        for (int k = 0; k < EACH; k++)
            // a thread writes its own labels only, so that none gets a worse one in the end
            for (int hops = 1; next[k] != above[k]; hops++) {
                store_relaxed(label + base + k * stride, next[k]);
                above[k] = next[k];
                next[k] = look(label, above[k], hops);
            }
    }
    if (!vote) return;
    __shared__ bool last;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicAdd(&control->arrived, 1ull) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (last) elect(m, indices, label, control);
}

extern "C" __global__ void mark(i64 n, const L* label, const Control* control, u32* inside) {
    write_bits(n, inside, [=](i64 v) { return label[v] == control->giant; });
}

// Unite the ends of the edges from `from` to u, a lane's EACH; -1 stands for none. `inside` is null
// in undirected graphs.
DEVICE void union_all(const L (&from)[EACH], const I (&u)[EACH], L* label, const u32* inside) {
    bool outside[EACH];
#pragma unroll
    for (int k = 0; k < EACH; k++) outside[k] = u[k] >= 0 && !(inside && test_bit(inside, u[k]));
#pragma unroll
    for (int k = 0; k < EACH; k++)
        if (u[k] >= 0 && (outside[k] || !test_bit(inside, from[k])))
            union_trees(label, from[k], (L)u[k]);
}

// A warp takes 32 rows, and its lanes share all their edges.
extern "C" __global__ void rest(i64 n, const O* indptr, const I* indices, L* label,
                                const u32* inside, Control* control, Piece* pieces) {
    const i64 giant = control->giant;
    for (i64 base = thread_id() - lane_id(); base < n; base += thread_count()) {
        const i64 v = base + lane_id();
        O first = 0, degree = 0;
        if (v < n && (inside || load_lagging(label + v) != giant)) {
            first = indptr[v];
            const O last = indptr[v + 1];
            if (last - first > 1) {
                first += followed(v, indices[first]);
                degree = last - first;
            }
        }
        if (degree > LONG_ROW) {
            const i64 count = ((i64)degree + LONG_ROW - 1) / LONG_ROW;
            const u64 place = atomicAdd(&control->pieces, (u64)count);
            for (i64 k = 0; k < count; k++) pieces[place + k] = {v, (i64)first + k * LONG_ROW};
            degree = 0;
        }
        const O upto = warp_scan(degree), before = upto - degree, total = shuffle(upto, 31);
        for (O begin = 0; begin < total; begin += 32 * EACH) {
            L from[EACH];
            I u[EACH];
#pragma unroll
            for (int k = 0; k < EACH; k++) {
                const O x = begin + 32 * k + lane_id();
                const int owner = warp_search(before, x);
                const O e = shuffle((O)(first - before), owner) + x;
                from[k] = (L)(base + owner);
                u[k] = x < total ? indices[e] : -1;
            }
            union_all(from, u, label, inside);
        }
    }
}

extern "C" __global__ void rest_long(const O* indptr, const I* indices, L* label, const u32* inside,
                                     const Control* control, const Piece* pieces) {
    for (u64 p = thread_id() >> 5; p < control->pieces; p += thread_count() >> 5) {
        const i64 v = pieces[p].row, begin = pieces[p].edge, last = indptr[v + 1];
        const i64 end = last - begin > LONG_ROW ? begin + LONG_ROW : last;
        for (i64 base = begin + lane_id(); base < end; base += 32 * EACH) {
            L from[EACH];
            I u[EACH];
#pragma unroll
            for (int k = 0; k < EACH; k++) {
                from[k] = (L)v;
                u[k] = base + 32 * k < end ? indices[base + 32 * k] : -1;
            }
            union_all(from, u, label, inside);
        }
    }
}
