"""Verification: proving by an all-reduce that a cluster works, and naming the culprits if not.

``ladder.climb`` goes up from the facts of the probe to the whole fleet, and looks for the culprits where a rung
fails. What it needs on the way has a folder each: ``reach``, every pair of hosts; ``allreduce``, one group of
ranks; ``isolate``, the search for culprits by more groups; and ``onhost``, all that travels to the hosts. What
touches a network does so only through the function it is given.
"""
