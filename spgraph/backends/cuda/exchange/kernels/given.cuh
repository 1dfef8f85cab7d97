// What the host writes for the kernels of a shard, and what these write back in rounds.

// A block reads `given`, in fields of 8 bytes, of which `to` is its copy in shared memory.
template <class Given>
DEVICE void read_given(Given& to, const u64* given) {
    for (int i = threadIdx.x; i < sizeof(Given) / 8; i += THREADS)
        reinterpret_cast<u64*>(&to)[i] = given[i];
    __syncthreads();
}

// Count number k, to memory of this device and of the host. Every word has the round, so that they
// need no order among themselves.
DEVICE void write_count(u64* counts, u64* host_counters, int k, u64 count, i64 round) {
    counts[k] = count;
    *(volatile u64*)&host_counters[k] = count << 16 | (u64)(round & 0xffff);
}
