"""A fleet that is proved in groups: what is launched, what a verdict says, where culprits are looked for."""

from __future__ import annotations

from typing import Any

from remedy.probe import Listener
from remedy.spec import VerifySpec
from remedy.verify.allreduce.divided import PartRuns, combined
from remedy.verify.allreduce.division import divide
from remedy.verify.allreduce.plan import plan_ranks
from remedy.verify.allreduce.run import GroupRun
from remedy.verify.hosts import Participant
from remedy.verify.verdict import HostVerdict, Verdict
from tests.unit.report.pages.samples import proof_page
from tests.unit.verify.paper_bench import NAMES, Paper, go, outcomes, sight, states

RACKS = {"rack1": NAMES[:3], "rack2": NAMES[3:], "inventory": NAMES}
GROUPS = [NAMES[:3], NAMES[3:]]
CROSSINGS = [("gpu01", "gpu04"), ("gpu02", "gpu05"), ("gpu03", "gpu06")]


def prove(paper: Paper, **settings: Any) -> Verdict:
    return go(paper, sight(states(), groups=RACKS), **{"divide": "rack*", **settings})


def rungs(verdict: Verdict) -> dict[str, bool | None]:
    return {rung.name: rung.passed for rung in verdict.rungs}


def test_groups_sum_side_by_side_and_then_across() -> None:
    paper = Paper()
    verdict = prove(paper)
    assert verdict.passed, verdict.reason
    assert paper.launches == [*GROUPS, *CROSSINGS]
    assert rungs(verdict) == {
        "facts": True,
        "reachability": True,
        "inside each host": True,
        "each group": True,
        "across groups": True,
    }
    assert (verdict.world_size, verdict.hosts) == (6, 6)
    assert outcomes(verdict) == dict.fromkeys(NAMES, "pass")


def test_what_a_division_does_not_prove_is_said_in_the_sentence_and_in_the_document() -> None:
    verdict = prove(Paper())
    unproved = "not proved: all 6 hosts in one all-reduce, and 6 of 15 pairs of hosts"
    assert unproved in verdict.reason
    divided = verdict.model_dump(mode="json")["divided"]
    assert divided["unproved"].startswith(unproved)
    assert (divided["by"], divided["pairs"], divided["together"]) == ("rack*", 15, 9)
    assert [part["name"] for part in divided["groups"]] == ["rack1", "rack2"]
    assert [part["hosts"] for part in divided["crossings"]] == [list(pair) for pair in CROSSINGS]
    assert all(part["passed"] for part in divided["groups"] + divided["crossings"])
    assert "not proved" not in go(Paper()).reason


def test_one_host_of_each_group_sums_across() -> None:
    paper = Paper()
    verdict = prove(paper, across="one")
    assert paper.launches == [*GROUPS, CROSSINGS[0]]
    assert "4 of them summed in their own group alone" in verdict.reason


def test_a_broken_host_is_found_within_its_group_and_nothing_sums_across() -> None:
    paper = Paper("gpu05")
    verdict = prove(paper)
    assert not verdict.passed
    assert [culprit.name for culprit in verdict.culprits] == ["gpu05"]
    assert outcomes(verdict) == {**dict.fromkeys(NAMES, "pass"), "gpu05": "fail"}
    assert rungs(verdict)["each group"] is False
    assert rungs(verdict)["across groups"] is None
    assert rungs(verdict)["isolation"]
    # Hosts of the other group are partners at most: the group that worked is not tested again.
    assert paper.launches.count(NAMES[:3]) == 1
    assert NAMES not in paper.launches
    assert verdict.divided is not None
    assert [part.passed for part in verdict.divided.groups] == [True, False]
    assert {part.passed for part in verdict.divided.crossings} == {None}


def test_faults_of_several_groups_are_sought_side_by_side() -> None:
    paper = Paper("gpu02", "gpu05")
    verdict = prove(paper)
    assert {culprit.name for culprit in verdict.culprits} == {"gpu02", "gpu05"}
    by_round: dict[int, list[str]] = {}
    for test in verdict.tests:
        by_round.setdefault(test.round, []).extend(test.hosts)
    assert all(len(hosts) == len(set(hosts)) for hosts in by_round.values())
    first = set(by_round[1])
    assert first & set(NAMES[:3])
    assert first & set(NAMES[3:])


def test_a_host_in_a_group_of_two_is_told_from_its_partner() -> None:
    """By hosts that are lent from a group that worked."""
    verdict = prove(Paper("gpu05"), divide=2)
    assert [culprit.name for culprit in verdict.culprits] == ["gpu05"]


def test_a_pair_across_groups_is_named_and_that_both_work_in_their_own() -> None:
    verdict = prove(Paper(apart=(("gpu02", "gpu05"),)))
    (culprit,) = verdict.culprits
    assert set(culprit.hosts) == {"gpu02", "gpu05"}
    assert any("each worked in the all-reduce of its own group" in fact for fact in culprit.facts)
    assert rungs(verdict)["each group"]
    assert rungs(verdict)["across groups"] is False
    assert {host for host, how in outcomes(verdict).items() if how == "fail"} == {"gpu02", "gpu05"}


def test_two_groups_that_do_not_work_together_are_one_culprit() -> None:
    apart = tuple((one, other) for one in NAMES[:3] for other in NAMES[3:])
    verdict = prove(Paper(apart=apart))
    (culprit,) = verdict.culprits
    assert culprit.name == "rack1 <-> rack2"
    assert set(culprit.hosts) == set(NAMES)
    assert verdict.reason == culprit.reason


def test_a_group_cut_off_from_all_others_is_one_culprit() -> None:
    apart = tuple((one, other) for one in NAMES[:2] for other in NAMES[2:])
    verdict = prove(Paper(apart=apart), divide=2)
    (culprit,) = verdict.culprits
    assert culprit.name == "gpu[01-02]"
    assert culprit.hosts == NAMES[:2]


def test_a_machine_in_two_groups_is_seen_though_no_group_has_it_twice() -> None:
    paper = Paper(boots={"gpu02": "boot-x", "gpu06": "boot-x"})
    verdict = prove(paper)
    assert not verdict.passed
    assert (
        "gpu[02,06] run on one machine (same boot-id): no network between them was tested"
        in verdict.reason
    )
    assert {culprit.name for culprit in verdict.culprits} == {"gpu[02,06]"}
    assert len(paper.launches) == 5


def test_the_rendezvous_port_is_looked_at_where_each_group_meets() -> None:
    held = states(gpu04={"listeners": (Listener("*", 29500, ()),)})
    verdict = go(Paper(), sight(held, groups=RACKS), divide="rack*", port=29500)
    assert "the rendezvous port 29500 on gpu04 is held" in verdict.reason
    assert go(Paper(), sight(held, groups=RACKS), port=29500).passed


def test_each_group_has_the_time_of_its_own_size() -> None:
    paper = Paper()
    prove(paper)
    assert paper.deadlines == [93.0, 93.0, 92.0, 92.0, 92.0]


def test_a_share_of_an_unknown_limit_is_reached_by_no_group() -> None:
    verdict = prove(Paper(), min_busbw="80%")
    assert not verdict.passed
    assert "min_busbw is 80% of what the links can carry" in verdict.reason
    assert "isolation" not in rungs(verdict)


def test_versions_that_differ_between_groups_are_no_proof() -> None:
    """Each group is of one version by itself; one communicator of them all would refuse to form."""
    hosts = [Participant(name=name, address=f"10.0.0.{at}") for at, name in enumerate(NAMES)]
    plan = plan_ranks(hosts, VerifySpec())
    division = divide(VerifySpec(divide="rack*", across="one"), NAMES, RACKS)
    assert division is not None

    def ran(hosts: tuple[str, ...], nccl: str) -> GroupRun:
        ends = tuple(HostVerdict(host=host, outcome="pass") for host in hosts)
        return GroupRun(Verdict(passed=True, reason="", nccl=(nccl,), outcomes=ends), hosts=hosts)

    crossings = {division.crossings[0].name: ran(CROSSINGS[0], "2.30.7")}
    for other, passed in (("2.30.7", True), ("2.27.3", False)):
        groups = {"rack1": ran(GROUPS[0], "2.30.7"), "rack2": ran(GROUPS[1], other)}
        verdict = combined(plan, division, PartRuns(groups, crossings))
        assert verdict.passed is passed
    assert verdict.reason == "mixed NCCL versions between groups: 2.30.7: rack1; 2.27.3: rack2"
    assert verdict.nccl == ("2.27.3", "2.30.7")


def test_the_page_shows_each_part_and_what_is_not_proved() -> None:
    text = proof_page(prove(Paper()))
    assert "<h2>Groups</h2>\n<p>not proved: all 6 hosts in one all-reduce" in text
    assert text.count('<td class="word good">passed</td>') == 5
    assert "<h2>Groups</h2>" not in proof_page(go(Paper()))
