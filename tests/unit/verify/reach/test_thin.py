"""Reachability of fleets in which so many ways are dead that they can't be kept one by one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.verify.reach import answers as answers_module
from remedy.verify.reach.answers import judge_links
from remedy.verify.reach.plan import ReachPlan
from remedy.verify.reach.result import Reach
from remedy.verify.verdict import HostVerdict, Verdict
from tests.unit.report.pages.samples import proof_page
from tests.unit.verify.reach.reach_bench import PORTS, answers, make_plan


def failed(plan: ReachPlan, ways: set[tuple[int, int]]) -> Reach:
    """The judgement where these ways are dropped, on all ports."""
    bad: dict[str, list[list[Any]]] = {}
    for source, target in sorted(ways):
        calls = bad.setdefault(f"gpu{source}", [])
        calls += [[target, port, "dropped", "3.5 s"] for port in PORTS]
    return judge_links(plan, answers(plan, bad))


def test_a_large_fleet_in_which_nobody_reaches_anybody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers_module, "MOST_DEAD", 100)
    count = 40
    ways = {(s, t) for s in range(count) for t in range(count) if s != t}
    found = failed(make_plan(count), ways)
    assert not found.passed
    assert found.count == count * (count - 1) * len(PORTS)
    assert {end.host for end in found.dead_ends} == {f"gpu{n}" for n in range(count)}
    assert found.dead == ()
    assert found.culprits[0].reason.startswith(
        "gpu0: no answer on ports 29500, 33000, 55000 from any of the other 39 hosts (dropped"
    )


def test_dead_hosts_and_a_dead_way_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers_module, "MOST_DEAD", 50)
    ways = {(s, 3) for s in range(30) if s != 3} | {(7, t) for t in range(30) if t not in (3, 7)}
    found = failed(make_plan(30), ways | {(3, 7), (10, 11)})
    named = {(end.kind, end.host, end.target) for end in found.dead_ends}
    assert {("in", "gpu3", ""), ("out", "gpu7", ""), ("link", "gpu10", "gpu11")} <= named
    assert named <= {
        ("in", "gpu3", ""),
        ("out", "gpu7", ""),
        *((k, s, t) for k, s, t in named if t),
    }
    assert {(way.source, way.target) for way in found.dead} == {
        ("gpu3", "gpu7"),
        ("gpu10", "gpu11"),
    }


@given(
    st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda way: way[0] != way[1]))
)
def test_every_dead_way_is_explained_by_a_host_or_kept(ways: set[tuple[int, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answers_module, "MOST_DEAD", 0)
        found = failed(make_plan(10), ways)
        patch.setattr(answers_module, "MOST_DEAD", 10_000)
        whole = failed(make_plan(10), ways)
    assert found.passed == whole.passed
    assert found.count == whole.count == len(ways) * len(PORTS)
    closed = {one.host for one in found.worst if one.kind == "in"}
    mute = {one.host for one in found.worst if one.kind == "out"}
    left = {w for w in ways if f"gpu{w[1]}" not in closed and f"gpu{w[0]}" not in mute}
    # Nothing more is kept than the cap allows, and what a host is blamed for really failed.
    assert found.dead == ()
    for one in found.worst:
        side = 1 if one.kind == "in" else 0
        mine = {way for way in ways if f"gpu{way[side]}" == one.host}
        assert one.count == len(mine) if one.kind == "in" else one.count <= len(mine)
        assert one.count >= 2
    assert len(left) + sum(one.count for one in found.worst) >= len(ways)


def test_nobody_said_anything_is_still_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers_module, "MOST_DEAD", 10)
    plan = make_plan(12)
    found = judge_links(plan, {})
    assert found.silent
    assert set(found.failures.values()) == {"nothing came back"}


def test_a_page_draws_no_map_of_what_it_does_not_know() -> None:
    verdict = Verdict(
        passed=False,
        reason="much",
        outcomes=tuple(HostVerdict(host=f"gpu{n}", outcome="fail", reason="x") for n in range(4)),
        dead_count=999_999,
    )
    text = proof_page(verdict)
    assert 'class="map"' not in text
    assert "999,999 links are dead" in text
