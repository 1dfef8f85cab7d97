"""What all benchmarks take and state: graphs, arguments, rows, the machine, times of a GPU."""
