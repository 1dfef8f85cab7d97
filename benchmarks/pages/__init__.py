"""The tables and figures that the documents show of the result files."""
