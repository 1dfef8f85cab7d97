"""Random edges."""
