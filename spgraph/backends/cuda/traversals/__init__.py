"""The traversals of spgraph.csgraph that no loop serves."""
