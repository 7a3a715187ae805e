"""One all-reduce over a group of ranks: planned, run, and judged from what every host says of it."""
