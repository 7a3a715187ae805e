"""Reachability: every ordered pair of hosts, on ports that training would use there."""
