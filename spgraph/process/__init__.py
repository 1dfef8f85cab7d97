"""The process that computes: its processors, signals, imports and compiled kernels on disk."""
