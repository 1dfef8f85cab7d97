// What peers and rounds share of a closure's state. What the host gives to a closure over shards for
// the shard of this GPU, in fields of 8 bytes: `given_fields` in closure_peers.py writes them.

#include "given.cuh"

struct GivenShard : Arrays {
    u32* changed; // a bit for each vertex of another shard that improved since it was sent last
    u32* groups;  // a bit for each word of `changed` that is not zero
    i64 me;
    i64 border[PEERS + 1]; // the first vertex of each shard, and n
};

struct ShardControl : Control { // of one GPU
    u64 sent[PEERS];            // values for each shard; more than fitted if its inbox was full
    u64 near_sent;              // of these, how many are near there, or did not fit
    u64 looked;                 // edges
};

struct ShardClosure : Closure {
    u64 looked, near_sent; // of this block, since they were added to the control
};
