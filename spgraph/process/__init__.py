"""The process that computes: what it is doing, what it imports when, its processors and signals."""
