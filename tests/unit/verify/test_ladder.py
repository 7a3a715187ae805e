"""The ladder with hosts that only exist on paper: which rung is climbed, and what a red one says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from remedy.probe import Clock, Gpus, HostState, RdmaPort, Resolved
from remedy.probe.resolved import Answers
from remedy.spec import VerifySpec
from remedy.values import Unknown
from remedy.verify.allreduce.plan import plan_ranks
from remedy.verify.facts import Facts
from remedy.verify.facts import compare as look_at
from remedy.verify.hosts import Participant
from remedy.verify.isolate.search import patience
from remedy.verify.ladder import climb
from remedy.verify.verdict import NarrowLink, Rung
from tests.unit.build import host_state, record
from tests.unit.verify.paper_bench import (
    ADDRESSES,
    NAMES,
    RESOLVED,
    Paper,
    go,
    outcomes,
    sight,
    states,
)


def test_a_green_fleet_is_one_knock_and_one_launch() -> None:
    paper = Paper()
    reported: list[Rung] = []
    verdict = climb(paper.run, sight(states()), VerifySpec(), reported.append)
    assert verdict.passed, verdict.reason
    assert [(rung.name, rung.passed) for rung in verdict.rungs] == [
        ("facts", True),
        ("reachability", True),
        ("inside each host", True),
        ("whole fleet", True),
    ]
    assert tuple(reported) == verdict.rungs
    assert (paper.knocks, paper.launches) == (1, [NAMES])


def test_a_dead_way_ends_the_climb_and_is_joined_with_what_is_known() -> None:
    paper = Paper(closed=(("gpu02", "gpu05"),))
    seen = sight(
        states(),
        known={"gpu05": ["nftables closes the ports"]},
        curable=frozenset({"gpu05"}),
        inventory="inv.py",
    )
    verdict = go(paper, seen)
    assert not verdict.passed
    (cause,) = verdict.culprits
    assert cause.name == "gpu02 -> gpu05"
    tried, known = cause.facts
    assert tried.startswith("tried: gpu02 -> gpu05 port ")
    assert known == "gpu05: nftables closes the ports"
    assert cause.next_step == "remedy apply inv.py --limit gpu05"
    assert outcomes(verdict)["gpu01"] == "not-tested"
    assert outcomes(verdict)["gpu05"] == "fail"
    assert paper.launches == []
    assert [rung.passed for rung in verdict.rungs] == [True, False, None, None]


def test_a_wrong_name_is_named_with_its_direction() -> None:
    wrong = {**RESOLVED, "gpu03": ("127.0.1.1",)}
    found = states()
    found["gpu01"] = host_state("gpu01", ADDRESSES["gpu01"], peers=wrong)
    verdict = go(Paper(), sight(found))
    assert [cause.name for cause in verdict.culprits] == ["gpu01 -> gpu03"]
    assert "resolves its name wrongly" in verdict.reason


def test_a_red_fleet_is_taken_apart_until_the_host_is_named() -> None:
    paper = Paper("gpu05")
    verdict = go(paper)
    assert not verdict.passed
    assert [cause.name for cause in verdict.culprits] == ["gpu05"]
    assert outcomes(verdict) == {**dict.fromkeys(NAMES, "pass"), "gpu05": "fail"}
    assert verdict.rungs[-1].name == "isolation"
    assert verdict.rungs[-1].passed
    assert len(verdict.tests) == len(paper.launches) - 1 <= 8


def test_without_isolation_the_first_verdict_stands() -> None:
    paper = Paper("gpu05")
    verdict = go(paper, isolate=False)
    assert not verdict.passed
    assert len(paper.launches) == 1


def test_new_hosts_are_tested_in_pairs_and_then_all_together() -> None:
    paper = Paper()
    verdict = climb(paper.run, sight(states()), VerifySpec(), pairs=(("gpu06", "gpu02"),))
    assert verdict.passed
    assert paper.knocks == 0
    assert sorted(map(len, paper.launches)) == [2, 6]


def test_a_new_host_that_fails_ends_it() -> None:
    paper = Paper("gpu06")
    verdict = climb(paper.run, sight(states()), VerifySpec(), pairs=(("gpu06", "gpu02"),))
    assert [cause.name for cause in verdict.culprits] == ["gpu06"]
    assert len(paper.launches) == 1


def look(found: Mapping[str, HostState], gpus: int = 0) -> Facts:
    hosts = [Participant(name=name, address=ADDRESSES[name], gpus=gpus) for name in found]
    return look_at(found, plan_ranks(hosts, VerifySpec(port=29500)))


def test_new_hosts_have_the_time_of_a_first_start() -> None:
    """On a machine that was just set up nothing is in memory yet: a slow import is no fault."""
    paper = Paper()
    climb(paper.run, sight(states()), VerifySpec(deadline=77), pairs=(("gpu06", "gpu02"),))
    assert paper.deadlines == [77.0, 77.0]


@pytest.mark.parametrize(
    ("ready", "wanted"), [(0.0, 25.4), (4.0, 25.4), (20.0, 55.4), (80.0, 175.4)]
)
def test_groups_of_hosts_that_start_slowly_have_more_time(ready: float, wanted: float) -> None:
    hints = {"gpu01": ready, "gpu02": 1.0} if ready else {}
    assert patience(("gpu01", "gpu02"), hints) == wanted
    # One that never was ready is taken to be like most.
    assert patience(("gpu03",), {"gpu01": ready, "gpu02": ready}) == pytest.approx(
        max(25.0, 2 * ready + 15) + 0.2
    )


def test_a_large_group_has_no_more_than_a_minute_and_a_half_beyond_its_start() -> None:
    hosts = [f"gpu{number:04d}" for number in range(2048)]
    assert patience(hosts, dict.fromkeys(hosts, 3.0)) == 2 * 3.0 + 90.0
    assert patience(hosts, {}) == 90.0


def test_a_search_gives_slow_starters_the_time_that_they_took() -> None:
    paper = Paper("gpu05", ready=20.0)
    verdict = go(paper)
    assert [cause.name for cause in verdict.culprits] == ["gpu05"]
    first, *later = paper.deadlines
    assert first == 96.0
    assert later
    assert all(55.0 < deadline < 57.0 for deadline in later)


def test_one_host_alone_is_not_possible() -> None:
    verdict = go(Paper(), sight({"gpu01": states()["gpu01"]}))
    assert not verdict.possible


def test_a_clock_that_is_behind_is_found() -> None:
    second = 1_000_000_000

    def clock(behind: int) -> Clock:
        asked = 1000 * second
        return record(
            Clock, epoch_ns=asked - behind * second, asked_at=asked, heard_at=asked + second // 10
        )

    found = states(**{name: {"clock": clock(60 if name == "gpu04" else 0)} for name in NAMES})
    facts = look(found)
    assert [one.name for one in facts.culprits] == ["gpu04"]
    assert "60 s behind" in facts.culprits[0].reason


def test_equal_names_are_found() -> None:
    found = states()
    for name in ("gpu02", "gpu03"):
        found[name] = host_state(name, ADDRESSES[name], running="node", peers=RESOLVED)
    (one,) = look(found).culprits
    assert one.hosts == ("gpu02", "gpu03")


@pytest.mark.parametrize(("mark", "wanted"), [(3.0, 3.0), ("80%", 40.0), (None, None)])
def test_the_mark_is_a_number_or_a_share(mark: Any, wanted: float | None) -> None:
    hosts = [Participant(name=n, address=a) for n, a in ADDRESSES.items()]
    assert plan_ranks(hosts, VerifySpec(min_busbw=mark), 50.0).min_busbw == wanted


def test_a_share_of_an_unknown_limit_is_never_reached() -> None:
    verdict = go(Paper(), min_busbw="80%")
    assert not verdict.passed
    assert verdict.sum_exact
    assert verdict.bandwidth
    assert "min_busbw is 80% of what the links can carry" in verdict.reason
    assert "give it in GB/s" in verdict.reason
    assert "isolation" not in [rung.name for rung in verdict.rungs]
    by_name = {rung.name: rung for rung in verdict.rungs}
    assert "gpu01" in by_name["facts"].message
    assert not by_name["whole fleet"].passed


@pytest.mark.parametrize(
    ("links", "warnings"),
    [
        ({0: 478.1, 1: 478.1}, []),
        ({0: 478.1, 1: 451.6}, ["GPU 1 carry 451.6 GB/s, and other links there 478.1"]),
        ({0: 478.1, 1: 0.0}, ["GPU 1 carry 0 GB/s, and other links there 478.1"]),
        (
            {0: 56.2, 1: 56.2},  # the wires are quicker
            [f"GPU {gpu} carry 56.2 GB/s, and other links there 100" for gpu in (0, 1)],
        ),
        ({0: 56.2}, []),  # one GPU: nothing goes over its links
        ({0: 0.0, 1: 0.0}, []),  # none has any
        (Unknown(reason="nvidia-smi did not answer"), []),
    ],
)
def test_slow_links_of_a_gpu_are_named(links: Any, warnings: list[str]) -> None:
    port = RdmaPort("mlx5_0", 1, "ACTIVE", "LinkUp", 400.0, "InfiniBand", "", (), {})
    gpus = Gpus(pci=(), driver="580.65.06", devices=(), processes=(), acs={}, links=links)
    changed = {"rdma": (port, port._replace(device="mlx5_1")), "gpus": gpus}
    lines = [line for line in look(states(gpu01=changed), gpus=8).warnings if "NVLinks" in line]
    assert lines == [f"gpu01: the NVLinks of {text}: figures may be low" for text in warnings]


def test_reachability_that_was_left_out_is_made_up_for_where_the_fleet_is_red() -> None:
    paper = Paper("gpu05", closed=(("gpu01", "gpu05"),))
    verdict = go(paper, reach=False)
    assert [cause.name for cause in verdict.culprits] == ["gpu01 -> gpu05"]
    assert (paper.knocks, len(paper.launches)) == (2, 1), "what failed is tried again"


@pytest.mark.parametrize("closed", [(), (("gpu02", "gpu05"),)], ids=["green", "red"])
def test_links_that_lose_large_packets_are_of_every_verdict(
    closed: tuple[tuple[str, str], ...],
) -> None:
    """A fault beside them is no reason to lose them: it may be cured first, and they stay."""
    verdict = go(Paper(closed=closed, narrow={"gpu01": ((1, 1500),)}))
    assert verdict.passed is not bool(closed)
    assert verdict.narrow_links == (NarrowLink(source="gpu01", target="gpu02", size=1500),)


def test_hosts_that_all_say_nothing_are_no_proof_of_anything() -> None:
    verdict = climb(lambda _: {}, sight(states()), VerifySpec())
    assert not verdict.possible
    assert verdict.reason.startswith("not possible: no host reported")


def test_a_host_cut_off_in_both_directions_is_one_culprit() -> None:
    closed = tuple((a, b) for a in NAMES for b in NAMES if a != b and "gpu04" in (a, b))
    verdict = go(Paper(closed=closed))
    assert [cause.name for cause in verdict.culprits] == ["gpu04"]


def test_names_are_compared_once_for_hosts_that_answer_alike() -> None:
    """Those of a host that answers otherwise are its own, right ones among them."""
    alike = Answers({**RESOLVED, "gpu04": ("127.0.1.1",)})
    found = {
        name: host_state(
            name,
            ADDRESSES[name],
            peers=Resolved(
                alike, {"gpu04": RESOLVED["gpu04"], "gpu05": ()} if name == "gpu06" else {}
            ),
        )
        for name in NAMES
    }
    wrong = {("gpu06", "gpu05"): "does not resolve"}
    wrong |= {(name, "gpu04"): "gpu04 is 127.0.1.1" for name in NAMES[:5] if name != "gpu04"}
    assert look(found).nameless == wrong


def test_a_host_without_another_is_no_culprit_of_a_proof_that_is_not_possible() -> None:
    verdict = go(Paper(), sight({"gpu01": states()["gpu01"]}, inventory="inv.py"))
    assert (verdict.passed, verdict.possible) == (False, False)
    (cause,) = verdict.culprits
    assert (cause.name, cause.hosts) == ("", ())
    assert cause.reason == "gpu01 has no other host beside it"
    assert cause.next_step == "Prove it with the others: remedy verify inv.py"
    assert outcomes(verdict) == {"gpu01": "not-tested"}
