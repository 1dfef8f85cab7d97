"""Random graphs generated in shards."""
