"""Between shards: coordinates, counts, memory that all devices write."""
