"""What happened before a run's end, and to whom: what it outlived, which rank is behind, what failed first."""
