"""Verification: proving by an all-reduce that a cluster works, and naming who is to blame if not.

``climb`` goes up the ladder, from the facts of the probe to the whole fleet, and looks for the culprits where a
rung fails. ``plan_ranks``, ``verify`` and ``judge`` are its topmost rung alone. What touches a network does so
only through the function it is given.
"""

from __future__ import annotations

from remedy.verify.culprit import Hints
from remedy.verify.judge import judge
from remedy.verify.ladder import Sight, climb
from remedy.verify.launch import (
    Candidate,
    RankHost,
    RankPlan,
    VerifySpec,
    default_deadline,
    plan_ranks,
)
from remedy.verify.pace import Pace
from remedy.verify.proof import launch, verify
from remedy.verify.verdict import Bandwidth, Culprit, HostOutcome, Rung, Verdict

__all__ = [
    "Bandwidth",
    "Candidate",
    "Culprit",
    "Hints",
    "HostOutcome",
    "Pace",
    "RankHost",
    "RankPlan",
    "Rung",
    "Sight",
    "Verdict",
    "VerifySpec",
    "climb",
    "default_deadline",
    "judge",
    "launch",
    "plan_ranks",
    "verify",
]
