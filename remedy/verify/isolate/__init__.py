"""Isolation: which hosts, and which ways between two hosts, keep a fleet from working together.

Pure but for ``search``: ``planner.Isolation`` says which groups to test next, and takes their results.

>>> isolation = Isolation(["a", "b", "c"])
>>> while (round := isolation.next_round()):
...     isolation.take([run(test) for test in round])
>>> isolation.faults
"""
