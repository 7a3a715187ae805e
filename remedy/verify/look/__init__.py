"""A close look at a few hosts, before and after a test: what moved on each, and where it differs."""
