"""Running all-reduces: plans of ranks in, verdicts out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from remedy.verify.allreduce.blame import Hints, hints
from remedy.verify.allreduce.judge import judge
from remedy.verify.allreduce.plan import RankPlan, script, script_deadline
from remedy.verify.verdict import Verdict, impossible

if TYPE_CHECKING:
    from remedy.transport import Output, Script

    Run = Callable[[Mapping[str, Script]], Mapping[str, Output]]
else:
    Run = Callable


def verify(run: Run, plan: RankPlan) -> Verdict:
    """Run the plan on all its hosts and judge what comes back.

    Args:
        run: starts each host's script at about the same time and returns when all have ended, as
            ``Transport.run`` does.
        plan: from ``plan_ranks``.
    """
    return launch([plan], run)[0][0]


def launch(plans: Sequence[RankPlan], run: Run) -> list[tuple[Verdict, Hints]]:
    """Run plans that have no host in common, all at once, and judge each.

    Returns:
        of each plan the verdict, and what its hosts said about who was missing.
    """
    # Imported late: the transport brings pyinfra along, which judging and planning do not need.
    from remedy.transport import Script

    started = time.monotonic()
    scripts = {
        host.name: Script(script(plan, node), script_deadline(plan))
        for plan in plans
        if plan.world > 1
        for node, host in enumerate(plan.hosts)
    }
    outputs = run(scripts) if scripts else {}
    seconds = round(time.monotonic() - started, 3)
    found = []
    for plan in plans:
        if plan.world < 2:
            why = "an all-reduce needs two ranks, so two hosts, or one with two GPUs"
            found.append((impossible(plan, why), Hints()))
        else:
            own = {host.name: outputs[host.name] for host in plan.hosts if host.name in outputs}
            found.append((judge(plan, own, seconds=seconds), hints(plan, own)))
    return found
