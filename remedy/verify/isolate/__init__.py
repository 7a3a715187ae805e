"""Isolation: which hosts, and which ways between two hosts, keep a fleet from working together.

Pure: ``Isolation`` says which groups to test next, and is told what came of it. Nothing here starts a test.

>>> isolation = Isolation(["a", "b", "c"])
>>> while (round := isolation.next_round()):
...     isolation.take([run(test) for test in round])
>>> isolation.faults
"""

from __future__ import annotations

from remedy.verify.isolate.explain import explain_ways
from remedy.verify.isolate.model import Fault, NodeFault, PairFault, Result, Test
from remedy.verify.isolate.planner import Isolation
from remedy.verify.isolate.slow import outliers

__all__ = [
    "Fault",
    "Isolation",
    "NodeFault",
    "PairFault",
    "Result",
    "Test",
    "explain_ways",
    "outliers",
]
