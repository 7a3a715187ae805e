"""How fast each host is by itself: whom it meets, what counts, and who is called slow."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from remedy.report.ladder import render_details
from remedy.verify.allreduce.judge import judge
from remedy.verify.allreduce.plan import RankPlan
from remedy.verify.onhost.engines.torch_rank.pairs import PARTNERS, partners, takes
from remedy.verify.verdict import Verdict
from tests.unit.report.pages.samples import proof_page
from tests.unit.verify.proof_bench import answers, good_records, make_plan


def verdict_of(plan: RankPlan, gbps: dict[str, float]) -> Verdict:
    """The verdict on a run in which each pair goes at the pace of the slower of its hosts."""
    records: dict[str, list[dict[str, Any]]] = good_records(plan)
    names = [host.name for host in plan.hosts]
    for place, name in enumerate(names):
        for local in range(plan.hosts[place].ranks):
            records[name][local]["result"]["pairs"] = [
                {
                    "rank": sum(host.ranks for host in plan.hosts[:other]) + local,
                    "bytes": 4_000_000,
                    "seconds": 4e-3 / min(gbps[name], gbps[names[other]]),
                }
                for other in partners(len(names), place)
                if other is not None and local < plan.hosts[other].ranks
            ]
    return judge(plan, answers(plan, records))


@given(st.integers(1, 300))
def test_all_meet_in_pairs_and_nobody_twice(count: int) -> None:
    met = [partners(count, me) for me in range(count)]
    for me, others in enumerate(met):
        assert len(others) == min(PARTNERS, count - 1 + count % 2)
        real = [other for other in others if other is not None]
        assert len(set(real)) == len(real)
        assert all(met[other][turn] == me for turn, other in enumerate(others) if other is not None)
        assert me not in real


def test_alike_hosts_are_not_slow() -> None:
    plan = make_plan(hosts=8)
    verdict = verdict_of(plan, {h.name: 10 + n / 10 for n, h in enumerate(plan.hosts)})
    assert verdict.passed
    assert verdict.slow == ()
    assert len(verdict.pace) == 8


@given(st.integers(5, 20), st.data())
def test_a_slow_host_is_named_and_its_partners_are_not(count: int, data: st.DataObject) -> None:
    plan = make_plan(hosts=count)
    victim = data.draw(st.sampled_from([host.name for host in plan.hosts]))
    gbps = {host.name: 10.0 for host in plan.hosts} | {victim: 1.0}
    verdict = verdict_of(plan, gbps)
    assert [one.host for one in verdict.slow] == [victim]
    assert verdict.slow[0].gbps == pytest.approx(1.0)
    assert verdict.slow[0].share == pytest.approx(0.1)
    assert verdict.reason.endswith(f"; slow: {victim} (1 GB/s, 10% of the median)")


def test_where_the_whole_is_too_slow_the_slow_hosts_are_to_blame() -> None:
    plan = make_plan(hosts=6, min_busbw=100.0)
    gbps = {host.name: 10.0 for host in plan.hosts} | {"gpu04": 2.5}
    verdict = verdict_of(plan, gbps)
    assert verdict.reason.endswith("is below 100 GB/s; slow: gpu04 (2.5 GB/s, 25% of the median)")
    ends = {one.host: one.outcome for one in verdict.outcomes}
    assert ends == {**dict.fromkeys(gbps, "not-tested"), "gpu04": "fail"}


def test_the_ranks_of_a_host_count_together() -> None:
    plan = make_plan(hosts=4, ranks_per_host=2)
    verdict = verdict_of(plan, {host.name: 10.0 for host in plan.hosts})
    assert verdict.pace == pytest.approx({host.name: 20.0 for host in plan.hosts})


def test_slow_hosts_are_in_the_text_the_document_and_the_page() -> None:
    plan = make_plan(hosts=6)
    gbps = {host.name: 10.0 for host in plan.hosts} | {"gpu04": 2.5}
    verdict = verdict_of(plan, gbps)
    console = Console(width=200, record=True)
    console.print(render_details(verdict))
    line = "gpu04: exchanges 2.5 GB/s with the best of its partners, 25% of the median"
    assert line in console.export_text()
    document = json.loads(verdict.model_dump_json())
    assert document["slow"] == [{"host": "gpu04", "gbps": pytest.approx(2.5), "share": 0.25}]
    assert document["pace"]["gpu01"] == pytest.approx(10.0)
    text = proof_page(verdict)
    assert '<td class="word bad">gpu04</td><td class="n">2.5</td><td class="n">25%</td>' in text
    assert "Slow hosts" not in proof_page(verdict_of(plan, dict.fromkeys(gbps, 10.0)))


@pytest.mark.parametrize(
    ("seconds", "wanted"), [(0.0, 20), (0.005, 20), (0.02, 10), (0.5, 2), (9, 2)]
)
def test_quick_pairs_exchange_often_and_slow_ones_hold_nobody_up(
    seconds: float, wanted: int
) -> None:
    assert takes(seconds) == wanted
