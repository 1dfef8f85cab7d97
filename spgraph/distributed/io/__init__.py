"""Graphs read in blocks."""
