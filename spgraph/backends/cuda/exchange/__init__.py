"""Memory that several GPUs of one process write, and launches on all of them."""
