// Barriers of several GPUs, of one process or of several, each with one cooperative grid: every GPU
// writes into the memory of its peers, and they meet on the devices, without the host.
//
// The preamble gives PEERS (how many, at most 8). A kernel calls set_peers before the first barrier.

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

// All threads of a block call. memory[q]: where this GPU has the memory of GPU q.
DEVICE void set_peers(const u64* memory, i64 me, PeerBarrier* barrier, u64 limit) {
    if (threadIdx.x < PEERS) peers.memory[threadIdx.x] = memory[threadIdx.x];
    if (threadIdx.x == 0) {
        peers.me = (int)me;
        peers.barrier = barrier;
        peers.limit = limit;
    }
    __syncthreads();
}

template <class T>
DEVICE T* in_memory_of(int q, i64 offset) {
    return reinterpret_cast<T*>(peers.memory[q] + (u64)offset);
}
// Where GPU q has what lies here at `own`, which is at the same place in the memory of all.
template <class T>
DEVICE T* at_peer(int q, T* own) {
    return reinterpret_cast<T*>((u64)own + (peers.memory[q] - peers.memory[peers.me]));
}
DEVICE Inbox* inbox_of(int q) { return in_memory_of<Inbox>(q, 0); }

// Let everyone know, once, that the GPU of shard `lost` did not come. A warp calls.
CALLED void give_up(u64 lost) {
    if (lane_id() < PEERS) store_relaxed_system(&inbox_of(lane_id())->lost, lost + 1);
    warp_sync();
}

// Wait until done(), which is looked at SPINS times before anything else is; false if a GPU is lost, or
// nothing is done within `limit` nanoseconds while block 0 changes nothing: then missing() is the shard
// whose GPU did not come. All lanes of a warp call.
template <u32 SPINS, class Done, class Missing>
DEVICE bool wait_until(u64 limit, Done done, Missing missing) {
    u64 start = 0, beat = 0;
    for (u32 spins = 1; !done(); spins++) {
        if (spins % SPINS) continue;
        if (SPINS > 64) __nanosleep(100);
        if (warp_any(load_acquire_system(&inbox_of(peers.me)->lost))) return false;
        const u64 now = globaltimer(), alive = load_relaxed(&peers.barrier->heartbeat);
        if (start == 0 || alive != beat) start = now;
        beat = alive;
        if (!warp_any(now - start > limit)) continue;
        give_up(missing());
        return false;
    }
    return true;
}

// How long a block waits for the others of its GPU. Block 0 waits for peers meanwhile, half as
// long: it shall be the first to give up, since it knows which peer is missing.
DEVICE u64 limit_of_block() { return blockIdx.x ? 2 * peers.limit : peers.limit; }

// Wait until `done`, which blocks of this GPU make true.
template <class Done>
DEVICE bool wait_for_blocks(u64 limit, Done done) {
    return wait_until<256>(limit, done, [] { return (u64)peers.me; });
}

// The number of the next exchange with the peers. All lanes of a warp call.
DEVICE u64 next_round() { return shuffle(load_relaxed(&peers.barrier->round), 0) + 1; }

// Warp 0 of block 0: lane 4 q + k sends word k (48 bits) to GPU q, which may be this one. What the block
// wrote before the __syncthreads that precedes is there for q when it has the word.
DEVICE void send_words(u64 round, u64 word) {
    const int lane = lane_id(), q = lane / WORDS_SENT, k = lane % WORDS_SENT;
    fence_system();
    if (q < PEERS)
        store_relaxed_system(&inbox_of(q)->word[peers.me][round & 1][k],
                             word << 16 | (round & 0xffff));
}

// A warp: lane 4 q + k gets word k that GPU q sends to this one. False if one does not come.
DEVICE bool receive_words(u64 round, u64 limit, u64& got) {
    const int lane = lane_id(), q = lane / WORDS_SENT, k = lane % WORDS_SENT;
    const u64 mark = round & 0xffff;
    const Inbox* const inbox = inbox_of(peers.me);
    u32 late = 0;
    return wait_until<64>(
        limit,
        [&] {
            const u64 word = q < PEERS ? load_acquire_system(&inbox->word[q][round & 1][k]) : mark;
            late = warp_ballot((word & 0xffff) != mark);
            got = word >> 16;
            return !late;
        },
        [&] { return (u64)((__ffs(late) - 1) / WORDS_SENT); });
}

// Warp 0 of block 0 sends its words and gets those of the peers.
CALLED bool exchange(u64 sent, u64& got) {
    const u64 round = next_round();
    send_words(round, sent);
    if (!receive_words(round, peers.limit, got)) return false;
    if (lane_id() == 0) store_relaxed(&peers.barrier->round, round);
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

// What warp 0 of the block gets of meet(), for all threads of the block, which have all come before.
template <class Meet>
DEVICE int by_warp_0(Meet meet) {
    __syncthreads();
    if (threadIdx.x < 32) {
        const int outcome = meet();
        if (lane_id() == 0) outcome_of_block = outcome;
    }
    __syncthreads();
    return outcome_of_block;
}

// A block has come to a barrier of all GPUs; with its writes, for those as well.
DEVICE void arrive() {
    if (lane_id() != 0) return;
    fence_system();
    atomicAdd(&peers.barrier->arrived, 1u);
}

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
    return by_warp_0([&]() -> int {
        PeerBarrier* const barrier = peers.barrier;
        const u32 old = shuffle(load_relaxed(&barrier->go), 0);
        arrive();
        if (blockIdx.x) {
            u32 go = old;
            const bool came = wait_for_blocks(limit_of_block(), [&] {
                go = shuffle(load_acquire(&barrier->go), 0);
                return go != old;
            });
            return came ? (int)(go & 3) : LOST;
        }
        int outcome = PASSED;
        if (!all_arrived())
            outcome = LOST;
        else if (detour && shuffle(load_relaxed(detour), 0))
            outcome = DETOUR;
        else if (!talk())
            outcome = LOST;
        warp_sync();
        if (lane_id() == 0) {
            store_relaxed(&barrier->arrived, 0u);
            store_release(&barrier->go, ((old >> 2) + 1) << 2 | (u32)outcome);
        }
        return outcome;
    });
}

// A barrier of all blocks of this GPU, without its peers: PASSED or LOST.
CALLED int barrier_local() {
    return by_warp_0([]() -> int {
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
        return came ? PASSED : LOST;
    });
}

// A barrier of all blocks of all GPUs; `peers.total` gets the sums over the GPUs of
// `barrier->mine`, which is zero again: PASSED or LOST. Each block reads what the peers have sent
// itself, which is earlier than to wait for its block 0.
CALLED int barrier_all() {
    return by_warp_0([]() -> int {
        const int lane = lane_id();
        PeerBarrier* const barrier = peers.barrier;
        const u64 round = next_round();
        arrive();
        if (blockIdx.x == 0) {
            if (!all_arrived()) return LOST;
            const u64 sent = load_relaxed(&barrier->mine[lane % WORDS_SENT]);
            warp_sync();
            if (lane < WORDS_SENT) store_relaxed(&barrier->mine[lane], (u64)0);
            if (lane == 0) {
                store_relaxed(&barrier->arrived, 0u);
                store_relaxed(&barrier->round, round);
            }
            warp_sync();
            send_words(round, sent);
        }
        u64 got;
        if (!receive_words(round, limit_of_block(), got)) return LOST;
        got = sum_of_peers(got);
        if (lane < WORDS_SENT) peers.total[lane] = got;
        return PASSED;
    });
}
