// The inboxes of a closure on peers: every GPU has one for each sender and parity of the exchange,
// ids and values apart. Senders write into them; what they wrote is there after the next exchange.

template <class T>
DEVICE T* inbox(int of, i64 offset, int side, int sender) {
    return in_memory_of<T>(of, offset) + ((i64)side * PEERS + sender) * s.given.capacity;
}

// A place in the inbox of shard q for values of this one, from `slot` on.
struct Outbox {
    I* ids;
    Z* values;
    i64 free;
    __device__ __forceinline__ Outbox(int q, i64 slot)
        : ids(inbox<I>(q, s.given.inbox_ids, s.side, peers.me) + slot),
          values(inbox<Z>(q, s.given.inbox_values, s.side, peers.me) + slot),
          free(s.given.capacity - slot) {}
    DEVICE void defer() { store_relaxed(&s.given.control->deferred, s.exchanges + 1); }
    __device__ __forceinline__ void put(i64 i, I v, Z value) const {
        ids[i] = v;
        values[i] = value;
    }
};

// What shard q sent to this one before the last exchange.
struct Received {
    const I* ids;
    const Z* values;
    __device__ __forceinline__ explicit Received(int q)
        : ids(inbox<I>(peers.me, s.given.inbox_ids, s.side ^ 1, q)),
          values(inbox<Z>(peers.me, s.given.inbox_values, s.side ^ 1, q)) {}
    __device__ __forceinline__ void load(i64 i, I& v, Z& z) const {
        v = load_relaxed(ids + i);
        z = load_relaxed(values + i);
    }
};
