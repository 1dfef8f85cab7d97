"""What kernels share: atomic operations, the barrier, prefetching."""
