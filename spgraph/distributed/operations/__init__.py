"""The operations over blocks."""
