"""Between blocks: coordinates, counts, memory that all devices write."""
