// The copies of tiles to shared memory, and the synchronisation with the warps that read them. All
// warps of all blocks call.
//
// Feed::start begins the first copies; wait(tile) waits until the tile is there, and returns its address;
// done(tile) says that the calling warp has read it.

// two tiles of small values fit, or one of large ones
constexpr int BUFFERS = sizeof(U) > 4 ? 1 : 2;

#if !defined(HOST_SHIM) && __CUDA_ARCH__ >= 900
// No warp waits for another one: the last that is done with a buffer has it filled anew. Each warp
// counts itself (acquire and release) after all of its lanes have read, so that the copy comes after
// every read. Racecheck knows neither such counts nor that barriers wait for bulk copies: it gets the
// other Feed (tests/programs/sanitizers.py).
struct Feed {
    Shared parts, state; // of each buffer a barrier, and how often warps were done with it
    const char* hubs;
    u32 bytes;
    int count;

    static __device__ __forceinline__ Feed start(Quad* part, const U* hubs, i64 width, int count) {
        __shared__ u64 state[2 * BUFFERS];
        const Feed feed = {shared_address(part), shared_address(state), (const char*)hubs,
                           (u32)(width * sizeof(U)), count};
        if (threadIdx.x == 0) {
            for (int b = 0; b < BUFFERS; b++) {
                init_barrier(feed.at(b));
                store_shared<u64>(feed.at(b) + 8, 0);
            }
            barriers_are_set();
            for (int b = 0; b < BUFFERS && b < count; b++) feed.fill(b);
        }
        __syncthreads();
        return feed;
    }
    __device__ __forceinline__ Shared at(int tile) const { return state + 16 * (tile % BUFFERS); }
    __device__ __forceinline__ void fill(int tile) const {
        expect_bytes(at(tile), bytes);
        bulk_copy(parts + tile % BUFFERS * bytes, hubs + (i64)tile * bytes, bytes, at(tile));
    }
    __device__ __forceinline__ Shared wait(int tile) const {
        while (!phase_over(at(tile), tile / BUFFERS & 1)) {
        }
        return parts + tile % BUFFERS * bytes;
    }
    __device__ __forceinline__ void done(int tile) const {
        warp_sync();
        if (lane_id() != 0 || tile + BUFFERS >= count) return;
        const u32 all = (tile / BUFFERS + 1) * WARPS;
        if (add_shared(at(tile) + 8, 1) + 1 != all) return;
        bulk_copies_follow();
        fill(tile + BUFFERS);
    }
};
#else
// All threads copy a share, and meet before they read what the others have copied.
struct Feed {
    Quad* part;
    Shared parts;
    const Quad* hubs;
    u32 quads;
    int count;

    static __device__ __forceinline__ Feed start(Quad* part, const U* hubs, i64 width, int count) {
        const u32 quads = (u32)(width * sizeof(U) / 16);
        const Feed feed = {part, shared_address(part), (const Quad*)hubs, quads, count};
        feed.fill(0);
        return feed;
    }
    __device__ __forceinline__ void fill(int tile) const {
        const Quad* from = hubs + (i64)tile * quads;
        Quad* to = part + tile % BUFFERS * quads;
        for (u32 k = threadIdx.x; k < quads; k += blockDim.x) copy_quad(to + k, from + k);
    }
    __device__ __forceinline__ Shared wait(int tile) const {
        copies_done();
        __syncthreads(); // the tile is there, and all are done with the one before
        if (BUFFERS == 2 && tile + 1 < count) fill(tile + 1);
        return parts + tile % BUFFERS * quads * 16;
    }
    __device__ __forceinline__ void done(int tile) const {
        if (BUFFERS == 2 || tile + 1 == count) return;
        __syncthreads();
        fill(tile + 1);
    }
};
#endif
