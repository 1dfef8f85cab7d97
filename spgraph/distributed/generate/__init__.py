"""Random graphs made in shards."""
