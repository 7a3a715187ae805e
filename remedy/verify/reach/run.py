"""Trying links: reach plans in, results out."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from remedy.verify.reach.answers import judge_links
from remedy.verify.reach.plan import ReachPlan, script, script_deadline
from remedy.verify.reach.result import Reach
from remedy.verify.scripts import Run, run_texts


def try_links(
    plans: Sequence[ReachPlan],
    run: Run,
    nameless: Mapping[tuple[str, str], str] | None = None,
) -> list[Reach]:
    """Run plans that have no host in common, all at once, and judge each.

    Args:
        plans: from ``plan_reach``.
        run: runs scripts on hosts.
        nameless: links whose source resolves the target's name wrongly, and to what.
    """
    started = time.monotonic()
    texts = {
        host.name: (script(plan, me), script_deadline(plan))
        for plan in plans
        for me, host in enumerate(plan.hosts)
    }
    outputs = run_texts(run, texts)
    seconds = round(time.monotonic() - started, 3)
    return [judge_links(plan, outputs, nameless, seconds) for plan in plans]
