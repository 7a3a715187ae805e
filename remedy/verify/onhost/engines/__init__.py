"""Engines, a file each: why a host cannot take part, what is started there, and how its ranks sum."""
