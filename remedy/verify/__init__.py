"""Verification: proving by an all-reduce that a cluster works, and naming who is to blame if not.

``climb`` goes up the ladder, from the facts of the probe to the whole fleet, and looks for the culprits where a
rung fails. ``plan_ranks``, ``verify`` and ``judge.judge`` are its topmost rung alone. What touches a network
does so only through the function it is given.

A module is imported when something of it is asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from remedy.verify.culprit import Hints
    from remedy.verify.ladder import Sight, climb
    from remedy.verify.launch import Candidate, RankHost, RankPlan, default_deadline, plan_ranks
    from remedy.verify.pace import Pace
    from remedy.verify.proof import verify
    from remedy.verify.verdict import Bandwidth, Culprit, HostOutcome, Rung, Verdict

# Where each name comes from; the same as above.
_HOME = {
    "Bandwidth": "verdict",
    "Candidate": "launch",
    "Culprit": "verdict",
    "Hints": "culprit",
    "HostOutcome": "verdict",
    "Pace": "pace",
    "RankHost": "launch",
    "RankPlan": "launch",
    "Rung": "verdict",
    "Sight": "ladder",
    "Verdict": "verdict",
    "climb": "ladder",
    "default_deadline": "launch",
    "plan_ranks": "launch",
    "verify": "proof",
}

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
    "climb",
    "default_deadline",
    "plan_ranks",
    "verify",
]


def __getattr__(name: str) -> object:
    """Import what is asked for from the module it is in (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
