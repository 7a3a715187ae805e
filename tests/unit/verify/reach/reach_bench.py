"""Plans of reachability, and what the agents of hosts answer to them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from remedy.errors import RemedyError
from remedy.verify.onhost.knock import MARK
from remedy.verify.reach.plan import ReachHost, ReachPlan, plan_reach

PORTS = (33000, 55000, 29500)


@dataclass(frozen=True)
class KnockOutput:
    """What the transport gives: see ``remedy.transport.Output``."""

    host: str
    stdout: str = ""
    stderr: str = ""
    error: RemedyError | None = None


UNCUT: dict[str, Any] = {"narrow": [], "mute": [], "reason": ""}


def make_plan(hosts: int = 4) -> ReachPlan:
    return plan_reach(
        [ReachHost(name=f"gpu{n}", address=f"10.0.0.{n + 1}", ports=PORTS) for n in range(hosts)]
    )


def answers(plan: ReachPlan, bad: dict[str, list[list[Any]]], **changed: Any) -> dict[str, Any]:
    """What the hosts print; ``bad`` are calls by source, ``changed`` whole reports by host."""
    found = {}
    for me, door in enumerate(plan.hosts):
        failed = bad.get(door.name, [])
        said = {
            "good": len(plan.order(me)) * len(PORTS) - len(failed),
            "bad": failed,
            "times": [],
            "slowest": 0.1,
            "listening": list(PORTS),
            "busy": [],
            "ended": "answered",
            "mtu": UNCUT,
            "seconds": 1.0,
            **changed.get(door.name, {}),
        }
        found[door.name] = KnockOutput(door.name, f"{MARK} {plan.nonce} {json.dumps(said)}\n")
    return found
