"""The shortest hunts: the questions they ask, and what they make of the replies."""

from __future__ import annotations

import pytest

from remedy.verify.isolate.hunt import (
    Reply,
    Steps,
    accuse,
    confirm,
    links_between,
    recheck,
)
from remedy.verify.isolate.model import Fault, Test, TestResult
from tests.unit.verify.isolate.asked import LINE, Asked, pair

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
