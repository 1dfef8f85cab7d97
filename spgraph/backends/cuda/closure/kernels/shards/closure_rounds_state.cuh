// The state of a shard of a closure in rounds, and the exchange; closure_none.cuh says what an
// exchange is. What a round sends lies in pairs, of which the host takes care.

#ifndef ALONE // the most steps of a launch
#define ALONE 128
#endif

#ifndef SATURATED_EDGES // a shard goes on alone while its queue has fewer edges
#define SATURATED_EDGES (1 << 19)
#endif

enum Action { BEGIN = 1, SOURCES = 2, BUCKETS = 4, UNDERCUT = 8 }; // 0: relax
enum Count { QUEUED, EDGES, NEAR, LOOKED, FOUND, FLAGS, BEST, BEST_HIGH, SENT };
constexpr int COUNTS = SENT + PEERS;
// what an action after this one is for, where all shards have the flag: see publish_counts
enum Flag { WAS_UNDERCUT = 1, LOST = 2, LAST = 4, ENDS_THRESHOLD = 8, UNSETTLED = 16 };

// An id and a value, in words of 32 bits side by side.
constexpr int ID_WORDS = sizeof(I) / 4, VALUE_WORDS = sizeof(Z) < 4 ? 1 : sizeof(Z) / 4;
constexpr int PAIR = ID_WORDS + VALUE_WORDS;

struct RoundControl : ShardControl { // zero before a launch that begins a closure
    u32 arrived;
    // of the launch before:
    u32 at;          // its step
    bool had_bucket; // whether it began a bucket, up to `next`
    Z next;
    Limits limits; // without that bucket
    Progress progress;
};
static_assert(sizeof(RoundControl) <= 512 + 8 * PEERS, "closure_rounds.py gives it no more");

struct Given : GivenShard {
    u32* pairs; // those for a shard lie where its vertices would
    RoundControl* control;
    u64* counts;        // of the last launch, on the device;
    u64* host_counters; // on the host, with the round in the low 16 bits
};

struct Totals { // over all shards, of the launch before
    i64 found, edges, looked;
    Z best;
};

struct RoundClosure : ShardClosure {
    Given given;
    Limits decided; // the limits, without a bucket that this launch begins, up to `next`
    Z next;
    i64 found;     // vertices of that bucket
    bool undercut; // on some shard
};

__shared__ RoundClosure s;

#include "closure_shards_exchange.cuh"

CALLED bool meet_blocks();

struct Exchange : ShardExchange {
    static constexpr int SHARDS = PEERS, TOGETHER = 1;
    static constexpr bool PULLS_TWICE = false;
    static constexpr i64 ROUNDS_PER_VERTEX = 1, WIDENING_EDGES = 1 << 23;
    DEVICE void send_at_once(bool wanted, I v, Z) {
        if (wanted) mark_changed(v);
    }
    DEVICE int receive_local(Ring&, u32&, int held) { return held; }
    DEVICE bool meet_here() { return meet_blocks(); }
    DEVICE bool meet_all(bool) { return meet_blocks(); }
    DEVICE void publish() {} // the host has gathered all values
    DEVICE bool was_undercut() { return s.undercut; }
};

// A place for pairs for shard q.
struct Outbox {
    static constexpr i64 free = 1ll << 62; // it never is full
    u32* pairs;
    __device__ __forceinline__ Outbox(int q, i64 slot)
        : pairs(s.given.pairs + (s.given.border[q] + slot) * PAIR) {}
    DEVICE void defer() {}
    __device__ __forceinline__ void put(i64 i, I v, Z z) const {
        const u64 value = (u64)to_bits(z);
        u32* const pair = pairs + i * PAIR;
        pair[0] = (u32)v;
        if (ID_WORDS == 2) pair[1] = (u32)((u64)v >> 32);
        pair[ID_WORDS] = (u32)value;
        if (VALUE_WORDS == 2) pair[ID_WORDS + 1] = (u32)(value >> 32);
    }
};

// Pairs that others have sent to this shard.
struct Received {
    const u32* pairs;
    __device__ __forceinline__ void load(i64 i, I& v, Z& z) const {
        const u32* const pair = pairs + i * PAIR;
        u64 id = pair[0], bits = pair[ID_WORDS];
        if (ID_WORDS == 2) id |= (u64)pair[1] << 32;
        if (VALUE_WORDS == 2) bits |= (u64)pair[ID_WORDS + 1] << 32;
        v = (I)id;
        z = from_bits<Z>((Bits<Z>)bits);
    }
};
