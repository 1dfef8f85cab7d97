"""The formats of files: each module reads one, or writes it, too."""
