"""A red verification of any number of hosts: folded by reason, each host once, and nothing mixed up."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations

import pytest
from _pytest.mark import ParameterSet
from ClusterShell.NodeSet import NodeSet

from remedy.diagnose.diagnosis import (
    Confirmation,
    ConfirmationStatus,
    Diagnosis,
    Explanation,
    Quote,
)
from remedy.report.culprits import accused_of, link_lines, once
from remedy.report.diagnosis import render_explanation
from remedy.report.ladder import render_rung, render_verdict
from remedy.spec import VerifySpec
from remedy.verify.accusations import MOST, accusations, names_of, summary
from remedy.verify.allreduce.division import divide
from remedy.verify.reach.result import Reach
from remedy.verify.verdict import Culprit, DeadLink, Verdict
from tests.unit.report.first import lines
from tests.unit.report.first import names_of as hosts_of
from tests.unit.report.shapes import FAULTS, Shape, dead, outcome_of, printed, shape

EIGHT = hosts_of(8)
LINES, WIDTH = 30, 300
PAIRS = [*combinations(FAULTS, 2)]
MIXES = [
    *PAIRS,
    *([*combinations(FAULTS, 3)][::9]),
    *([*combinations(FAULTS, 5)][::97]),
    tuple(FAULTS),
]
COMMAND = re.compile(r"remedy (apply|verify|check) ")


def sizes() -> list[ParameterSet]:
    """Every mix on 8 hosts, with few and many of them, some on 64, a few on 500; most of these with --full."""
    few = [(8, (0.25, 0.9)[place % 2], mix) for place, mix in enumerate(MIXES)]
    some = [(64, share, mix) for share in (0.1, 0.6) for mix in MIXES[::20]]
    large = [*some, *((500, 0.01, mix) for mix in MIXES[::40])]
    return [
        *(pytest.param(*one) for one in few),
        *(
            pytest.param(*one, marks=() if place % 4 == 0 else pytest.mark.full)
            for place, one in enumerate(large)
        ),
    ]


@pytest.mark.parametrize(("number", "share", "mix"), sizes(), ids=lambda value: f"{value}"[:60])
def test_whatever_is_wrong_the_screen_has_30_lines_of_300_characters(
    number: int, share: float, mix: tuple[str, ...]
) -> None:
    given = shape(number, *mix, share=share)
    outcome = outcome_of(given)
    assert outcome.verdict is not None
    text = printed(outcome)
    assert len(text) <= LINES, "\n".join(text)
    for line in text:
        assert len(line) <= WIDTH or COMMAND.search(line), line
    _name_each_once(text, outcome.verdict)
    _are_sorted_out(outcome.verdict, given)


def _name_each_once(text: Sequence[str], verdict: Verdict) -> None:
    """Each accused host is in the first line of one reason, or is one of those left out."""
    heads = [m[1] for line in text if (m := re.match(r"  (?:  )?([a-z]+[\[\d][^ ]*): ", line))]
    (first,) = (line for line in text if line.startswith("NOT PROVED"))
    heads += re.findall(r"^NOT PROVED   (\S+\d\]?): ", first)
    hosts = [host for head in heads for host in NodeSet(head)]
    assert len(hosts) == len(set(hosts)), heads
    named = {host for culprit in verdict.culprits if not culprit.is_link for host in culprit.hosts}
    left_out = any("more reason" in line for line in text)
    assert set(hosts) == named or (left_out and set(hosts) < named), heads


def _are_sorted_out(verdict: Verdict, given: Shape) -> None:
    """Every accused host is in one group, and no group says of a host what is not so."""
    groups = accused_of(verdict)
    hosts = [host for group in groups if not group.links for host in group.hosts]
    assert len(hosts) == len(set(hosts))
    named = {host for c in verdict.culprits if not c.is_link for host in c.hosts}
    assert set(hosts) == named
    assert {link for group in groups for link in group.links} == {
        culprit.name for culprit in verdict.culprits if culprit.is_link
    }
    ends: dict[str, set[str]] = {host: set() for host in given.hosts}
    for link in given.links:
        ends[link.source].add(link.outcome)
        ends[link.target].add(link.outcome)
    for group in groups:
        for culprit in group.culprits:
            for ending in culprit.endings:
                assert all(ending.outcome in ends[host] for host in culprit.hosts)
        if len(groups) <= MOST and not group.links:
            # What a sentence says of several hosts is so of each.
            kinds = {tuple(sorted({e.outcome for e in c.endings})) for c in group.reason.culprits}
            assert len(kinds) == 1 or "most other hosts" in group.reason.text


def test_hosts_with_different_faults_are_not_one() -> None:
    culprits = [
        Culprit(name=name, hosts=(name,), reason=f"{name}: fault number {n}")
        for n, name in enumerate(EIGHT)
    ]
    assert [group.hosts for group in accusations(culprits)] == [(name,) for name in EIGHT]
    verdict = Verdict(passed=False, reason=summary(culprits), culprits=tuple(culprits))
    assert verdict.reason.endswith("gpu003: fault number 2; and 5 more reasons")
    text = "\n".join(lines(render_verdict(verdict, None)))
    assert "gpu[007-008]: 2 more reasons" in text
    for n in range(6):
        assert f"gpu{n + 1:03d}: fault number {n}" in text


def test_what_was_seen_of_one_host_names_it() -> None:
    shared, alone = "seen of both", "seen of the second"
    pair = [
        Culprit(name="a1", hosts=("a1",), reason="broken", facts=(shared,)),
        Culprit(name="a2", hosts=("a2",), reason="broken", facts=(shared, alone)),
    ]
    verdict = Verdict(passed=False, reason="r", culprits=tuple(pair))
    text = [line.strip() for line in lines(render_verdict(verdict, None))]
    assert text[0] == "NOT PROVED   a[1-2]: broken"
    assert shared in text
    assert f"a2: {alone}" in text


def test_a_long_reason_says_nothing_of_hosts_that_were_not_tested_where_there_are_none() -> None:
    verdict = Verdict(passed=False, reason="gpu02: " + "no sign of life " * 40)
    assert not any("not tested" in line for line in lines(render_verdict(verdict, None)))


def test_each_piece_of_evidence_stands_once() -> None:
    closed, odd = "nftables closes the ports (policy drop)", "the clock is 3 s ahead"
    tried = "gpu001 -> gpu002 port 29500: no answer: 3.5 s"
    culprits = (
        Culprit(
            name="gpu003 -> gpu002",
            hosts=("gpu003", "gpu002"),
            reason="gpu003 -> gpu002 on port 29507: refused",
            facts=(
                "tried: gpu003 -> gpu002 port 29507: refused",
                f"gpu002: {closed}",
                f"gpu003: {odd}",
            ),
        ),
        Culprit(
            name="gpu002",
            hosts=("gpu002",),
            reason="gpu002: no answer from any of the other 7 hosts",
            facts=(f"tried: {tried}", closed),
        ),
        Culprit(
            name="gpu003 -> gpu004",
            hosts=("gpu003", "gpu004"),
            reason="gpu003 -> gpu004 on port 29511: no answer",
            facts=(f"gpu003: {odd}", f"gpu004: {closed}"),
        ),
    )
    verdict = Verdict(passed=False, reason=summary(culprits), culprits=culprits)
    assert [culprit.facts for culprit in once(culprits)] == [
        (culprits[0].facts[0], f"gpu003: {odd}"),
        culprits[1].facts,
        (f"gpu004: {closed}",),
    ]
    confirmation = Confirmation(
        label="firewall-ports",
        status=ConfirmationStatus.CONFIRMED,
        hosts=("gpu002",),
        evidence=(f"gpu002: {closed}",),
        curable=True,
    )
    diagnosis = Diagnosis(
        label="firewall-ports",
        confidence="certain",
        certainty=0.9,
        lead=Quote(file="remedy verify", line=3, text=tried),
    )
    explanation = Explanation(diagnosis=diagnosis, confirmations=(confirmation,))
    text = lines(render_verdict(verdict, explanation), 300)
    for evidence in (odd, tried, "tried: gpu003 -> gpu002"):
        assert sum(evidence in line for line in text) == 1, "\n".join(text)
    assert sum(closed in line for line in text) == 2, "one of each of the two hosts"
    assert "             firewall-ports: confirmed on gpu002" in text
    several = confirmation.model_copy(update={"hosts": ("gpu001", "gpu002")})
    folded = lines(
        render_explanation(Explanation(diagnosis=diagnosis, confirmations=(several,))), 300
    )
    assert any(f"confirmed on gpu[001-002], such as gpu002: {closed}" in line for line in folded)
    alone = lines(render_explanation(explanation), 300)
    assert any(closed in line for line in alone)
    assert any(tried in line for line in alone)


def test_a_rung_is_no_longer_than_a_line_of_people() -> None:
    given = shape(64, *FAULTS)
    for rung in _verdict(given).rungs:
        assert len(rung.message) < 700, "a page has it whole"
        (line,) = lines(render_rung(rung), 2000)
        assert len(line) < WIDTH


def test_dead_links_are_folded_on_both_sides() -> None:
    pairs = [(source, target) for source in EIGHT[:4] for target in EIGHT[4:]]
    links = [DeadLink(source=a, target=b, port=0, outcome="dropped") for a, b in pairs]
    verdict = Verdict(passed=False, reason="r", dead_links=tuple(links))
    (line,) = (text.plain for text in link_lines(verdict))
    assert line == "  gpu[001-004] -> gpu[005-008]: dropped"


def test_links_that_a_culprit_names_are_not_listed_again() -> None:
    assert [*link_lines(_verdict(shape(8, "drops", "has one old address", share=0.1)))] == []
    # Which of the others are meant, its sentence does not say.
    text = [line.plain for line in link_lines(_verdict(shape(8, "refuses most", share=0.1)))]
    assert text
    assert all(line.endswith(": refused") for line in text)


def test_a_link_both_ways_keeps_its_name() -> None:
    links = [
        Culprit(
            name=f"{a} <-> {b}", hosts=(a, b), reason=f"{a} <-> {b}: these two do not work together"
        )
        for a, b in (EIGHT[:2], EIGHT[4:6])
    ]
    assert names_of(links) == "gpu001 <-> gpu002, gpu005 <-> gpu006"
    (group,) = accusations(links)
    assert group.sentence == (
        "gpu001 <-> gpu002, gpu005 <-> gpu006: these two do not work together"
    )


def test_a_host_whose_name_begins_like_another_keeps_its_reason() -> None:
    culprit = Culprit(name="gpu1", hosts=("gpu1",), reason="gpu10 -> gpu1 port 1: no answer")
    assert culprit.why == culprit.reason


def test_outcomes_of_different_links_are_not_joined() -> None:
    """One host has an old address of a second, whose firewall drops what all send: two faults, two hosts."""
    links = [
        dead(host, EIGHT[4], port, "dropped")
        for host in EIGHT
        for port in (29500, 33000)
        if host != EIGHT[4]
    ]
    links.append(dead(EIGHT[3], EIGHT[4], 0, "no name", "gpu005 is 10.9.9.9"))
    first, second = Reach(hosts=EIGHT, dead=tuple(links), count=len(links)).culprits
    assert first.reason == (
        "gpu005: no answer on ports 29500, 33000 from any of the other 7 hosts (dropped on the way)"
    )
    assert second.reason == "gpu004 -> gpu005: resolves its name wrongly"
    assert [fact for fact in first.facts if "name" in fact] == []
    assert [fact for fact in second.facts if "no answer" in fact] == []


def test_a_host_whose_links_end_in_several_ways_is_said_how_many_end_in_which() -> None:
    culprits = _verdict(shape(8, "rejects or drops", share=0.1)).culprits
    assert culprits[1].reason == (
        "gpu001: connections from the other 7 hosts fail: from 4 on ports 29500, 32768, 33000 they are"
        " rejected (by a firewall, or no route), from 3 on ports 29500, 32768, 33000 they get no answer"
        " (dropped on the way)"
    )


def test_how_connections_of_many_hosts_end_is_said_with_the_hosts_of_each_end() -> None:
    every = ("drops", "rejects", "refuses most", "small packets", "rejects or drops")
    given = shape(64, *every, "one way is closed", "twins", share=0.05)
    text = [group.sentence for group in accused_of(_verdict(given))]
    (mixed,) = (sentence for sentence in text if "most other hosts fail: " in sentence)
    ends = re.findall(r"(?:: |, )(gpu\S+) (no answer|rejected|refused)", mixed)
    assert {end: hosts for hosts, end in ends} == {
        "no answer": "gpu[001-003,005-006]",
        "rejected": "gpu[002-006]",
        "refused": "gpu[003-005]",
    }


def test_names_and_connections_are_said_apart() -> None:
    (group,) = accused_of(_verdict(shape(8, "rejects", "is known to nobody", share=0.9)))
    assert group.sentence.endswith(
        "rejected (by a firewall, or no route); resolve the names of most other hosts wrongly"
    )


def test_hosts_that_end_alike_are_said_of_in_the_plural() -> None:
    text = [group.sentence for group in accused_of(_verdict(shape(8, "knows no names")))]
    assert text == ["gpu[001-002]: resolve the names of the other 7 hosts wrongly"]
    (group,) = accused_of(_verdict(shape(8, "rejects")))
    assert group.sentence == (
        "gpu[001-002]: connections from the other 7 hosts are rejected (by a firewall, or no route)"
    )


def test_one_command_changes_all_culprits_that_a_plan_would_change() -> None:
    outcome = outcome_of(shape(8, "has one old address", "drops", share=0.1))
    steps = [line for line in printed(outcome) if "remedy apply" in line]
    assert steps == ["run          remedy apply inventory.py --limit 'gpu[001-003]'"]


def _verdict(given: Shape) -> Verdict:
    verdict = outcome_of(given).verdict
    assert verdict is not None
    return verdict


def test_what_a_proof_in_parts_leaves_open_is_shown_whole() -> None:
    hosts = [f"gpu{n:03d}.rack.cluster.example" for n in range(64)]
    division = divide(VerifySpec(divide=8), hosts, {})
    assert division is not None
    reason = f"{'64 ranks on 64 hosts over gloo: the sum is exact ' * 6}; {division.unproved}"
    verdict = Verdict(passed=True, reason=reason)
    left_out = verdict.excusing({"gpu064": "no connection"})
    for shown in (verdict, left_out):
        text = lines(render_verdict(shown, None))
        assert f"             {division.unproved}" in text
        assert "characters)" in text[0], "the rest is cut"
    assert any("gpu064" in line for line in lines(render_verdict(left_out, None)))
