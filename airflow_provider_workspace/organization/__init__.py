"""A whole organization from a file: the file, its plan, its import."""
