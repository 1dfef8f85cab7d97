// The state of a closure on peers, and its exchange; closure_none.cuh says what an exchange is.

#ifndef ALONE // the most steps of a GPU between two barriers: the others wait
#define ALONE 128
#endif
#ifndef SATURATED_EDGES // a round is one step where the queues have more edges on average
#define SATURATED_EDGES LOCAL_EDGES
#endif

struct PeerControl : ShardControl { // zero at launch
    u64 published;                  // of the edges looked at, what the peers have received
    u64 received[PEERS];            // values from each peer, as of the last barrier
    u64 deferred;                   // the exchange in which marked vertices have to be sent,
    u64 deferred_then;              // as of the last barrier
    u64 queued, near_of_all, flags; // sums over all GPUs, as of the last barrier
    Z best_of_all;
};
static_assert(sizeof(PeerControl) <= 512, "closure_peers.py gives it 512 bytes");

struct Given : GivenShard {
    u64 memory[PEERS];                  // memory that all peers write to; and the offsets in it of
    i64 inbox_ids, inbox_values, whole; // the inboxes and of the values of all vertices
    i64 capacity;                       // of an inbox for one sender and parity
    PeerBarrier* barrier;
    PeerControl* control;
};

struct PeerClosure : ShardClosure {
    Given given;
    u64 queued, near; // of all GPUs: edges in the queues before the last barrier, near values sent
    u64 relaxations;  // of all GPUs, since the barrier before
    Z best_of_all;    // the best far value of all GPUs
    bool active;      // some queue is not empty
    bool undercut;    // some GPU has noted that the floor was undercut
    bool unsettled;   // some GPU gave up
    bool marked;      // some vertex that is marked in `changed` has not been sent
    u64 received[PEERS],
        all_received; // values for this GPU that wait in its inboxes, and their sum
    u64 exchanges;    // the number of barriers with exchange so far
    int side;         // the parity of the inboxes that are written to
};

__shared__ PeerClosure s;

#include "closure_shards_exchange.cuh"

struct Exchange : ShardExchange {
    static constexpr int SHARDS = PEERS, TOGETHER = 4;
    static constexpr bool PULLS_TWICE = false;
    static constexpr i64 ROUNDS_PER_VERTEX = 2, WIDENING_EDGES = 16384;
    DEVICE void send_at_once(bool wanted, I v, Z value);
    DEVICE int receive_local(Ring& ring, u32& tail, int held);
    DEVICE bool meet_here();
    DEVICE bool meet_all(bool buckets);
    DEVICE bool is_empty() { return !s.active; }
    DEVICE Z best() { return s.best_of_all; }
    DEVICE void publish();
    DEVICE bool was_undercut() { return s.undercut; }
    DEVICE bool settle();
    DEVICE bool gave_up();
};
