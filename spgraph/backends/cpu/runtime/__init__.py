"""Compiling and launching: kernel texts, preambles, the pool of threads."""
