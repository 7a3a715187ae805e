"""A rank of any engine: what it proves, measures and leaves behind."""
