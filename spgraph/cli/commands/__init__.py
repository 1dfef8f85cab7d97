"""The commands: one module for each, and the table of those of the algorithms."""
