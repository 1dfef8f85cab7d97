// The kinds of step of a closure, and one step on a queue. The file that includes this has, called by
// whole warps,
//   tally(edges)   this lane has followed so many edges
//   send_at_once(wanted, v, value)  tells v's owner, where little is told
//   take_in(ring, tail, held)  puts into a warp's ring what it is to follow besides the queue

#include "closure_buckets.cuh"
#include "closure_local.cuh"
#include "closure_pull.cuh"
#include "closure_push.cuh"

// Whether the queue is one that warps follow by themselves.
DEVICE bool is_local() {
    const i64 warps = (i64)gridDim.x * WARPS;
    return !s.heavy_queue && s.vertices <= LOCAL_VERTICES && s.edges <= LOCAL_EDGES &&
           s.vertices <= warps * (RING / 2);
}

// One step on the queue: relax its vertices.
DEVICE int relax_queue() {
    const bool local = is_local();
    if (local)
        follow(s.vertices);
    else
        push(s.vertices, s.edges);
    return local ? LOCAL : PUSH;
}
