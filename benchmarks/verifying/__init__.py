"""The parts of the benchmark of verification."""
