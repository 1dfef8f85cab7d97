"""A package, so that no other of this name is imported in its place."""
