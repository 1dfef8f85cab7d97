"""Memory that several GPUs write, and launches on all of them."""
