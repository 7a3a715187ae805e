"""Verification: proving by an all-reduce over all hosts that the cluster works.

``plan_ranks`` decides who runs what, ``verify`` runs it on all hosts at once and ``judge`` says what the
answers prove. Only ``verify`` touches a network, and only through the function it is given.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from remedy.verify.launch import (
    Candidate,
    RankHost,
    RankPlan,
    VerifySpec,
    default_deadline,
    plan_ranks,
    script,
    script_deadline,
)
from remedy.verify.verdict import Bandwidth, HostOutcome, Verdict, impossible, judge

if TYPE_CHECKING:
    from remedy.transport import Output, Script

__all__ = [
    "Bandwidth",
    "Candidate",
    "HostOutcome",
    "RankHost",
    "RankPlan",
    "Verdict",
    "VerifySpec",
    "default_deadline",
    "judge",
    "plan_ranks",
    "verify",
]


def verify(run: Callable[[Mapping[str, Script]], Mapping[str, Output]], plan: RankPlan) -> Verdict:
    """Run the plan on all its hosts and judge what comes back.

    Args:
        run: starts each host's script at about the same time and returns when all have ended, as
            ``Transport.run`` does.
        plan: from ``plan_ranks``.
    """
    # Imported late: the transport brings pyinfra along, which judging and planning do not need.
    from remedy.transport import Script

    if plan.world < 2:
        return impossible(plan, "an all-reduce needs two ranks, so two hosts, or one with two GPUs")
    started = time.monotonic()
    limit = script_deadline(plan)
    outputs = run(
        {host.name: Script(script(plan, node), limit) for node, host in enumerate(plan.hosts)}
    )
    return judge(plan, outputs, seconds=round(time.monotonic() - started, 3))
