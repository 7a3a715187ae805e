"""The endpoints that a verification is measured with: their ranks prove what hosts' ranks would."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import pytest

from benchmarks.large import page, participants, ranks, reach
from benchmarks.ranks import Meetings, Member, config_of
from remedy.transport import Output, Script
from remedy.verify.allreduce.plan import RankPlan, plan_ranks
from remedy.verify.allreduce.run import launch
from remedy.verify.verdict import Verdict

HOSTS = 12


def proved(plan: RankPlan, absent: frozenset[str] = frozenset()) -> Verdict:
    """Run a plan on endpoints, of which some never get their script."""

    async def everybody(scripts: Mapping[str, Script]) -> list[str]:
        meetings = Meetings()
        configs = {name: config_of(script.text) for name, script in scripts.items()}
        return await asyncio.gather(
            *(
                meetings.answer({**config, "join_seconds": 0.2}, Member(name, f"boot-{name}"))
                for name, config in configs.items()
                if config is not None and name not in absent
            )
        )

    def run(scripts: Mapping[str, Script], /) -> Mapping[str, Output]:
        there = [name for name in scripts if name not in absent]
        texts = asyncio.run(everybody(scripts))
        return {name: Output(name, text, "", 0) for name, text in zip(there, texts, strict=True)}

    (group,) = launch([plan], run)
    return group.verdict


@pytest.mark.parametrize("settings", [{}, {"gpus": 2}])
def test_endpoints_that_meet_are_a_proof(settings: Mapping[str, Any]) -> None:
    hosts = [host.model_copy(update=settings) for host in participants(HOSTS)]
    plan = plan_ranks(hosts).model_copy(update={"backend": "gloo"})
    verdict = proved(plan)
    assert verdict.passed, verdict.reason
    assert (verdict.world_size, verdict.hosts) == (plan.world, HOSTS)


def test_endpoints_do_not_meet_without_each_of_them() -> None:
    verdict = proved(plan_ranks(participants(HOSTS)), absent=frozenset({"gpu00003"}))
    assert not verdict.passed
    assert "gpu00003" in verdict.reason


def test_what_the_controller_does_alone_is_counted_without_its_hosts() -> None:
    began = time.process_time()
    figures = [reach(HOSTS), ranks(HOSTS)]
    whole = time.process_time() - began
    assert all(0 < entry["cpu"] < whole for entry in figures)
    assert (figures[0]["peers"], figures[0]["missing"]) == (HOSTS - 1, 0.0)


def test_the_page_has_a_line_for_each_figure() -> None:
    made = {"additions": 0.6, "commit": "abc", "day": "2026-11-24", "machine": "2 cores"}
    over_ssh = {"rc": 0, "wall": 9.0, "rss_mib": 99, "rungs": {"whole fleet": 2.5}, "journal": 2560}
    text = page(
        {
            "reach": {"256": {"cpu": 2.56, "asked": 2**18, "peers": 255, "missing": 0.0, **made}},
            "waves": {"256": {"cpu": 2.56, "asked": 2**18, **over_ssh, **made}},
        }
    )
    assert "| reachability | 256 | 2.6 s | 10.0 ms | 0.60 | 1 KiB | 255 | 0% |" in text
    assert "--waves 1,1%,10%,100%` | 256 | 2.6 s | 10.0 ms | 0.60 | 1 KiB | 99 MiB | 9 s" in text
    assert "whole fleet 2.5 s | 10 bytes |" in text
