"""The operations over shards."""
