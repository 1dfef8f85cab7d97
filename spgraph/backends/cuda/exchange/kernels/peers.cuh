// Barriers of several GPUs, of one process or of several, each with one cooperative grid: every GPU
// writes into the memory of its peers, and they meet on the devices, without the host.
//
// The preamble gives PEERS (how many, at most 8). A kernel sets `peers` before the first barrier.

// What peers write to, by ordinary stores and before they arrive, is there after the barrier. One
// round's four words are marked with the round, so that they need no order among themselves.

constexpr int WORDS_SENT = 4;
static_assert(PEERS * WORDS_SENT <= 32, "a lane for each word of each peer");

struct Inbox { // at the start of each GPU's memory for its peers; zero at first
    // by sender and parity of the round: the value above, the round in the low 16 bits
    u64 word[PEERS][2][WORDS_SENT];
    u64 lost; // 1 + the shard whose GPU did not come, or LAUNCH_LOST: everyone leaves
};

struct PeerBarrier { // of the blocks of one GPU; zero at first
    u32 arrived;
    u32 go;               // the outcome in the low two bits, changes with each barrier
    u64 heartbeat;        // block 0 changes it while it works alone
    u64 round;            // of the peers: goes on from launch to launch
    u64 mine[WORDS_SENT]; // what this GPU adds to the sums of the next barrier_all
    u32 turn;             // the top bit flips when all blocks have come to a barrier of their own
};

enum Outcome { PASSED = 0, DETOUR = 1, LOST = 2 };

struct Peers {
    int me;
    u64 memory[PEERS]; // where peers write; Inbox at its start
    PeerBarrier* barrier;
    u64 limit;             // nanoseconds that a wait may last
    u64 total[WORDS_SENT]; // the sums of the last barrier_all
};

__shared__ Peers peers;
__shared__ int outcome_of_block;

template <class T>
DEVICE T* in_memory_of(int q, i64 offset) {
    return reinterpret_cast<T*>(peers.memory[q] + (u64)offset);
}
DEVICE Inbox* inbox_of(int q) { return in_memory_of<Inbox>(q, 0); }

// A wait that may not last forever. All lanes of a warp call `expired`, now and then.
struct Patience {
    u64 limit, start = 0, beat = 0;
    MEMBER Patience(u64 limit) : limit(limit) {}
    MEMBER bool expired(u64 alive) {
        const u64 now = shuffle(globaltimer(), 0);
        if (start == 0 || alive != beat) start = now;
        beat = alive;
        return now - start > limit;
    }
};

// Let everyone know, once, that the GPU of shard `lost` did not come. A warp calls.
CALLED void give_up(u64 lost) {
    if (lane_id() < PEERS) store_relaxed_system(&inbox_of(lane_id())->lost, lost + 1);
    warp_sync();
}

// Warp 0 of block 0: lane 4 q + k sends word k (48 bits) to GPU q and gets the word that GPU q
// sends to this one. What the block wrote before the __syncthreads that precedes is there for q
// afterwards.
CALLED bool exchange(u64 sent, u64& got) {
    const int lane = lane_id(), q = lane / WORDS_SENT, k = lane % WORDS_SENT;
    const bool peer = q < PEERS && q != peers.me;
    got = q == peers.me ? sent : 0;
    const u64 round = shuffle(load_relaxed(&peers.barrier->round), 0) + 1, mark = round & 0xffff;
    fence_system();
    if (peer) store_relaxed_system(&inbox_of(q)->word[peers.me][round & 1][k], sent << 16 | mark);
    Inbox* const inbox = inbox_of(peers.me);
    Patience patience(peers.limit);
    for (u32 spins = 1; PEERS > 1; spins++) {
        const u64 word = peer ? load_acquire_system(&inbox->word[q][round & 1][k]) : mark;
        const u32 late = warp_ballot((word & 0xffff) != mark);
        if (!late) {
            if (peer) got = word >> 16;
            break;
        }
        if (spins & 63) continue;
        const bool lost = shuffle(load_acquire_system(&inbox->lost), 0) != 0;
        if (lost) return false;
        if (patience.expired(0)) {
            give_up((__ffs(late) - 1) / WORDS_SENT);
            return false;
        }
    }
    if (lane == 0) store_relaxed(&peers.barrier->round, round);
    warp_sync();
    return true;
}

// The sum of each of a peer's words over all peers, at every lane that has that word.
DEVICE u64 sum_of_peers(u64 word) {
#pragma unroll
    for (int distance = WORDS_SENT; distance < 32; distance *= 2)
        word += shuffle_xor(word, distance);
    return word;
}

// Wait until `done`, which blocks of this GPU make true; false if they do not within `limit`, or a
// GPU is lost. All lanes of a warp call.
template <class Done>
DEVICE bool wait_for_blocks(u64 limit, Done done) {
    Patience patience(limit);
    for (u32 spins = 1; !done(); spins++) {
        if (spins & 255) continue;
        __nanosleep(100);
        if (shuffle(load_acquire_system(&inbox_of(peers.me)->lost), 0)) return false;
        if (!patience.expired(shuffle(load_relaxed(&peers.barrier->heartbeat), 0))) continue;
        give_up(peers.me);
        return false;
    }
    return true;
}

// How long a block waits for the others of its GPU. Block 0 waits for peers meanwhile, half as
// long: it shall be the first to give up, since it knows which peer is missing.
DEVICE u64 limit_of_block() { return blockIdx.x ? 2 * peers.limit : peers.limit; }

// Warp 0 of block 0 waits for all blocks of this GPU; false if one is lost.
DEVICE bool all_arrived() {
    return wait_for_blocks(
        peers.limit, [] { return shuffle(load_acquire(&peers.barrier->arrived), 0) == gridDim.x; });
}

// A barrier of all blocks of all GPUs: warp 0 of block 0 calls `talk`, which exchanges with the
// peers or says that one is lost, and what it stores is there for all. If *detour is not zero, this
// GPU's blocks meet only each other, whatever the peers do: DETOUR. LOST: the kernel must end.
template <class Talk>
DEVICE int barrier_and(Talk talk, const u64* detour) {
    __syncthreads();
    if (threadIdx.x < 32) {
        const int lane = threadIdx.x;
        PeerBarrier* const barrier = peers.barrier;
        const u32 old = shuffle(load_relaxed(&barrier->go), 0);
        if (lane == 0) {
            fence_system();
            atomicAdd(&barrier->arrived, 1u);
        }
        int outcome = PASSED;
        if (blockIdx.x == 0) {
            if (!all_arrived())
                outcome = LOST;
            else if (detour && shuffle(load_relaxed(detour), 0))
                outcome = DETOUR;
            else if (!talk())
                outcome = LOST;
            warp_sync();
            if (lane == 0) {
                store_relaxed(&barrier->arrived, 0u);
                store_release(&barrier->go, ((old >> 2) + 1) << 2 | (u32)outcome);
            }
        } else {
            u32 go = old;
            const bool came = wait_for_blocks(limit_of_block(), [&] {
                go = shuffle(load_acquire(&barrier->go), 0);
                return go != old;
            });
            outcome = came ? (int)(go & 3) : LOST;
        }
        if (lane == 0) outcome_of_block = outcome;
    }
    __syncthreads();
    return outcome_of_block;
}

// A barrier of all blocks of this GPU, without its peers: PASSED or LOST.
CALLED int barrier_local() {
    __syncthreads();
    if (threadIdx.x < 32) {
        PeerBarrier* const barrier = peers.barrier;
        // the last arrival, whichever it is, makes the sum of all shares 0x80000000
        const u32 share = blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1) : 1u;
        u32 before = 0;
        if (lane_id() == 0) {
            __threadfence();
            before = atomicAdd(&barrier->turn, share);
        }
        before = shuffle(before, 0);
        const bool came = wait_for_blocks(limit_of_block(), [&] {
            return (before ^ shuffle(load_acquire(&barrier->turn), 0)) & 0x80000000u;
        });
        if (lane_id() == 0) outcome_of_block = came ? PASSED : LOST;
    }
    __syncthreads();
    return outcome_of_block;
}

// A barrier of all blocks of all GPUs; `peers.total` gets the sums over the GPUs of
// `barrier->mine`, which is zero again: PASSED or LOST. Each block reads what the peers have sent
// itself, which is earlier than to wait for its block 0.
CALLED int barrier_all() {
    __syncthreads();
    if (threadIdx.x < 32) {
        const int lane = threadIdx.x, q = lane / WORDS_SENT, k = lane % WORDS_SENT;
        const bool peer = q < PEERS; // this GPU's own word comes the same way
        PeerBarrier* const barrier = peers.barrier;
        Inbox* const inbox = inbox_of(peers.me);
        const u64 round = shuffle(load_relaxed(&barrier->round), 0) + 1, mark = round & 0xffff;
        if (lane == 0) {
            fence_system();
            atomicAdd(&barrier->arrived, 1u);
        }
        int outcome = PASSED;
        if (blockIdx.x == 0 && !all_arrived()) outcome = LOST;
        if (blockIdx.x == 0 && outcome == PASSED) {
            const u64 sent = load_relaxed(&barrier->mine[k]);
            warp_sync();
            if (lane < WORDS_SENT) store_relaxed(&barrier->mine[lane], (u64)0);
            if (lane == 0) {
                store_relaxed(&barrier->arrived, 0u);
                store_relaxed(&barrier->round, round);
            }
            warp_sync();
            fence_system();
            if (peer)
                store_relaxed_system(&inbox_of(q)->word[peers.me][round & 1][k], sent << 16 | mark);
        }
        u64 got = 0;
        Patience patience(limit_of_block());
        for (u32 spins = 1; outcome == PASSED; spins++) {
            const u64 word = peer ? load_acquire_system(&inbox->word[q][round & 1][k]) : mark;
            const u32 late = warp_ballot((word & 0xffff) != mark);
            got = word >> 16;
            if (!late) break;
            if (spins & 63) continue;
            if (shuffle(load_acquire_system(&inbox->lost), 0)) outcome = LOST;
            if (outcome == PASSED && patience.expired(0)) {
                give_up((__ffs(late) - 1) / WORDS_SENT);
                outcome = LOST;
            }
        }
        got = sum_of_peers(got);
        if (lane < WORDS_SENT) peers.total[lane] = got;
        if (lane == 0) outcome_of_block = outcome;
    }
    __syncthreads();
    return outcome_of_block;
}
