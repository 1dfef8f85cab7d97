"""Random graphs made in blocks."""
