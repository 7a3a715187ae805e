"""The commands that act on hosts, one file each: they return values and emit events, and print nothing."""
