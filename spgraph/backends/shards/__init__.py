"""What loops over shards and the backends that run their kernels agree on."""
