"""How shards exchange: coordinates, collectives on Vectors, counters on the host."""
