"""Tests of the close look."""
