"""The power iteration."""
