"""Making the corpus of `remedy diagnose`: real faults on lab hosts, and the logs that came out."""
