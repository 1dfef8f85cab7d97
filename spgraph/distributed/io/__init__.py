"""Graphs read in shards."""
