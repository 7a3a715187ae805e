"""Trying links: reach plans in, results out."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from remedy.verify.reach.answers import ReachAnswers, judge
from remedy.verify.reach.plan import ReachPlan, script, script_deadline
from remedy.verify.reach.result import Reach
from remedy.verify.reach.retry import Retries, retry_script
from remedy.verify.scripts import Run, run_texts


def try_links(
    plans: Sequence[ReachPlan],
    run: Run,
    nameless: Mapping[tuple[str, str], str] | None = None,
) -> list[Reach]:
    """Run plans that have no host in common, all at once, and judge each.

    Where links fail they are tried again before they are called dead: in one more run, and in another where a
    host that seemed dead is only late.

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
    seconds = time.monotonic() - started
    answers = [ReachAnswers(plan, outputs, nameless) for plan in plans]
    reaches = [judge(answer) for answer in answers]
    retries = [Retries(answer, seconds) for answer in answers]
    while again := {
        number: retry
        for number, reach in enumerate(reaches)
        if (retry := retries[number].next_plan(reach)) is not None
    }:
        outputs = run_texts(
            run,
            {
                plans[number].hosts[me].name: (
                    retry_script(plans[number], retry, me),
                    retry.deadline,
                )
                for number, retry in again.items()
                for me in retry.hosts
            },
        )
        for number, retry in again.items():
            retries[number].take(retry, outputs)
            reaches[number] = judge(answers[number])
    seconds = round(time.monotonic() - started, 3)
    return [reach.model_copy(update={"seconds": seconds}) for reach in reaches]
