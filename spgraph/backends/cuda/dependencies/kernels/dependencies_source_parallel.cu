// Dependencies as in dependencies.cu, of many sources in a small graph: every block takes sources of
// its own, finds their levels and numbers of paths by a search, then the dependencies. Blocks never
// wait for each other.
//
// Preamble: as there.

#include "dependencies_steps.cuh"

// a source that reaches less than one of so many vertices is forgotten by the list of them
constexpr i64 FEW = 8;

__shared__ u64 found[2]; // vertices and their edges, as queue_allocate packs them; in-edges

// Append the vertices that lanes have found to `order`.
CALLED void append(bool first, I v, u32 count_bits) {
    const O degree = first ? s.indptr[v + 1] - s.indptr[v] : 0;
    const Place place = queue_allocate(first, (u64)degree, &found[0], count_bits);
    if (first) {
        s.order[place.slot] = v;
        s.offset[place.slot] = (O)place.edge;
    }
    if (s.t_indptr == s.indptr) return;
    warp_add(&found[1], first ? (i64)(s.t_indptr[v + 1] - s.t_indptr[v]) : 0);
}

// A step of the search: the vertices of level `depth`, and the paths that lead to them, along the
// out-edges of the level before.
struct Finder : Sender {
    double* paths;
    L depth;
    u32 count_bits;
    template <bool ONE>
    MEMBER void take(const int (&owner)[EACH], const O (&entry)[EACH], const bool (&open)[EACH]) {
        I v[EACH];
        L level[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++) v[k] = open[k] ? indices[entry[k]] : -1;
#pragma unroll
        for (int k = 0; k < EACH; k++) level[k] = v[k] >= 0 ? load_relaxed(&s.level[v[k]]) : 0;
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            bool first = false;
            if (v[k] >= 0 && level[k] < 0) {
                typedef Bits<L> B;
                level[k] = from_bits<L>(
                    atomicCAS((B*)&s.level[v[k]], to_bits<L>((L)-1), to_bits<L>(depth)));
                first = level[k] < 0;
            }
            const double term = x ? shuffle(mine, owner[k]) : 0.0;
            if (x && v[k] >= 0 && (first || level[k] == depth)) atomicAdd(paths + v[k], term);
            append(first, v[k], count_bits);
        }
    }
};

// Vertex v is as if no source had reached it.
CALLED void forget(I v) {
    s.level[v] = -1;
    s.paths[v] = s.paths[s.n + v] = s.share[v] = s.share[s.n + v] = N();
}

// All levels from a source, by one block; how many there are. Paths are counted on the way, unless they
// are EXTENDED or not asked for. `forgotten`: no vertex has a level or a path before.
CALLED i64 find(Team team, i64 source, u32 count_bits, bool forgotten) {
    const bool symmetric = s.t_indptr == s.indptr;
    for (i64 v = threadIdx.x; v < s.n && !forgotten; v += blockDim.x) {
        s.level[v] = -1;
        if (s.paths) s.paths[v] = s.paths[s.n + v] = N();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        s.level[source] = 0;
        if (s.paths) s.paths[source] = number(1.0);
        const i64 out = s.indptr[source + 1] - s.indptr[source];
        const i64 in = s.t_indptr[source + 1] - s.t_indptr[source];
        s.order[0] = (I)source;
        s.offset[0] = 0;
        s.ranges[0] = {0, 0, 0};
        s.ranges[1] = {1, out, in};
        found[0] = ((u64)out << count_bits) + 1;
        found[1] = (u64)in;
    }
    __syncthreads();
    i64 depth = 0;
    for (LevelRange a = s.ranges[0], b = s.ranges[1]; b.start > a.start;) {
        depth++;
        Finder worker = {s.indptr, s.offset, s.order,  s.indices, nullptr,
                         0.0,      nullptr,  (L)depth, count_bits};
#if !EXTENDED
        if (s.paths) {
            worker.x = s.row(s.paths, depth - 1);
            worker.paths = s.row(s.paths, depth);
        }
#endif
        share_edges(team, a.start, b.start, a.out, b.out, worker);
        __syncthreads();
        const i64 out = (i64)queue_edges(found[0], count_bits);
        const LevelRange c = {(i64)queue_count(found[0], count_bits), out,
                              symmetric ? out : (i64)found[1]};
        __syncthreads();
        if (threadIdx.x == 0) s.ranges[depth + 1] = c;
        a = b;
        b = c;
    }
    __syncthreads();
    return depth;
}

// Where `score` is null only levels are computed: there is a row of `level` for each source, and no
// `paths`. Otherwise there is a row for each block.
extern "C" __global__ void __launch_bounds__(1024)
    source_parallel(i64 n, const O* indptr, const I* indices, const O* t_indptr, const I* t_indices,
                    const i64* sources, i64 number_of_sources, u32 count_bits, L* level, I* order,
                    O* offset, LevelRange* ranges, N* paths, N* share, u8* overflow,
                    double* score) {
    const i64 b = blockIdx.x;
    const Team team = {warp_id(), warps_of_block()};
    __shared__ u64 over;
    bool forgotten = false; // all that sources before this one have reached
    for (i64 k = b; k < number_of_sources; k += gridDim.x) {
        if (threadIdx.x == 0) {
            O* offsets = offset + b * (n + 1);
            s = {n,
                 indptr,
                 indices,
                 t_indptr,
                 t_indices,
                 level + (score ? b : k) * n,
                 order + b * n,
                 offsets,
                 t_indptr == indptr ? offsets : nullptr,
                 ranges + b * (n + 2),
                 paths ? paths + b * 2 * n : nullptr,
                 share + b * 2 * n,
                 &over,
                 nullptr,
                 false};
            over = 0;
        }
        __syncthreads();
        const i64 levels = find(team, sources[k], count_bits, forgotten);
        if (!score) continue;
#if EXTENDED
        for (i64 d = 1; d < levels; d++) {
            count_paths<false>(team, d, s.ranges[d - 1], s.ranges[d], s.ranges[d + 1]);
            __syncthreads();
        }
#endif
        for (i64 i = threadIdx.x; i < 2 * n && !forgotten; i += blockDim.x) s.share[i] = N();
        __syncthreads();
        for (i64 d = levels - 1; d > 0; d--) {
            const LevelRange x = s.ranges[d], y = s.ranges[d + 1];
            bool settled = false;
            if (d + 1 < levels) {
                settled = carry_shares<false>(team, d, x, y, s.ranges[d + 2]);
                __syncthreads();
            }
            if (!settled) {
                settle_level(team, d, x, y);
                __syncthreads();
            }
        }
        const i64 reached = s.ranges[levels].start;
        const auto add = [&](i64 v) {
            if (!over && s.level[v] > 0) atomicAdd(score + v, dependency(v, s.level[v]));
        };
        if (over && threadIdx.x == 0) overflow[k] = 1;
        forgotten = FEW * reached < n;
        if (forgotten) {
            for (i64 i = threadIdx.x; i < reached; i += blockDim.x) {
                add(s.order[i]);
                forget(s.order[i]);
            }
        } else {
            for (i64 v = threadIdx.x; v < n; v += blockDim.x) add(v);
        }
        __syncthreads();
    }
}
