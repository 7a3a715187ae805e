"""Measuring `remedy diagnose`: accuracy on labelled logs, speed and memory on long ones."""
