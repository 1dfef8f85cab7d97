"""Matrices and vectors in blocks, and where the blocks are."""
