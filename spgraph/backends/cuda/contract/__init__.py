"""Hook and compress: weak components."""
