"""Matrices and vectors in shards, and where the shards are."""
