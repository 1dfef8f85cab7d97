"""Distributed matrices and vectors, partitions of vertices, placements on devices."""
