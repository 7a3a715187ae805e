"""Training jobs by the launchers that people use, as the launchers' own documents start them, on lab hosts."""
