"""Who calls whom: everybody all others, and above a number of hosts some of every group."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remedy.verify.reach.answers import judge_links
from remedy.verify.reach.calls import ALL, FEWEST, GROUP, Calls
from remedy.verify.reach.plan import script, script_deadline
from tests.unit.verify.reach.reach_bench import PORTS, answers, make_plan

LARGE = st.integers(ALL + 1, 1300)


@given(st.integers(2, ALL))
def test_everybody_calls_all_others_once(hosts: int) -> None:
    calls = Calls(hosts, "seed")
    for me in {0, hosts // 2, hosts - 1}:
        assert sorted(calls.order(me)) == [n for n in range(hosts) if n != me]
    assert (calls.links, calls.missing) == (hosts * (hosts - 1), 0.0)


def test_a_large_fleet_goes_group_by_group() -> None:
    calls = Calls(2 * GROUP, "seed")
    own = set(range(GROUP))
    assert set(calls.order(5)[: GROUP - 1]) == own - {5}
    # Nobody is the first whom many call.
    firsts = Counter(calls.order(me)[0] for me in range(2 * GROUP))
    assert max(firsts.values()) == 1


@settings(max_examples=5)
@given(LARGE, st.text("0123456789abcdef", min_size=16, max_size=16))
def test_a_very_large_fleet_leaves_no_two_groups_out(hosts: int, seed: str) -> None:
    calls = Calls(hosts, seed)
    orders = [calls.order(me) for me in range(hosts)]
    group_of = {host: at for at, group in enumerate(calls.groups) for host in group}
    assert sorted(group_of) == list(range(hosts))
    for me, order in enumerate(orders):
        assert len(set(order)) == len(order) <= ALL + GROUP
        counted = Counter(group_of[peer] for peer in order)
        assert me not in order
        assert counted[group_of[me]] == len(calls.groups[group_of[me]]) - 1
        for at, group in enumerate(calls.groups):
            assert counted[at] >= min(FEWEST, len(group) - (me in group))
    callers = Counter(peer for order in orders for peer in order)
    assert calls.callers == [callers[host] for host in range(hosts)]
    assert calls.links == sum(map(len, orders))
    assert calls.peers == min(*map(len, orders), *callers.values())
    assert 0 < calls.missing < 1


@settings(max_examples=5)
@given(LARGE)
def test_no_host_is_called_by_many_more_than_another(hosts: int) -> None:
    callers = Calls(hosts, "seed").callers
    assert max(callers) <= min(callers) + GROUP


def test_another_run_tries_other_links() -> None:
    first, second = Calls(1024, "1"), Calls(1024, "2")
    assert set(first.order(0)) != set(second.order(0))
    assert first.order(0) == Calls(1024, "1").order(0)


def test_the_chance_to_overlook_a_link_is_that_of_those_between_groups() -> None:
    calls = Calls(1024, "seed")
    assert len(calls.groups) == 8
    tried = {(me, peer) for me in range(1024) for peer in calls.order(me)}
    between = [(a, b) for a in range(0, 1024, 7) for b in range(1024) if a // 128 != b // 128]
    overlooked = sum(pair not in tried for pair in between) / len(between)
    assert calls.missing == pytest.approx(overlooked, abs=0.01)


def test_what_is_sent_to_a_host_does_not_grow_with_the_fleet() -> None:
    sizes = [len(script(make_plan(hosts), 3)) for hosts in (700, 2100)]
    assert max(sizes) < 1.15 * min(sizes)


def test_the_first_hosts_wait_for_the_last_ones_of_a_very_large_fleet() -> None:
    assert make_plan(128).seconds == pytest.approx(9 + 0.08 * 128)
    # A host calls no more than in a fleet of 700, and the controller takes longer to start them all.
    few, many = make_plan(700), make_plan(2100)
    assert many.seconds - few.seconds == pytest.approx(0.02 * 1400, abs=3)
    assert script_deadline(many) > many.seconds


# --- what is said of it ---------------------------------------------------------------------------------------


def test_what_was_not_tried_is_said() -> None:
    plan = make_plan(600)
    reach = judge_links(plan, answers(plan, {}))
    assert reach.passed
    message = reach.rung.message
    assert message.startswith(f"{reach.attempts:,} connections; ")
    assert f"{plan.calls.links:,} of 359,400 links were tried" in message
    assert f"overlooked with a chance of {plan.calls.missing:.0%}" in message
    assert judge_links(make_plan(5), answers(make_plan(5), {})).sampled == ""


def test_a_host_that_nobody_reaches_is_named_though_only_some_tried() -> None:
    plan = make_plan(600)
    bad: dict[str, list[list[object]]] = {}
    for me, host in enumerate(plan.hosts):
        if 77 in plan.order(me):
            bad[host.name] = [[77, port, "dropped", "3.5 s"] for port in PORTS]
    reach = judge_links(plan, answers(plan, bad))
    (culprit,) = reach.culprits
    assert culprit.name == "gpu77"
    assert f"of the {plan.calls.peers} hosts that it was tried with" in culprit.reason


def test_two_groups_that_do_not_reach_each_other_are_seen() -> None:
    plan = make_plan(600)
    first, second = plan.calls.groups[0][:30], plan.calls.groups[1]
    bad = {
        plan.hosts[me].name: [
            [peer, port, "dropped", "3.5 s"]
            for peer in plan.order(me)
            if peer in second
            for port in PORTS
        ]
        for me in first
    }
    reach = judge_links(plan, answers(plan, bad))
    assert not reach.passed
    assert {link.source for link in reach.dead} == {plan.hosts[me].name for me in first}
    assert {link.target for link in reach.dead} == {
        plan.hosts[peer].name for me in first for peer in plan.order(me) if peer in second
    }
