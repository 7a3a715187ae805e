"""From a group that fails to a host or a pair: a test a round beside others, and all parts at once alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial
from itertools import combinations, permutations

import pytest

from benchmarks.simulated import fleet
from remedy.verify.isolate.hunt import WIDE, Question, Reply, Span
from remedy.verify.isolate.model import Fault, TestResult
from remedy.verify.isolate.narrow import LARGE, each, hunt
from tests.unit.verify.isolate.asked import LINE, Asked, pair

MANY = fleet(64, 0).hosts


def found(asked: Asked, line: Collection[str] = LINE, sound: int = 0) -> set[Fault]:
    return set(asked.ends(partial(hunt, tuple(line), sound)))


@pytest.mark.parametrize("width", [1, 2, 4, WIDE])
@pytest.mark.parametrize(
    ("known", "host"), [(known, host) for known in (0, 1, 2) for host in LINE[known:]]
)
def test_a_broken_host_is_found_wherever_it_stands(host: str, known: int, width: int) -> None:
    asked = Asked(Fault((host,)), width=width)
    assert found(asked, sound=known) == {Fault((host,))}
    assert set(asked.purposes) <= {"half", "confirm"}
    assert len(asked.rounds) <= 2 + (width < 4)
    assert max(map(len, asked.rounds)) <= max(2, width)


@pytest.mark.parametrize("width", [1, 2, 4, WIDE])
@pytest.mark.parametrize(("one", "other"), list(combinations(LINE, 2)))
def test_a_broken_pair_is_found_wherever_it_stands(one: str, other: str, width: int) -> None:
    asked = Asked(pair(one, other), width=width)
    assert found(asked) == {pair(one, other)}
    assert asked.purposes[-1] == "links"


@pytest.mark.parametrize("one", LINE[:4])
@pytest.mark.parametrize("other", LINE[4:])
def test_where_one_fault_shows_the_part_that_works_stays_in_every_group(
    one: str, other: str
) -> None:
    asked = Asked(pair(one, other), joined=True)
    assert found(asked, sound=4) == {pair(one, other)}
    halves = [question.hosts for question in asked.questions if question.purpose == "half"]
    assert halves
    assert all(hosts[:4] == LINE[:4] and len(hosts) > 4 for hosts in halves)


def test_where_several_show_a_part_that_works_is_let_go() -> None:
    span = Span(frozenset(MANY[:16]))
    asked = Asked(Fault((MANY[15],)))
    steps = hunt(MANY[:16], 0, span)
    (question,) = next(steps)
    free: set[str] = set()
    while question.purpose == "half":
        assert free.isdisjoint(question.hosts)
        reply = asked.reply(question)
        assert reply.passed
        free.update(question.hosts)
        question, *_ = steps.send([reply])
        assert span.hosts == set(MANY[:16]) - free
    assert span.hosts == set(MANY[14:16])


@pytest.mark.parametrize("width", [1, WIDE])
def test_a_host_alone_is_never_a_group(width: int) -> None:
    for size in range(2, len(LINE) + 1):
        for host in LINE[:size]:
            asked = Asked(Fault((host,)), width=width)
            assert found(asked, LINE[:size]) == {Fault((host,))}
            assert all(len(group) > 1 for group in asked.groups)


@pytest.mark.parametrize("width", [1, 2, WIDE])
def test_a_group_that_works_after_all_holds_no_fault(width: int) -> None:
    assert not found(Asked(width=width))
    assert not found(Asked(width=width), LINE[:2])
    assert not found(Asked(width=width), MANY)


def test_the_span_shrinks_to_what_the_hunt_is_still_after() -> None:
    span = Span(frozenset("z"))
    asked = Asked(Fault(("a",)))
    steps = hunt(LINE, 0, span)
    questions = next(steps)
    assert span.hosts == set(LINE)
    while questions[0].purpose == "half":
        group = questions[0].hosts
        questions = steps.send([asked.reply(questions[0])])
        assert span.hosts == set(group)
    assert span.hosts == {"a", "b"}


# --- a hunt that is alone -------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", [MANY[0], MANY[37], MANY[63]])
def test_a_hunt_that_is_alone_halves_and_then_tests_small_parts_and_all_suspects_at_once(
    host: str,
) -> None:
    asked = Asked(Fault((host,)), width=WIDE)
    assert found(asked, MANY) == {Fault((host,))}
    half, quarter, parts, suspects = asked.rounds
    assert half == [MANY[:32], MANY[32:]]
    assert sorted(map(len, quarter)) == [LARGE, LARGE]
    assert sorted(map(len, parts)) == [2] * (LARGE // 2)
    assert {group[0] for group in suspects} in [set(part) for part in parts]
    assert host in {group[0] for group in suspects}
    interest = [bool(question.interest) for question in asked.questions]
    assert interest == [True] * 4 + [False] * (len(parts) + len(suspects))


def test_parts_that_fail_together_are_hunted_in_each_by_itself() -> None:
    asked = Asked(Fault((MANY[3],)), Fault((MANY[60],)), width=WIDE)
    assert found(asked, MANY) == {Fault((MANY[3],)), Fault((MANY[60],))}


@pytest.mark.parametrize(("one", "other"), [(0, 63), (2, 3), (7, 8), (40, 60)])
def test_where_all_parts_work_a_pair_is_sought_across_them(one: int, other: int) -> None:
    broken = pair(MANY[one], MANY[other])
    asked = Asked(broken, width=WIDE)
    assert found(asked, MANY) == {broken}


# --- suspects, and hosts that were named ----------------------------------------------------------------------


@pytest.mark.parametrize(("width", "rounds"), [(1, 4), (3, 3), (WIDE, 1)])
def test_suspects_are_tested_as_many_in_a_round_as_the_hunt_may(width: int, rounds: int) -> None:
    asked = Asked(width=width)
    assert asked.ends(lambda span: each(LINE, LINE, span)) == []
    assert len(asked.rounds) == rounds
    assert [group[0] for group in asked.groups] == list(LINE)
    first = Asked(Fault(("a",)), Fault(("b",)), Fault(("h",)), width=2)
    assert first.ends(lambda span: each(LINE, LINE, span)) == [Fault(("a",)), Fault(("b",))]


@pytest.mark.parametrize("width", [1, 2])
def test_a_host_that_the_group_named_is_tried_at_once(width: int) -> None:
    silent, telling = (
        Asked(Fault(("b",)), width=width, telling=telling) for telling in (False, True)
    )
    for asked in (silent, telling):
        assert found(asked) == {Fault(("b",))}
    assert telling.purposes == ["half", "confirm"]
    assert len(silent.questions) > 2


def test_a_host_that_a_part_named_is_tried_before_the_part_is_divided_again() -> None:
    asked = Asked(Fault((MANY[37],)), width=WIDE, telling=True)
    assert found(asked, MANY) == {Fault((MANY[37],))}
    assert asked.purposes == ["half", "half", "confirm"]


def test_a_sound_host_that_the_group_named_does_not_end_the_hunt() -> None:
    class NamingSoundHost(Asked):
        def reply(self, question: Question, taken: set[str] | None = None) -> Reply:
            reply = super().reply(question, taken)
            if reply.result is None or reply.passed or question.purpose != "half":
                return reply
            test = reply.result.test
            return Reply(False, TestResult(test, False, frozenset("ax")), reply.partner)

    asked = NamingSoundHost(Fault(("c",)))
    assert found(asked) == {Fault(("c",))}
    assert ("a", "x") in asked.groups


@pytest.mark.parametrize("width", [1, WIDE])
@pytest.mark.parametrize(("one", "other"), list(permutations("abc", 2)))
def test_any_two_faults_lead_to_one_of_them(one: str, other: str, width: int) -> None:
    faults: Iterable[Fault] = (Fault((one,)), pair(other, "h"))
    named = found(Asked(*faults, width=width))
    assert named
    assert all(any(set(f.hosts) <= set(fault.hosts) for fault in faults) for f in named)
