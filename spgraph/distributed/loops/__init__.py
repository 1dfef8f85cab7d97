"""The loops over blocks."""
