"""Editing files that others write too, without losing a byte of theirs."""
