"""Graphs read or generated in shards."""
