"""The loops over shards."""
