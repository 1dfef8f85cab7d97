"""Compiling and launching: program texts, preambles, NVRTC with and without a GPU."""
