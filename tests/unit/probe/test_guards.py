"""What a probe reads of a host that is about to change by itself."""

from __future__ import annotations

import pytest

from remedy.probe import Guards, PendingGuard, RunAtWork
from remedy.values import Fact, Unknown
from tests.unit.probe_data import parse, recorded, replaced, section

BOOT = "11111111-2222-3333-4444-555555555555"
NOW = f"now 1000.25 {BOOT}\n"
RUN = "20260101T000000Z-00000000"
OWNER = f"owner n0nce-77 {RUN} {BOOT} 77 99025 2026-01-01T00:00:00Z ann@ops\nstarted 99025\n"


def guards(text: str) -> Fact[Guards]:
    return parse(replaced(recorded("lab-idle"), "guards", NOW + text)).guards


def known(text: str) -> Guards:
    fact = guards(text)
    assert isinstance(fact, Guards)
    return fact


def test_a_host_without_runs_is_settled() -> None:
    assert known("") == Guards()
    assert not known("").unsettled


def test_a_run_at_work_is_the_one_that_holds_the_lock() -> None:
    expected = RunAtWork(run=RUN, by="ann@ops", since="2026-01-01T00:00:00Z", seconds=10.0)
    assert known(OWNER) == Guards(at_work=expected)


@pytest.mark.parametrize(
    "text",
    [
        OWNER.replace("started 99025\n", ""),  # the process is gone
        OWNER.replace("started 99025", "started 99026"),  # its number is another's now
        OWNER.replace(BOOT, BOOT[::-1]),  # of an earlier boot
        "owner too few words\nstarted 1\n",
        "owner \n",
    ],
)
def test_a_dead_owner_of_the_lock_changes_nothing(text: str) -> None:
    assert not known(text).unsettled


def test_a_guard_that_waits_says_when_and_what() -> None:
    text = f"timer remedy-guard-{RUN}.timer\npending {RUN}\nfires 1043 {BOOT}\ntakes open ports\ntakes x\n"
    pending = PendingGuard(run=RUN, seconds=42.75, titles=("open ports", "x"), attended=True)
    assert known(text) == Guards(pending=pending)


@pytest.mark.parametrize(
    ("text", "seconds", "attended"),
    [
        (f"pending {RUN}\nfires 900 {BOOT}\nprocess\n", 0.0, True),  # its time has come
        (f"pending {RUN}\nfires 9000 other-boot\nprocess\n", 0.0, True),  # at once, after a boot
        (f"pending {RUN}\nfires \n", None, False),  # nothing is there to do it
        (f"timer remedy-guard-{RUN}.timer\n", None, True),  # cut off while it was armed
        (f"timer remedy-guard-{RUN}.timer\npending \n", None, True),  # the disk was full
    ],
)
def test_a_guard_in_every_state(text: str, seconds: float | None, attended: bool) -> None:
    pending = known(text).pending
    assert pending is not None
    assert (pending.run, pending.seconds, pending.attended) == (RUN, seconds, attended)


def test_an_empty_note_waits_for_nothing() -> None:
    assert not known("pending \nfires \n").unsettled


@pytest.mark.parametrize("text", ["closed\n", "pending ../../etc\n", "pending a;reboot\nprocess\n"])
def test_what_cannot_be_read_is_unknown(text: str) -> None:
    assert isinstance(guards(text), Unknown)


def test_a_timer_is_seen_without_root() -> None:
    assert known(f"timer remedy-guard-{RUN}.timer\nclosed\n").unsettled


def test_words_of_the_host_are_shown_and_not_obeyed() -> None:
    text = f"pending {RUN}\nprocess\ntakes \x1b[2Jgone{'x' * 500}\n" + OWNER.replace(
        "ann", "\x1b]0;a\x07"
    )
    read = known(text)
    assert read.pending is not None
    assert read.at_work is not None
    assert read.pending.titles[0].startswith("?[2Jgone")
    assert len(read.pending.titles[0]) == 200
    assert read.at_work.by == "?]0;a?@ops"


def test_an_answer_without_the_section_is_unknown() -> None:
    assert isinstance(parse(section("clock", "1.0")).guards, Unknown)
