"""Reachability: which ports are tried, who calls whom, and what the answers mean."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.errors import UnreachableError
from remedy.verify.reach.answers import judge_links
from remedy.verify.reach.plan import draw_ports, engine_ports
from tests.unit.verify.reach.reach_bench import PORTS, UNCUT, KnockOutput, answers, make_plan


@given(st.integers(1024, 60000), st.integers(2, 4000), st.integers(0, 9))
def test_ports_are_drawn_from_both_halves_of_the_range(low: int, size: int, seed: int) -> None:
    between = (low, low + size)
    first, second, last = draw_ports(between, {low}, 29500, Random(seed))  # noqa: S311
    assert low < first <= low + size // 2 < second <= low + size
    assert last == 29500


def test_a_range_without_a_free_port_leaves_the_launchers() -> None:
    assert draw_ports((40000, 40000), {40000}, 29500, Random(1)) == (29500,)  # noqa: S311


def test_all_ways_good() -> None:
    plan = make_plan()
    reach = judge_links(plan, answers(plan, {}))
    assert reach.passed
    assert reach.attempts == 4 * 3 * 3
    assert reach.dead_ends == ()


def test_one_direction_is_one_way() -> None:
    plan = make_plan()
    bad = {"gpu1": [[3, port, "dropped", "3.5 s"] for port in PORTS]}
    reach = judge_links(plan, answers(plan, bad))
    assert [end.name for end in reach.dead_ends] == ["gpu1 -> gpu3"]
    assert {(d.source, d.target, d.outcome) for d in reach.dead} == {("gpu1", "gpu3", "dropped")}


def test_a_closed_range_on_one_host_is_that_host() -> None:
    plan = make_plan(6)
    bad = {
        f"gpu{n}": [[2, port, "rejected", "EHOSTUNREACH"] for port in PORTS[:2]]
        for n in range(6)
        if n != 2
    }
    reach = judge_links(plan, answers(plan, bad))
    (end,) = reach.dead_ends
    assert (end.kind, end.host) == ("in", "gpu2")
    assert end.message(5) == (
        "gpu2: connections from the other 5 hosts on ports 33000, 55000"
        " are rejected (by a firewall, or no route)"
    )


@pytest.mark.parametrize(
    ("seen", "listening", "means"),
    [
        ("refused", True, "refused"),
        ("refused", False, "no listener"),
        ("dropped", False, "dropped"),
        ("stalled", True, "stalled"),
        ("foreign", True, "foreign"),
        ("foreign", False, None),
        ("mute", False, None),
        ("mute", True, "mute"),
        ("untried", True, "not tested"),
    ],
)
def test_what_a_failed_call_means(seen: str, listening: bool, means: str | None) -> None:
    plan = make_plan(2)
    ports = list(PORTS) if listening else list(PORTS[1:])
    given = answers(plan, {"gpu0": [[1, PORTS[0], seen, ""]]}, gpu1={"listening": ports})
    assert [one.outcome for one in judge_links(plan, given).dead] == ([means] if means else [])


def test_a_host_that_says_nothing_is_not_tested_and_has_no_listener() -> None:
    plan = make_plan()
    bad = {f"gpu{n}": [[2, port, "refused", ""] for port in PORTS] for n in (0, 1, 3)}
    given = answers(plan, bad)
    given["gpu2"] = KnockOutput("gpu2", error=UnreachableError("gpu2: no connection"))
    reach = judge_links(plan, given)
    by = {(d.source, d.target): d.outcome for d in reach.dead}
    assert by["gpu2", "gpu0"] == "not tested"
    assert by["gpu0", "gpu2"] == "no listener"
    assert {end.host for end in reach.dead_ends} == {"gpu2"}


@pytest.mark.parametrize(
    "change",
    [
        {"good": 1},
        {"bad": [[7, 33000, "dropped", ""]]},
        {"bad": [[1, 1, "dropped", ""]]},
        {"listening": "all"},
        {"unheard": 1},
    ],
)
def test_a_report_that_does_not_add_up_counts_for_nothing(change: dict[str, Any]) -> None:
    plan = make_plan()
    reach = judge_links(plan, answers(plan, {}, gpu0=change))
    assert {(d.source, d.outcome) for d in reach.dead} == {("gpu0", "not tested")}


def test_the_report_of_another_run_counts_for_nothing() -> None:
    plan, other = make_plan(), make_plan()
    assert len(judge_links(plan, answers(other, {})).dead) == 4 * 3


def test_names_that_do_not_resolve_rightly_are_dead_ways() -> None:
    plan = make_plan()
    reach = judge_links(plan, answers(plan, {}), {("gpu0", "gpu1"): "10.9.9.9"})
    assert [(d.source, d.target, d.outcome) for d in reach.dead] == [("gpu0", "gpu1", "no name")]
    assert reach.culprits[0].reason == "gpu0 -> gpu1: resolves its name wrongly"


def test_packets_that_must_not_be_cut_tell_where_the_mtu_is_smaller() -> None:
    plan = make_plan(3)
    found = judge_links(plan, answers(plan, {}, gpu0={"mtu": {**UNCUT, "narrow": [[2, 9000]]}}))
    assert found.passed
    assert found.echo_links == 6
    assert [(way.source, way.target, way.size) for way in found.narrow] == [("gpu0", "gpu2", 9000)]
    assert "gpu0 -> gpu2 (9000 bytes)" in found.mtu


def test_an_mtu_that_nobody_could_measure_is_said_to_be_unknown() -> None:
    plan = make_plan(2)
    mute = {"gpu0": {"mtu": {**UNCUT, "mute": [1]}}, "gpu1": {"mtu": {**UNCUT, "mute": [0]}}}
    assert judge_links(plan, answers(plan, {}, **mute)).mtu.startswith("MTU unknown")
    refused = {f"gpu{n}": {"mtu": {**UNCUT, "reason": "no"}} for n in range(2)}
    assert judge_links(plan, answers(plan, {}, **refused)).mtu.startswith("MTU unknown")
    assert judge_links(plan, answers(plan, {})).mtu == ""


@pytest.mark.parametrize("change", [{"narrow": [[0, 9000]]}, {"mute": [7]}])
def test_a_report_about_others_than_were_asked_counts_for_nothing(change: dict[str, Any]) -> None:
    plan = make_plan(3)
    found = judge_links(plan, answers(plan, {}, gpu0={"mtu": {**UNCUT, **change}}))
    assert found.failures == {"gpu0": "its report is not about what was asked"}


@given(st.integers(0, 2**32))
def test_ports_of_an_engines_own_ranks_are_tried_too(seed: int) -> None:
    random, between = Random(seed), (32768, 60999)  # noqa: S311
    (port,) = engine_ports("mindspore", between, {8118}, random)
    assert 8119 <= port <= 12213
    (port,) = engine_ports("paddle", between, (), random)[:1]
    assert 61000 <= port <= 64000
    assert engine_ports("torch", between, (), random) == ()
    assert engine_ports("mpi", between, (), random) == (), "it is kept within the kernel's range"
    assert engine_ports("mindspore", (1024, 65535), (), random) == ()
