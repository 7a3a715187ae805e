"""What benchmarks share: a fleet, running commands measured, figures and how they are told."""
