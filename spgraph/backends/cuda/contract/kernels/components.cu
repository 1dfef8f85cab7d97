// Components of a graph in shards: what a shard does between two exchanges, in which the messages
// of all go to all. Vertices are named by the user's ids; a shard numbers its own from 0, in the
// order of these.
//
// A symmetric graph, when a search has found what is about one vertex, the giant component:
//   outside  a list of the edges of own vertices that it has not reached
//   begin    the ends of all listed edges are trees of their own
//   join     they are united
//   settle   the label of every own vertex: the giant's, or that of its tree
// Any graph, when contract.cu has found the components of the own rows:
//   send_roots     what the owners do not know: for each vertex of other shards that own rows join
//                  to another one, its root; a bit is enough where that is the giant of the own
//                  rows
//   receive_roots  what the others have sent about own vertices is united with the own trees; roots
//                  that come to lead elsewhere, and ids named as roots that are none here, go to
//                  all
//   join           these are united
//   agree          between two such exchanges: which rows need not be read any more
//   finish         the label of every own vertex
//
// A list has a capacity, in pairs. `count` goes on beyond it: the result is then void, and the host
// starts again with longer lists.
//
// Preamble: types I (ids), O (offsets), L (labels).

#include "union_find.cuh"

constexpr int EACH = 4; // accesses that a thread has in flight

struct Pair {
    L u, v;
};

DEVICE i64 max_of(i64 x, i64 y) { return x > y ? x : y; }

struct Message {
    u64 count; // of the pairs
    // of `outside`: n less the least vertex visited; of `send_roots`: the root that the bits stand
    // for, -1 for none; of `receive_roots`: the longest list it got
    i64 lead;
    i64 is_void; // of `begin`: an edge leads to what the search has reached here: it ended early
};

// The messages of some shards, each with bits, then pairs: one after the other, or where `places`
// says, in the memory of peers.
struct Box {
    Message* messages;
    const u64* places;
    i64 stride, bits, capacity; // of each: 64-bit words in all, those of bits; pairs
    MEMBER Message* message(i64 p) const {
        return places ? (Message*)places[p] : (Message*)((u64*)messages + p * stride);
    }
    MEMBER u32* flags(i64 p) const { return (u32*)(message(p) + 1); }
    MEMBER Pair* pairs(i64 p) const { return (Pair*)((u64*)(message(p) + 1) + bits); }
    MEMBER i64 length(i64 p) const {
        const u64 count = message(p)->count;
        return count < (u64)capacity ? (i64)count : capacity;
    }
    MEMBER void write(u64 place, L u, L v) const {
        if (place < (u64)capacity) ((Pair*)((u64*)(messages + 1) + bits))[place] = {u, v};
    }
    // to the own message
    MEMBER void add(L u, L v) const { write(atomicAdd(&messages->count, 1ull), u, v); }
    // the same for each lane that wants to; all 32 call
    MEMBER void add_all(bool wanted, L u, L v) const {
        const u32 wanting = warp_ballot(wanted);
        if (!wanting) return;
        u64 place = 0;
        if (lane_id() == 0) place = atomicAdd(&messages->count, (u64)__popc(wanting));
        place = shuffle(place, 0) + __popc(wanting & lanes_below());
        if (wanted) write(place, u, v);
    }
    // act(u, v) for the pairs of message p, by all threads
    template <class Act>
    MEMBER void for_each_pair(i64 p, const Act& act) const {
        const i64 all = length(p);
        for (i64 k = thread_id(); k < all; k += thread_count()) {
            const Pair pair = pairs(p)[k];
            act(pair.u, pair.v);
        }
    }
};

// The vertices of this shard, of all n.
struct Own {
    i64 n, first, count;   // from which place on inside, and how many
    const L *ids, *places; // the ids of own vertices, the places of all; null: a range of ids
    MEMBER L id(i64 i) const { return ids ? ids[i] : (L)(first + i); }
    // the number of v; outside of 0 .. count - 1 if another shard has it
    MEMBER i64 number(L v) const { return (i64)(places ? places[v] : v) - first; }
    MEMBER bool has(L v) const {
        const i64 i = number(v);
        return 0 <= i && i < count;
    }
};

#define OWN i64 n, i64 first_own, i64 count_own, const L *ids, const L *places
#define TAKE_OWN                                                                                   \
    const Own own { n, first_own, count_own, ids, places }
#define BOX Message *messages, const u64 *box_places, i64 stride, i64 bits, i64 capacity
#define TAKE_BOX                                                                                   \
    const Box box { messages, box_places, stride, bits, capacity }

// ---- about the giant ----------------------------------------------------------------------------

// The edges of the rows of a warp's lanes, `degree` of them from `first` on, go to the list; no
// further once it is full.
DEVICE void list_edges(const Box& box, L v, O first, O degree, const I* indices) {
    const O upto = warp_scan(degree), before = upto - degree, total = shuffle(upto, 31);
    for (O begin = 0; begin < total; begin += 32) {
        const u64 count = lane_id() == 0 ? load_relaxed(&box.messages->count) : 0;
        if (shuffle(count, 0) > (u64)box.capacity) return;
        const O x = begin + lane_id();
        const int owner = warp_search(before, x);
        const O e = shuffle((O)(first - before), owner) + x;
        const L from = shuffle(v, owner);
        const L u = x < total ? (L)indices[e] : from;
        box.add_all(u != from, from, u);
    }
}

// `nonempty`: the own vertices that have edges. A lane takes a word, and the warp what is open in
// it.
extern "C" __global__ void outside(OWN, const O* indptr, const I* indices, const u32* visited,
                                   const u32* nonempty, L* table, BOX) {
    TAKE_OWN;
    TAKE_BOX;
    const i64 all = (own.count + 31) / 32;
    __shared__ u64 lead;
    if (threadIdx.x == 0) lead = 0;
    __syncthreads();
    bool led = false;
    for (i64 base = thread_id() - lane_id(); base < all; base += thread_count()) {
        const i64 word = base + lane_id();
        const u32 visited_bits = word < all ? visited[word] & valid_bits(word, own.count) : 0;
        const u32 open = word < all ? nonempty[word] & ~visited_bits : 0;
        const u32 some = warp_ballot(visited_bits != 0);
        if (some && !led) { // ids ascend: what this warp sees later is no less
            led = true;
            if (lane_id() == __ffs(some) - 1)
                atomicMax(&lead, (u64)(own.n - own.id(word * 32 + __ffs(visited_bits) - 1)));
        }
        for (u32 left = warp_ballot(open != 0); left; left &= left - 1) {
            const int lane = __ffs(left) - 1;
            const i64 v = (base + lane) * 32 + lane_id();
            const bool here = shuffle(open, lane) >> lane_id() & 1;
            const L id = here ? own.id(v) : 0;
            const O first = here ? indptr[v] : 0, last = here ? indptr[v + 1] : 0;
            if (here) table[id] = id;
            list_edges(box, id, first, last - first, indices);
        }
    }
    __syncthreads();
    if (threadIdx.x == 0 && lead) atomicMax((u64*)&box.messages->lead, lead);
}

struct Report {
    i64 is_void; // a list is too long
    i64 lead;    // the greatest of the messages
};

// `report` is zero. What is void here alone, the own message says to `settle` of all shards.
extern "C" __global__ void begin(OWN, const u32* visited, L* table, i64 parts, BOX,
                                 Report* report) {
    TAKE_OWN;
    TAKE_BOX;
    if (thread_id() == 0) {
        for (i64 p = 0; p < parts; p++) {
            const Message message = *box.message(p);
            if (message.count > (u64)box.capacity) report->is_void = 1;
            report->lead = max_of(report->lead, message.lead);
        }
    }
    for (i64 p = 0; p < parts; p++)
        box.for_each_pair(p, [&](L u, L v) {
            table[u] = u;
            table[v] = v;
            if (own.has(v) && test_bit(visited, own.number(v))) box.messages->is_void = 1;
        });
}

// `report`, unless null, rises to the greatest `count` or `lead` of the messages.
extern "C" __global__ void join(L* label, i64 parts, BOX, i64* report) {
    TAKE_BOX;
    if (report && thread_id() == 0)
        for (i64 p = 0; p < parts; p++) {
            const Message message = *box.message(p);
            const i64 most = max_of((i64)message.count, message.lead);
            *report = max_of(*report, most);
        }
    for (i64 p = 0; p < parts; p++)
        box.for_each_pair(p, [&](L u, L v) { union_trees(label, u, v); });
}

// The root of v, above which nothing moves any more.
DEVICE L root_of(const L* label, L v) {
    L above = label[v];
    while (above != v) {
        v = above;
        above = label[v];
    }
    return v;
}

struct __align__(EACH * sizeof(L)) Labels {
    L each[EACH];
};

// `host_counter` is a word of the host's memory: the low 16 bits of the round, above them whether the
// labels are void: those of this shard, and of all that have ended `begin` when this one starts.
extern "C" __global__ void settle(OWN, const u32* visited, const u32* nonempty, const L* table,
                                  i64 parts, BOX, L* label, const Report* report, i64 round,
                                  i64* host_counter) {
    TAKE_OWN;
    TAKE_BOX;
    if (thread_id() == 0) {
        i64 is_void = report->is_void;
        for (i64 p = 0; p < parts; p++) is_void |= box.message(p)->is_void;
        *(volatile i64*)host_counter = is_void << 16 | (round & 0xFFFF);
    }
    const L giant = (L)(own.n - report->lead);
    for (i64 base = thread_id() * EACH; base < own.count; base += thread_count() * EACH) {
        const u32 visited_bits = visited[base >> 5] >> (base & 31);
        const u32 rows = nonempty[base >> 5] >> (base & 31);
        const int here = own.count - base < EACH ? (int)(own.count - base) : EACH;
        Labels found;
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const L id = k < here ? own.id(base + k) : 0;
            const bool in_tree = k < here && (rows & ~visited_bits) >> k & 1;
            found.each[k] = visited_bits >> k & 1 ? giant : in_tree ? root_of(table, id) : id;
        }
        if (here == EACH)
            *(Labels*)(label + base) = found;
        else
            for (int k = 0; k < here; k++) label[base + k] = found.each[k];
    }
}

// ---- any graph ----------------------------------------------------------------------------------

// The root of a tree that holds own vertices may belong to another shard, which may have put it
// under a root of its own: such a root is sent once, as a pair of itself. `named` has a bit for
// each.
extern "C" __global__ void send_roots(OWN, const L* label, const i64* giant, u32* named, BOX) {
    TAKE_OWN;
    TAKE_BOX;
    const i64 all = (own.n + 31) / 32, warps = thread_count() >> 5;
    const i64 lead = *giant < 0 ? -1 : (i64)label[*giant];
    if (thread_id() == 0) box.messages->lead = lead;
    for (i64 base = (thread_id() >> 5) * EACH; base < all; base += warps * EACH) {
        L root[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const i64 w = (base + k) * 32 + lane_id();
            root[k] = w < own.n ? label[w] : 0;
        }
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const i64 word = base + k, w = word * 32 + lane_id();
            if (word >= all) break;
            const bool mine = w < own.n && own.has((L)w), giants = w < own.n && root[k] == lead;
            const u32 inside = warp_ballot(giants && !mine);
            if (lane_id() == 0) box.flags(0)[word] = inside;
            bool wanted = w < own.n && !giants && !mine && root[k] != (L)w;
            if (mine && root[k] != (L)w && !own.has(root[k])) wanted = set_bit(named, root[k]);
            box.add_all(wanted, mine ? root[k] : (L)w, root[k]);
        }
    }
}

// `answer` gets links between roots: those that are hooked here, and for each vertex that another
// shard named as a root and that is none here, its root here. Only the owner of such a vertex
// answers: any other shard where it is no root has sent that itself.
extern "C" __global__ void receive_roots(OWN, i64 me, L* label, i64 parts, BOX, Message* answer,
                                         i64 answer_capacity) {
    TAKE_OWN;
    TAKE_BOX;
    const Box links{answer, nullptr, 0, 0, answer_capacity};
    const auto hooked = [&](L x, L y) { links.add(x, y); };
    if (thread_id() == 0) {
        i64 longest = 0;
        for (i64 p = 0; p < parts; p++) longest = max_of(longest, (i64)box.message(p)->count);
        answer->lead = longest;
    }
    for (i64 p = 0; p < parts; p++) {
        if (p == me) continue;
        const i64 lead = box.message(p)->lead;
        if (lead >= 0) {
            L last = -1; // the root that was united with the giant's last
            for (i64 i = thread_id() - lane_id(); i < own.count; i += thread_count()) {
                const L v = i + lane_id() < own.count ? own.id(i + lane_id()) : 0;
                const bool is_member = i + lane_id() < own.count && test_bit(box.flags(p), v);
                const u32 some = warp_ballot(is_member);
                if (!some) continue;
                // most of them have one root, which one lane is enough for
                const L root = is_member ? load_lagging(label + v) : 0;
                const int leader = __ffs(some) - 1;
                const L common = shuffle(root, leader);
                if (is_member && root != last && (root != common || lane_id() == leader))
                    union_trees(label, v, (L)lead, hooked);
                last = common;
            }
        }
        box.for_each_pair(p, [&](L u, L v) {
            if (!own.has(u)) return;
            if (u != v) {
                union_trees(label, u, v, hooked);
            } else {
                const L above = load_lagging(label + u);
                if (above != u) links.add(u, above);
            }
        });
    }
}

// The tree whose rows need not be read: that of the first giant that any shard has sent. By now own
// vertices that are in it have its root at all shards.
extern "C" __global__ void agree(const L* label, i64 parts, BOX, i64* giant) {
    TAKE_BOX;
    if (thread_id()) return;
    *giant = -1;
    for (i64 p = 0; p < parts && *giant < 0; p++)
        if (box.message(p)->lead >= 0) *giant = root_of(label, (L)box.message(p)->lead);
}

extern "C" __global__ void finish(OWN, const L* label, L* result) {
    TAKE_OWN;
    for (i64 i = thread_id(); i < own.count; i += thread_count())
        result[i] = root_of(label, own.id(i));
}
