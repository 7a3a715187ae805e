"""Clocks that differ: what is certain in spite of slow answers, and what keeps them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.deploys.clock import ClockSpec, Offset, common, offset
from remedy.plan import FindingKind
from remedy.probe import Clock, Unit
from tests.unit.deploys.report_bench import LATE, finding_of, findings_of, hosts, says
from tests.unit.probe_data import REQUEST, parse, recorded

SECOND = 10**9
START = 1_800_000_000 * SECOND


def clock(ahead: float, *, took: float = 1.0, asked: float = 0.0) -> dict[str, Clock]:
    """Return a clock that is so many seconds ahead, read somewhere in the time that the answer took."""
    begin = START + int(asked * SECOND)
    read = begin + int(took / 2 * SECOND)
    return {
        "clock": Clock(
            epoch_ns=read + int(ahead * SECOND),
            uptime=1.0,
            asked_at=begin,
            heard_at=begin + int(took * SECOND),
        )
    }


def test_a_clock_that_is_behind_is_told_with_what_is_certain() -> None:
    finding = finding_of("clock", hosts(clock(0), clock(-60), clock(0.2)))
    assert (finding.host, finding.label, finding.kind) == (
        "gpu02",
        "clock-skew",
        FindingKind.REPORT,
    )
    assert finding.title == "the clock is at least 59 s behind that of most hosts"
    assert "-60.5 to -59.5 s" in finding.evidence[0]


def test_a_slow_answer_is_no_wrong_clock() -> None:
    assert findings_of("clock", hosts(clock(0), clock(0, took=40), clock(3))) == []


def test_hosts_asked_at_other_times_are_compared_by_the_controllers_clock() -> None:
    assert findings_of("clock", hosts(clock(0), clock(0, asked=300))) == []
    assert len(findings_of("clock", hosts(clock(0), clock(8, asked=300), clock(0)))) == 1


def test_without_the_controllers_time_nothing_is_said_of_clocks() -> None:
    lone = {"clock": Clock(epoch_ns=START, uptime=1.0)}
    assert findings_of("clock", hosts(lone, {"clock": Clock(epoch_ns=0, uptime=1.0)}, {})) == []


def test_of_two_clocks_the_one_like_the_controllers_is_right() -> None:
    assert finding_of("clock", hosts(clock(-90), clock(0))).host == "gpu01"
    assert finding_of("clock", hosts(clock(0), clock(90))).host == "gpu02"


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=9), st.floats(0, 3))
def test_clocks_within_the_tolerance_are_never_named(aheads: list[float], took: float) -> None:
    near = [ahead / 100 for ahead in aheads]
    assert findings_of("clock", hosts(*(clock(a, took=took) for a in near)), ClockSpec()) == []
    middle = common([Offset(a - took, a + took) for a in near])
    assert min(near) - took <= middle.low <= middle.high <= max(near) + took


@pytest.mark.parametrize(("ahead", "words"), [(60.0, "ahead of"), (-60.0, "behind")])
def test_a_clock_is_said_to_be_ahead_or_behind(ahead: float, words: str) -> None:
    finding = finding_of("clock", hosts(clock(0), clock(0), clock(ahead)))
    says(finding, title=(words, "59 s"), fix=("chrony", "hwclock --systohc"))
    assert ("ahead of" in finding.title) is (words == "ahead of")


@pytest.mark.parametrize(
    ("units", "words"),
    [
        ({"chrony.service": "active"}, "chrony"),
        ({"chronyd.service": "inactive", "ntp.service": "active"}, "ntp"),
        (
            {"systemd-timesyncd.service": "active", "chronyd.service": "active"},
            "chronyd, systemd-timesyncd",
        ),
        ({"chrony.service": "inactive", "sshd.service": "active"}, "none runs"),
    ],
)
def test_the_service_that_keeps_the_clock_is_named(units: dict[str, str], words: str) -> None:
    known = {
        name: Unit(name=name, load="loaded", active=active, enabled="")
        for name, active in units.items()
    }
    finding = finding_of("clock", hosts(clock(0), clock(0), {**clock(60), "units": known}))
    assert finding.evidence[1] == f"time service: {words}"


def test_a_service_that_is_not_known_is_said_with_the_reason() -> None:
    finding = finding_of("clock", hosts(clock(0), clock(0), {**clock(60), "units": LATE}))
    says(finding, evidence=(LATE.reason,))


def test_the_offset_of_a_clock_lies_between_question_and_answer() -> None:
    second = 10**9
    asked = Clock(epoch_ns=100 * second, uptime=1.0, asked_at=90 * second, heard_at=97 * second)
    assert offset(asked) == Offset(3.0, 10.0)
    assert offset(Clock(epoch_ns=1, uptime=1.0)) is None
    assert common([Offset(-90, -89), Offset(0, 1)]) == Offset(0, 1)
    assert common([Offset(0, 1), Offset(89, 90)]) == Offset(0, 1)
    assert common([Offset(5, 9), Offset(1, 2), Offset(3, 4)]) == Offset(3, 4)


@pytest.mark.parametrize(("tolerance", "named"), [(9.0, True), (9.6, False)])
def test_only_more_than_the_tolerance_counts(tolerance: float, named: bool) -> None:
    found = findings_of(
        "clock", hosts(clock(0), clock(0), clock(10.5)), ClockSpec(tolerance_seconds=tolerance)
    )
    assert bool(found) is named


def test_a_lone_clock_has_nothing_to_differ_from() -> None:
    assert findings_of("clock", hosts(clock(100), {"clock": LATE})) == []


def test_the_probe_notes_when_it_was_asked_by_the_controllers_clock() -> None:
    asked = 1_700_000_000 * SECOND
    request = REQUEST.model_copy(update={"asked_at": asked})
    found = parse(recorded("lab-idle"), request, heard_at=asked + 2 * SECOND).clock
    assert isinstance(found, Clock)
    assert found.asked_at == asked
    assert asked - 10 * SECOND < found.heard_at <= asked + 2 * SECOND
    unasked = parse(recorded("lab-idle")).clock
    assert isinstance(unasked, Clock)
    assert (unasked.asked_at, unasked.heard_at) == (0, 0)
