"""One hunt: the questions it asks, and what it makes of the replies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations, permutations
from math import ceil, log2

import pytest

from benchmarks.simulated import SimulatedFleet
from remedy.verify.isolate.hunt import (
    Question,
    Reply,
    Span,
    Steps,
    accuse,
    confirm,
    hunt,
    links_between,
    partner_of,
    recheck,
)
from remedy.verify.isolate.model import Fault, Test, TestResult

LINE = tuple("abcdefgh")
GOOD = ("x", "y")
"""Hosts outside the line that work with everybody who is sound."""


class Asked:
    """Replies to the questions of a hunt as a fleet with these faults would.

    Args:
        faults: what is broken.
        partners: good hosts, in the order in which they are given to a suspect.
        telling: whether failed groups name the fault.
    """

    def __init__(
        self, *faults: Fault, partners: Sequence[str] = GOOD, telling: bool = False
    ) -> None:
        hosts = tuple(dict.fromkeys((*LINE, *GOOD, *partners)))
        self.fleet = SimulatedFleet(hosts, faults, telling=float(telling))
        self.partners = partners
        self.questions: list[Question] = []
        self.groups: list[tuple[str, ...]] = []

    def reply(self, question: Question) -> Reply:
        self.questions.append(question)
        hosts, partner = question.hosts, None
        if question.partner:
            able = [host for host in self.partners if host not in question.never]
            if not able:
                return Reply(passed=False)
            partner = next((host for host in able if host not in question.avoid), able[0])
            hosts = (*hosts, partner)
        self.groups.append(hosts)
        result = self.fleet.run(Test(hosts, question.purpose))
        return Reply(result.passed, result, partner)

    def end(self, steps: Steps) -> Fault | None:
        """Carry a hunt to its end; return what it found."""
        try:
            question = next(steps)
            while True:
                question = steps.send(self.reply(question))
        except StopIteration as end:
            fault: Fault | None = end.value
            return fault

    @property
    def purposes(self) -> list[str]:
        return [question.purpose for question in self.questions]


def pair(one: str, other: str) -> Fault:
    return Fault((one, other), "one-way")


# --- the whole hunt ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("known", "host"), [(known, host) for known in (0, 1, 2) for host in LINE[known:]]
)
def test_a_broken_host_is_found_wherever_it_stands(host: str, known: int) -> None:
    asked = Asked(Fault((host,)))
    assert asked.end(hunt(LINE, known, Span())) == Fault((host,))
    assert len(asked.questions) <= ceil(log2(len(LINE))) + 2
    assert set(asked.purposes) <= {"half", "confirm"}


@pytest.mark.parametrize(("one", "other"), list(combinations(LINE, 2)))
def test_a_broken_pair_is_found_wherever_it_stands(one: str, other: str) -> None:
    asked = Asked(pair(one, other))
    assert asked.end(hunt(LINE, 0, Span())) == pair(one, other)
    assert len(asked.questions) <= 2 * ceil(log2(len(LINE))) + 4
    assert asked.purposes[-1] == "links"


@pytest.mark.parametrize("one", LINE[:4])
@pytest.mark.parametrize("other", LINE[4:])
def test_the_part_that_is_known_to_work_stays_in_every_group(one: str, other: str) -> None:
    asked = Asked(pair(one, other))
    assert asked.end(hunt(LINE, 4, Span())) == pair(one, other)
    halves = [question.hosts for question in asked.questions if question.purpose == "half"]
    assert halves
    assert all(hosts[:4] == LINE[:4] and len(hosts) > 4 for hosts in halves)


def test_a_host_alone_is_never_a_group() -> None:
    for size in range(2, len(LINE) + 1):
        for host in LINE[:size]:
            asked = Asked(Fault((host,)))
            assert asked.end(hunt(LINE[:size], 0, Span())) == Fault((host,))
            assert all(len(group) > 1 for group in asked.groups)


def test_a_group_that_works_after_all_holds_no_fault() -> None:
    assert Asked().end(hunt(LINE, 0, Span())) is None
    assert Asked().end(hunt(LINE[:2], 0, Span())) is None


def test_the_span_shrinks_to_what_the_hunt_is_still_after() -> None:
    span = Span(frozenset("z"))
    asked = Asked(Fault(("a",)))
    steps = hunt(LINE, 0, span)
    question = next(steps)
    assert span.hosts == set(LINE)
    while question.purpose == "half":
        group = question.hosts
        question = steps.send(asked.reply(question))
        assert span.hosts == set(group)
    assert span.hosts == {"a", "b"}


def test_a_host_that_the_group_named_is_tried_at_once() -> None:
    silent, telling = Asked(Fault(("b",))), Asked(Fault(("b",)), telling=True)
    for asked in (silent, telling):
        assert asked.end(hunt(LINE, 0, Span())) == Fault(("b",))
    assert telling.purposes == ["half", "confirm"]
    assert len(silent.questions) > 2


def test_a_sound_host_that_the_group_named_does_not_end_the_hunt() -> None:
    class NamingSoundHost(Asked):
        def reply(self, question: Question) -> Reply:
            reply = super().reply(question)
            if reply.result is None or reply.passed or question.purpose != "half":
                return reply
            return Reply(
                False, TestResult(reply.result.test, False, frozenset("ax")), reply.partner
            )

    asked = NamingSoundHost(Fault(("c",)))
    assert asked.end(hunt(LINE, 0, Span())) == Fault(("c",))
    assert ("a", "x") in asked.groups


# --- a suspect with a good partner --------------------------------------------------------------------------


def test_a_suspect_that_fails_with_a_good_partner_is_broken() -> None:
    asked = Asked(Fault(("b",)))
    assert asked.end(confirm("b", LINE)) == Fault(("b",))
    (question,) = asked.questions
    assert (question.hosts, question.purpose, question.partner) == (("b",), "confirm", True)
    assert (question.avoid, question.never) == (frozenset(LINE), frozenset("b"))


def test_a_suspect_that_works_with_one_or_has_none_is_not_accused() -> None:
    assert Asked().end(confirm("b", LINE)) is None
    assert Asked(Fault(("b",)), partners=()).end(confirm("b", LINE)) is None


def test_of_a_partner_from_the_line_a_second_one_shows_what_is_broken() -> None:
    host = Asked(Fault(("b",)), partners=("c", "x"))
    line = (*LINE, "x")
    assert host.end(confirm("b", line)) == Fault(("b",))
    assert host.groups == [("b", "c"), ("b", "x")]
    assert host.questions[1].never == {"b", "c"}
    assert (host.questions[1].purpose, host.questions[1].partner) == ("confirm", True)
    link = Asked(pair("b", "c"), partners=("c", "x"))
    assert link.end(confirm("b", line)) == pair("b", "c")
    assert link.purposes == ["confirm", "confirm", "links"]


def test_without_a_second_partner_the_link_to_the_first_is_looked_at() -> None:
    asked = Asked(Fault(("b",)), partners=("c",))
    assert asked.end(confirm("b", LINE)) == Fault(("b", "c"), "both")
    assert asked.purposes == ["confirm", "confirm", "links"]


def test_a_named_host_is_tried_and_then_its_links_in_turn() -> None:
    whole = Asked(Fault(("b",)))
    assert whole.end(accuse("b", ["c", "d"], LINE)) == Fault(("b",))
    assert whole.purposes == ["confirm"]
    link = Asked(pair("d", "b"))
    assert link.end(accuse("b", ["c", "d", "e"], LINE)) == pair("d", "b")
    assert link.groups[1:] == [("b", "c"), ("b", "d")]
    assert Asked().end(accuse("b", ["c"], LINE)) is None


def test_an_accused_host_is_tried_with_one_that_it_was_not_seen_to_fail_with() -> None:
    accused = Fault(("b",))
    host = Asked(accused, partners=("c", "d", "x"))
    assert host.end(recheck(accused, ["c"])) == accused
    assert host.groups == [("b", "d")]
    assert host.questions[0].never == {"b", "c"}
    many = Asked(accused, partners=("c", "d", "x"))
    assert many.end(recheck(accused, ["c", "d"])) == accused
    assert many.groups == [("b", "x")]
    assert many.questions[0].never == {"b"}
    assert many.questions[0].avoid == {"c", "d"}


def test_a_host_that_works_after_all_leaves_the_link_to_its_only_doubt() -> None:
    accused = Fault(("b",))
    link = Asked(pair("b", "c"))
    assert link.end(recheck(accused, ["c"])) == pair("b", "c")
    assert link.purposes == ["confirm", "links"]
    many = Asked(pair("b", "c"))
    assert many.end(recheck(accused, ["c", "d"])) is None
    assert many.purposes == ["confirm"]


# --- pairs and their directions -----------------------------------------------------------------------------


@pytest.mark.parametrize("other", LINE)
def test_the_partner_of_a_broken_pair_is_found_by_halving(other: str) -> None:
    asked = Asked(pair("x", other))
    assert asked.end(partner_of("x", LINE)) == pair("x", other)
    assert asked.purposes == ["cross"] * 3 + ["links"]
    assert all(question.hosts[0] == "x" for question in asked.questions)


def test_a_partner_that_the_group_named_is_tried_at_once() -> None:
    asked = Asked(pair("x", "b"), telling=True)
    assert asked.end(partner_of("x", LINE)) == pair("x", "b")
    assert asked.purposes == ["cross", "links"]


def test_a_partner_that_is_named_in_vain_does_not_end_the_search() -> None:
    class NamingInVain(Asked):
        def reply(self, question: Question) -> Reply:
            reply = super().reply(question)
            if question.purpose == "cross" and reply.result is not None and not reply.passed:
                named = frozenset({("x", "b"), ("h", "x"), ("c", "d")})
                return Reply(False, TestResult(reply.result.test, False, frozenset(), named))
            return reply

    asked = NamingInVain(pair("x", "c"))
    assert asked.end(partner_of("x", LINE)) == pair("x", "c")
    links = [group for group in asked.groups if len(group) == 2]
    # A named host of the other half, and a named link of two others, are not looked at.
    assert ("x", "h") not in links
    assert ("x", "b") in links


def test_without_anybody_there_is_no_partner() -> None:
    asked = Asked()
    assert asked.end(partner_of("x", ())) is None
    assert asked.questions == []


def dead(*links: tuple[str, str], passed: bool = False) -> Fault | None:
    steps = links_between("a", "b")
    question = next(steps)
    assert (question.hosts, question.purpose, question.partner) == (("a", "b"), "links", False)
    result = TestResult(Test(("a", "b"), "links"), passed, unanswered=frozenset(links))
    return end_of(steps, Reply(passed, result))


def end_of(steps: Steps, reply: Reply) -> Fault | None:
    with pytest.raises(StopIteration) as end:
        steps.send(reply)
    fault: Fault | None = end.value.value
    return fault


def test_the_directions_of_a_link_are_told_apart() -> None:
    assert dead(("a", "b")) == Fault(("a", "b"), "one-way")
    assert dead(("b", "a")) == Fault(("b", "a"), "one-way")
    assert dead(("a", "b"), ("b", "a")) == Fault(("a", "b"), "both")
    # The group of two failed, and every connection was answered.
    assert dead() == Fault(("a", "b"), "unknown")
    assert dead(("a", "c"), ("c", "b")) == Fault(("a", "b"), "unknown")
    assert dead(passed=True) is None


def test_a_link_that_nobody_could_look_at_is_no_fault() -> None:
    steps = links_between("a", "b")
    next(steps)
    assert end_of(steps, Reply(passed=False)) is None


@pytest.mark.parametrize(("one", "other"), list(permutations("abc", 2)))
def test_any_two_faults_lead_to_one_of_them(one: str, other: str) -> None:
    faults: Iterable[Fault] = (Fault((one,)), pair(other, "h"))
    found = Asked(*faults).end(hunt(LINE, 0, Span()))
    assert found is not None
    assert any(fault == found or set(found.hosts) <= set(fault.hosts) for fault in faults)
