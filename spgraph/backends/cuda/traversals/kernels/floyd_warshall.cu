// Distances between all vertices by Floyd and Warshall, in tiles of TILE x TILE. For every TILE vertices
// that paths may newly pass through, three launches: the paths between these vertices, then those from
// or to one of them, then all others. A thread block is a tile, a thread an entry.
//
// `distance`, n x n, holds lengths and becomes distances; `parents`, where it is not null, the vertex
// before the last. Preamble: TILE.

struct Tile {
    double x[TILE][TILE];
    int parent[TILE][TILE];
};

DEVICE bool inside(i64 n, i64 row, i64 column) { return row < n && column < n; }

// Load one entry of a tile into shared memory; entries outside the matrix are infinite.
DEVICE void fetch(Tile& tile, const double* distance, const int* parents, i64 n, i64 row,
                  i64 column, int i, int j) {
    const bool there = inside(n, row, column);
    tile.x[i][j] = there ? distance[row * n + column] : 1.0 / 0.0;
    if (parents) tile.parent[i][j] = there ? parents[row * n + column] : -9999;
}

// Relax the tile `own` through the TILE vertices, which are its own rows (of `beyond`) or columns (of
// `before`), or both.
DEVICE void relax(Tile& own, const Tile& before, const Tile& beyond, bool wants, int i, int j) {
    for (int k = 0; k < TILE; ++k) {
        __syncthreads();
        const double z = before.x[i][k] + beyond.x[k][j];
        const int parent = wants ? beyond.parent[k][j] : 0;
        __syncthreads(); // all have read before one writes
        if (z < own.x[i][j]) {
            own.x[i][j] = z;
            if (wants) own.parent[i][j] = parent;
        }
    }
    __syncthreads();
}

DEVICE void put(const Tile& tile, double* distance, int* parents, i64 n, i64 row, i64 column, int i,
                int j) {
    if (!inside(n, row, column)) return;
    distance[row * n + column] = tile.x[i][j];
    if (parents) parents[row * n + column] = tile.parent[i][j];
}

extern "C" __global__ void __launch_bounds__(TILE* TILE)
    diagonal(double* distance, int* parents, i64 n, i64 b) {
    __shared__ Tile own;
    const int i = threadIdx.x / TILE, j = threadIdx.x % TILE;
    const i64 row = b * TILE + i, column = b * TILE + j;
    fetch(own, distance, parents, n, row, column, i, j);
    relax(own, own, own, parents != 0, i, j);
    put(own, distance, parents, n, row, column, i, j);
}

// The tiles of row b, then those of column b.
extern "C" __global__ void __launch_bounds__(TILE* TILE)
    cross(double* distance, int* parents, i64 n, i64 b) {
    __shared__ Tile own, stations;
    const int i = threadIdx.x / TILE, j = threadIdx.x % TILE;
    const i64 blocks = (n + TILE - 1) / TILE, other = blockIdx.x % blocks;
    const bool across = blockIdx.x < blocks;
    if (other == b) return;
    const i64 row = (across ? b : other) * TILE + i, column = (across ? other : b) * TILE + j;
    fetch(own, distance, parents, n, row, column, i, j);
    fetch(stations, distance, parents, n, b * TILE + i, b * TILE + j, i, j);
    relax(own, across ? stations : own, across ? own : stations, parents != 0, i, j);
    put(own, distance, parents, n, row, column, i, j);
}

// All others.
extern "C" __global__ void __launch_bounds__(TILE* TILE)
    floyd_warshall(double* distance, int* parents, i64 n, i64 b) {
    __shared__ Tile before, beyond;
    const int i = threadIdx.x / TILE, j = threadIdx.x % TILE;
    const i64 blocks = (n + TILE - 1) / TILE, r = blockIdx.x / blocks, c = blockIdx.x % blocks;
    if (r == b || c == b) return;
    const i64 row = r * TILE + i, column = c * TILE + j;
    fetch(before, distance, parents, n, row, b * TILE + j, i, j);
    fetch(beyond, distance, parents, n, b * TILE + i, column, i, j);
    __syncthreads();
    if (!inside(n, row, column)) return;
    double least = distance[row * n + column];
    int at = -1;
    for (int k = 0; k < TILE; ++k) {
        const double z = before.x[i][k] + beyond.x[k][j];
        if (z < least) {
            least = z;
            at = k;
        }
    }
    if (at < 0) return;
    distance[row * n + column] = least;
    if (parents) parents[row * n + column] = beyond.parent[at][j];
}
