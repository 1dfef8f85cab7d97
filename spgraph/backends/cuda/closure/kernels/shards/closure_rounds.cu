// The least fixed point of  x = start (+) x (+.x) A  over shards, in rounds that the host drives:
// it works between hosts too, where the peer form (closure_peers.cu) cannot.
//
// As there, a GPU holds a value for each vertex of the whole graph, of the vertices of others the
// best one that it has found or received, and queues and relaxes only its own. A launch is what one
// shard can do alone:
//   receive  received values join the own ones; a vertex that improves and is near joins the queue;
//   bucket   if all shards were done with the last one: the vertices up to the next limit are
//            queued;
//   relax    step after step, until none of its vertices is near or its queue is saturated: further
//            steps would be done again when better values arrive;
//   send     the vertices of others that improved are written for their owners, once each with the
//            last value, in pairs of an id and a value.
// The last block of the launch writes the counts to memory of the host, which exchanges the pairs
// and launches again, with the totals of the counts of all shards. From these every shard decides
// alike about limits and thresholds (closure_decisions.cuh).
//
// The preamble is that of closure.cu, and PEERS, the number of shards. Positions that multiply
// looks at count the vertices of all shards, one shard after the other.

#include "closure_state.cuh"
#include "closure_shards_state.cuh"
#include "closure_rounds_state.cuh"
#include "closure_improve.cuh"
#include "closure_decisions.cuh"
#include "load_balance.cuh"
#include "nth_bit.cuh"
#include "closure_steps.cuh"
#include "closure_buckets.cuh"
#include "closure_shards.cuh"
#include "closure_local.cuh"
#include "closure_pull.cuh"
#include "closure_relax.cuh"

DEVICE RoundControl* control() { return s.given.control; }

// Write the counts to the device and to the host.
DEVICE void write_counts(const u64* count, i64 round) {
    for (int k = 0; k < COUNTS; k++)
        write_count(s.given.counts, s.given.host_counters, k, count[k], round);
}

// What this shard lets the host know: each flag holds where all shards have it. Of a bucket that is
// empty here, what is to be done next if it is empty everywhere.
DEVICE u64 flags_of(bool buckets, bool empty, Z best) {
    Limits then = s.decided;
    const bool last = !ORDERED || (buckets && is_last(then, empty, best));
    if (buckets) move_on(then, empty, best, s.next);
    return (load_relaxed(&control()->undercut) ? WAS_UNDERCUT : 0) | (last ? LAST : 0) |
           (ends_threshold(then) ? ENDS_THRESHOLD : 0) |
           (is_unsettled(s.progress.rounds, s.given.border[PEERS]) ? UNSETTLED : 0);
}

// The end of a launch: the last block publishes the counts. The queue that the last step has left is
// what received values will join: its step is the first of the next launch.
DEVICE void publish_counts(i64 round, bool buckets) {
    RoundControl* const c = control();
    add_counts();
    if (threadIdx.x) return;
    __threadfence();
    if (atomicAdd(&c->arrived, 1u) != gridDim.x - 1) return;
    __threadfence();
    const u64 best = (u64)to_bits(s.far);
    u64 count[COUNTS];
    count[QUEUED] = s.vertices;
    count[EDGES] = s.edges;
    count[NEAR] = load_relaxed(&c->near_sent);
    count[LOOKED] = load_relaxed(&c->looked);
    count[FOUND] = s.found;
    count[FLAGS] = flags_of(buckets, s.found == 0, s.far);
    count[BEST] = best & 0xffffffffu;
    count[BEST_HIGH] = best >> 32;
    for (int q = 0; q < PEERS; q++) {
        count[SENT + q] = load_relaxed(&c->sent[q]);
        c->sent[q] = 0;
    }
    c->near_sent = c->looked = 0;
    c->arrived = 0;
    c->at = s.step - 1;
    c->had_bucket = buckets;
    c->next = s.next;
    c->limits = s.decided;
    c->progress = s.progress;
    write_counts(count, round);
}

// The end of a launch in which a barrier timed out.
DEVICE void leave(i64 round) {
    if (threadIdx.x) return;
    u64 count[COUNTS] = {};
    count[FLAGS] = LOST;
    write_counts(count, round);
}

// Received values join the own ones; vertices that improve and are near join the next queue.
DEVICE void receive(const u32* received, i64 number) {
    release_rest(receive_from(Received{received}, number, 0), NextQueue());
}

// The limits that follow from the totals after the launch before, alike on all shards. Thread 0 of
// every block calls.
DEVICE void decide(i64 action, const Totals& totals) {
    const RoundControl* const c = control();
    Limits& at = s.decided;
    Progress& progress = s.progress;
    at = c->limits;
    progress = c->progress;
    if (action & SOURCES) {
        begin_buckets(at, totals.best);
    } else {
        const bool empty = totals.found == 0;
        if (c->had_bucket) move_on(at, empty, totals.best, c->next);
        if (!(c->had_bucket && empty)) count_round(progress, totals.looked);
        if (action & BUCKETS)
            end_bucket(at, progress, s.m);
        else
            consider_threshold(at, progress, totals.edges, s);
    }
}

// What a launch does before it relaxes. False where a barrier failed.
DEVICE bool prepare(i64 action, const u32* received, i64 number, const I* sources,
                    const Z* source_values, i64 number_of_sources) {
    if (action & BEGIN) {
        clear_shard();
        if (!Exchange::meet_here()) return false;
        begin(sources, source_values, number_of_sources);
        return Exchange::meet_here();
    }
    if (number) receive(received, number);
    if (action & SOURCES) begin_queue(sources, number_of_sources);
    if (action & BUCKETS) {
        if (ends_threshold(s)) {
            if (!pull_behind_threshold()) return false;
            BLOCK_SETS(drop_threshold(s.decided);)
        }
        // what all shards have sent is not near: nothing is queued before the bucket
        if (number && !Exchange::meet_here()) return false;
        const Z next = next_limit(s);
        next_bucket(next);
        BLOCK_SETS(s.limit = s.next = next;)
    }
    return Exchange::meet_here();
}

// Relax step after step. False where a barrier failed.
DEVICE bool relax_alone(bool buckets) {
    BLOCK_SETS(s.found = buckets ? s.vertices : 0;)
    // a saturated queue of a new bucket is relaxed in the next round, when all shards have its counts
    bool on = !buckets || !is_saturated(s.edges, 1);
    for (int steps = 0; on && s.vertices; steps++) {
        const i64 edges = s.edges;
        if (relax_queue()) Exchange::count_step(edges);
        if (!Exchange::meet_here()) return false;
        on = !is_saturated(s.edges, 1) && steps < ALONE;
    }
    return true;
}

// x: a value for each vertex of the whole graph. BEGIN reads `width` and `reach`, what follows the totals over
// all shards of the counts of the launch before. `received` has `number` pairs; sources, which BEGIN
// and SOURCES read, are counted from the first own vertex. Before a launch that ends a threshold,
// which is one of BUCKETS, the host gathers x.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    closure_rounds(const u64* given, i64 action, Z* x, Z width, Z reach, i64 found, i64 edges,
                   i64 looked, Z best, const u32* received, i64 number, const I* sources,
                   const Z* source_values, i64 number_of_sources, i64 round) {
    read_given(s.given, given);
    const Given& g = s.given;
    if (threadIdx.x == 0) {
        const u32 at = load_relaxed(&g.control->at);
        take_given(x, g.control, at); // the queues swap in every step
        s.next = identity();
        s.undercut = action & UNDERCUT;
        if (action & BEGIN) {
            no_limits(s.decided, width, reach);
            s.progress = Progress{};
        } else {
            decide(action, Totals{found, edges, looked, best});
        }
        static_cast<Limits&>(s) = s.decided;
    }
    __syncthreads();
    if (!prepare(action, received, number, sources, source_values, number_of_sources) ||
        !relax_alone(action & BUCKETS))
        return leave(round);
    send();
    publish_counts(round, action & BUCKETS);
}

// The values of the own vertices, and a bit for each that has an entry.
extern "C" __global__ void closure_ends(i64 first, i64 own, const Z* x, const u32* bits, Z* values,
                                        u32* found) {
    copy_own(x, bits, first, own, values, found);
}
