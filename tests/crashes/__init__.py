"""Crashes at every boundary of a run, and what is true afterwards."""
