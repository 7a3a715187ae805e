"""A resumed run: which waves of before it proves first, what it says and records where that fails."""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from remedy.audit import Journal
from remedy.audit.agreement import Agreement
from remedy.audit.journal import JournalRecord
from remedy.audit.story import Story, stories
from remedy.audit.unproved import (
    RecordedProof,
    UnprovedWave,
    in_proved_waves,
    mtus_before,
    recorded_proofs,
    unproved_by,
    unproved_waves,
)
from remedy.errors import RefusedError
from remedy.plan import Change, CommandAction, Plan
from remedy.report.audit import render_run
from remedy.runs import apply, prove_earlier, saved
from remedy.runs.activity import Activity
from remedy.runs.earlier import Earlier, decide, still_unproved
from remedy.runs.outcome import HostOutcome, HostStatus, RunOutcome
from remedy.runs.partners import Ground
from remedy.runs.probe import ProbeResult
from remedy.runs.proof import Proof
from remedy.runs.session import Session
from remedy.runs.wave import WaveProof, Waves
from remedy.verify.verdict import Culprit, Verdict
from tests.unit.build import fleet, host_state, record

DIGEST = "d"
ACTION = CommandAction(observe="a", before="b", after="c", do="d", undo="e")
Event = tuple[str, str, dict[str, Any]]


def planned(run: str, *, proving: bool = True, resumes: str = "", digest: str = DIGEST) -> Event:
    data = {"waves": 3, "prove_waves": proving, "resumes": resumes, "digest": digest}
    return run, "planned", data


def changed(run: str, *hosts: str, status: str = "done") -> Event:
    report = {"results": [{"id": "01-x", "status": status}]}
    return run, "changed", {"hosts": dict.fromkeys(hosts, report)}


def green(run: str, number: int, *hosts: str, of: str = "") -> Event:
    data = {"wave": number, "hosts": list(hosts), "passed": True}
    return run, "wave", {**data, **({"of": of} if of else {})}


def runs_of(*events: Event, mode: str = "apply") -> dict[str, Story]:
    body = {"mode": mode, "time": "2026-01-01"}
    return stories(
        JournalRecord(number, {**body, "run": run, "event": event, "data": data})
        for number, (run, event, data) in enumerate(events)
    )


# Wave 1 (a) is proved; the controller dies amid the proof of wave 2 (b, c).
CUT_OFF = (planned("r1"), changed("r1", "a"), green("r1", 1, "a"), changed("r1", "b", "c"))


@pytest.mark.parametrize(
    ("events", "waves"),
    [
        (CUT_OFF, [("r1", 2, "bc")]),
        (CUT_OFF[:3], []),
        # The resumed run proved it, or a part of it, and was cut off amid a wave of its own.
        (
            (*CUT_OFF, planned("r2", resumes="r1"), green("r2", 2, "b", "c", of="r1")),
            [],
        ),
        (
            (
                *CUT_OFF,
                planned("r2", resumes="r1"),
                green("r2", 2, "b", of="r1"),
                changed("r2", "e"),
            ),
            [("r1", 2, "c"), ("r2", 1, "e")],
        ),
        # A host whose answer was lost is changed again by the run that resumes, and is then of its wave.
        (
            (
                planned("r1"),
                changed("r1", "b", status="lost"),
                planned("r2", resumes="r1"),
                changed("r2", "b"),
            ),
            [("r2", 1, "b")],
        ),
        # A failed host is left out of the proof that its wave had: the run went on without it as well.
        (
            (planned("r1"), changed("r1", "a"), changed("r1", "b", status="failed"), green("r1", 1, "a")),
            [],
        ),
        # Of a run that proved no wave all hosts are without a proof; its waves have no numbers.
        ((planned("r1", proving=False), changed("r1", "a"), changed("r1", "b")), [("r1", 0, "ab")]),
        ((planned("r1", proving=False), changed("r1", "a"), ("r1", "verified", {"passed": True})), []),
        # What was not changed needs no proof, and other plans are no affair of this one.
        ((planned("r1"), changed("r1", "a", status="already")), []),
        ((planned("r1", digest="other"), changed("r1", "a")), []),
    ],
)  # fmt: skip
def test_waves_without_a_proof(
    events: Sequence[Event], waves: Sequence[tuple[str, int, str]]
) -> None:
    expected = tuple(UnprovedWave(run, number, tuple(hosts)) for run, number, hosts in waves)
    assert unproved_waves(runs_of(*events).values(), DIGEST) == expected


def test_what_was_taken_back_needs_no_proof() -> None:
    known = runs_of(*CUT_OFF)
    (back,) = runs_of(
        ("r2", "planned", {"of": "r1"}), ("r2", "began", {"hosts": ["b"]}), mode="rollback"
    ).values()
    assert unproved_waves([*known.values(), back], DIGEST) == (UnprovedWave("r1", 2, ("c",)),)


def test_a_run_in_proved_waves_is_resumed_as_one() -> None:
    assert in_proved_waves(runs_of(*CUT_OFF).values(), DIGEST)
    assert not in_proved_waves(runs_of(*CUT_OFF).values(), "other")
    assert not in_proved_waves(runs_of(planned("r1", proving=False)).values(), DIGEST)


def records(*events: Event) -> list[JournalRecord]:
    return [JournalRecord(0, {"run": r, "event": e, "data": data}) for r, e, data in events]


def test_a_proof_on_record_is_the_last_one_with_no_change_after_it() -> None:
    def verified(run: str, marks: Mapping[str, str], *, passed: bool = True) -> Event:
        return run, "verified", {"passed": passed, "fingerprints": marks}

    events = (
        verified("v0", {"a": "0", "b": "0"}),
        ("r1", "began", {"hosts": ["a"]}),
        verified("v1", {"b": "1", "z": "1"}),
        verified("v2", {"b": "2"}, passed=False),
        verified("v3", {"c": "3"}),
        ("s", "settled", {"hosts": {"c": "reverted"}}),
    )
    assert recorded_proofs(records(*events), "abc") == {"b": RecordedProof("v1", "1")}


@pytest.mark.parametrize(
    ("changing", "selected", "proofs", "expected"),
    [
        ("", "abc", {}, Earlier((UnprovedWave("r1", 2, ("b", "c")),))),
        ("c", "abc", {}, Earlier((UnprovedWave("r1", 2, ("b",)),))),
        ("bc", "abc", {}, Earlier()),
        ("", "ab", {}, Earlier((UnprovedWave("r1", 2, ("b",)),), left_out=("c",))),
        # A proof holds as long as the host is as it was then.
        ("", "abc", {"b": "now-b"}, Earlier((UnprovedWave("r1", 2, ("c",)),), {"v": ("b",)})),
        ("", "abc", {"b": "now-b", "c": "now-c"}, Earlier(held={"v": ("b", "c")})),
        ("", "abc", {"b": "before"}, Earlier((UnprovedWave("r1", 2, ("b", "c")),))),
    ],
)
def test_what_is_proved_first(
    changing: str, selected: str, proofs: Mapping[str, str], expected: Earlier
) -> None:
    marks = {name: f"now-{name}" for name in "abc"}
    known = {name: RecordedProof("v", mark) for name, mark in proofs.items()}
    decided = decide(
        [UnprovedWave("r1", 2, ("b", "c"))], changing, selected, marks, known, in_waves=False
    )
    assert decided == expected


def test_a_host_that_could_not_be_read_has_no_proof_that_holds() -> None:
    wave = UnprovedWave("r1", 1, ("a",))
    assert decide([wave], "", "a", {}, {"a": RecordedProof("v", "x")}).waves == (wave,)


def test_whoever_agrees_knows_what_is_proved_first() -> None:
    known = Earlier((UnprovedWave("r1", 2, ("b", "c")),), {"v": ("a",)}, ("d",))
    assert list(known.notes()) == [
        "b,c: changed by wave 2 of run r1 without a proof; proved before a further host is changed",
        "a: changed before by this plan; proved by run v since, and as it was then",
        "d: changed before by this plan without a proof, and NOT proved first: not selected by --limit",
    ]


@pytest.mark.parametrize(
    ("count", "in_waves", "proving"), [(2, False, True), (1, False, False), (1, True, True)]
)
def test_the_last_wave_of_a_run_that_was_cut_off_is_proved_as_the_others_were(
    count: int, in_waves: bool, proving: bool
) -> None:
    assert apply._in_waves(count, Earlier(in_waves=in_waves)) is proving


class Recorder:
    """Takes the place of the journal: keeps what is written."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []

    def write(self, event: str, **data: Any) -> None:
        self.events.append((event, data))


MADE = tuple(
    record(
        Change, id=f"0{number}-x", host=host, title="t", label="ports-blocked", action=ACTION
    )
    for number, host in enumerate("bcd", 1)
)  # fmt: skip


MTUS = {"b": {"eth1": 1500}}


def proofs_of(held: Collection[str] = ()) -> Waves:
    story = runs_of(*CUT_OFF)["r1"]
    session = SimpleNamespace(
        typed="inventory.py",
        activity=Activity(),
        story={"r1": story}.__getitem__,
        show_command=lambda run: f"remedy show {run}",
    )
    plan = record(Plan, changes=MADE)
    read = ProbeResult(fleet(host_state("a", "10.0.0.1")), {})
    ground = Ground(tuple(held), frozenset("abcd"), frozenset("d"))
    return Waves(cast(Session, session), Agreement(plan, resumes="r1"), "r2", read, MTUS, ground)


TWO = Earlier(
    (UnprovedWave("r1", 2, ("b", "c")), UnprovedWave("r0", 0, ("e",))), {"v": ("a",)}, in_waves=True
)
OUTCOMES = {name: HostOutcome(HostStatus.OK) for name in "abcde"}


def shown(*, passed: bool, possible: bool = True) -> Verdict:
    named = () if passed else (Culprit(name="b", hosts=("b",), reason="silent"),)
    return Verdict(passed=passed, possible=possible, reason="the sum", culprits=named)


def prove_first(
    monkeypatch: pytest.MonkeyPatch, *verdicts: Verdict | None, first: Earlier = TWO
) -> tuple[Waves, Recorder]:
    """Prove earlier waves, where the proofs show these; None where a proof cannot be made."""
    left = list(verdicts)

    def prove_wave(*given: Any) -> WaveProof:
        _, mtus, *_, wave, partners = given
        assert mtus is MTUS, "what it was before the run that was cut off"
        assert proofs.session.activity.resumed == wave
        verdict = left.pop(0)
        if verdict is None:
            return WaveProof(wave, partners, None, "no host is there", passed=False)
        return WaveProof(wave, partners, Proof(verdict), verdict.reason, passed=verdict.passed)

    monkeypatch.setattr(prove_earlier, "prove_wave", prove_wave)
    proofs, journal = proofs_of(), Recorder()
    prove_earlier.prove_earlier(proofs, cast(Journal, journal), proofs.before, OUTCOMES, first)
    assert not left
    assert proofs.session.activity.resumed == ()
    return proofs, journal


def test_waves_of_before_are_proved_one_after_the_other_and_prove_those_after_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proofs, journal = prove_first(monkeypatch, shown(passed=True), shown(passed=True))
    assert proofs.red is None
    assert proofs.proved == ["a", "b", "c", "e"]
    assert proofs.begun == ["b", "c", "e"]
    assert [(event, data["wave"], data["of"]) for event, data in journal.events] == [
        ("wave", 2, "r1"),
        ("wave", 0, "r0"),
    ]
    assert journal.events[1][1]["partners"] == ["b"], "from the middle of those proved before"
    assert proofs.lines == [
        "a: changed before by this plan; proved by run v since, and as it was then",
        "wave 2 of run r1: b,c proved with a",
        "run r0: e proved with b",
    ]


def test_a_wave_of_before_whose_proof_fails_stops_the_run_and_says_how_it_is_taken_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proofs, journal = prove_first(monkeypatch, shown(passed=False))
    assert proofs.red is not None
    (_, wave), (event, red) = journal.events
    assert (wave["passed"], wave["of"]) == (False, "r1")
    assert (event, red["wave"], red["of"], red["hosts"]) == ("red", 2, "r1", ["b", "c"])
    assert [(s["host"], s["change"]) for s in red["suspects"]] == [("b", "01-x"), ("c", "02-x")]
    back = "remedy rollback r1 inventory.py --limit b,c"
    assert f"wave 2 of run r1: b,c: not taken back; to take it back: {back}" in proofs.lines
    assert sum(line.startswith("suspected: ") for line in proofs.lines) == 2
    assert set(proofs.errors) == {"b", "c"}
    assert proofs.errors["b"].next_step == f"Take it back: {back}"

    body = {"run": "r2", "mode": "apply", "time": "2026-01-01"}
    (story,) = stories(
        JournalRecord(0, {**body, "event": event, "data": data}) for event, data in journal.events
    ).values()
    text = io.StringIO()
    Console(file=text, width=200).print(render_run(story, None, "", inventory="inventory.py"))
    for words in (
        "wave 2      b,c of run r1 with a: NOT proved: the sum",
        f"not back    b,c; to take it back: {back}",
        "suspected   b: 01-x (t): the proof names its host",
    ):
        assert words in text.getvalue()
    assert "byte for byte" not in text.getvalue()


@pytest.mark.parametrize("verdict", [None, shown(passed=False, possible=False)])
def test_a_wave_of_before_that_cannot_be_proved_stops_the_run_and_suspects_nothing(
    monkeypatch: pytest.MonkeyPatch, verdict: Verdict | None
) -> None:
    proofs, journal = prove_first(monkeypatch, verdict)
    assert proofs.red is not None
    ((event, wave),) = journal.events
    assert (event, wave["passed"]) == ("wave", None)
    step = proofs.errors["c"].next_step
    assert step.startswith("Prove it, and resume again: remedy verify inventory.py.")
    assert "--no-prove-waves" in step
    assert not any("suspected" in line or "NOT PROVED" in line for line in proofs.lines)


def test_a_plan_whose_wave_of_before_failed_its_proof_is_not_resumed_again() -> None:
    record_ = {"wave": 2, "of": "r1", "passed": False, "hosts": ["b"]}
    known = runs_of(*CUT_OFF, planned("r2", resumes="r1"), ("r2", "wave", record_))
    session = cast(
        Session,
        SimpleNamespace(
            stories=lambda: known, show_command=lambda run: f"show {run}", typed="i.py"
        ),
    )
    with pytest.raises(RefusedError, match="run r2 stopped because the proof of wave 2 of run r1"):
        saved._refuse_red(session, cast(Plan, SimpleNamespace(digest=DIGEST)))
    known["r2"].waves[0] = {**record_, "passed": None}
    saved._refuse_red(session, cast(Plan, SimpleNamespace(digest=DIGEST)))


def test_what_a_resumed_run_left_without_a_proof_is_named() -> None:
    known = runs_of(*CUT_OFF, planned("r2", resumes="r1"), changed("r2", "d"))
    assert unproved_by(known.values(), DIGEST) == ("b", "c", "d")
    assert unproved_by(known.values(), DIGEST, without="r2") == ("b", "c")
    ended = {name: HostOutcome(HostStatus.OK) for name in "abcd"}
    ended["c"] = HostOutcome(HostStatus.FAILED)
    verdict = Verdict(passed=True, reason="")
    outcome = RunOutcome("apply", "r2", "i", ended, record(Plan), verdict=verdict)
    session = cast(Session, SimpleNamespace(stories=lambda: known))
    agreement = Agreement(cast(Plan, SimpleNamespace(digest=DIGEST)), resumes="r1")
    changes = "changed by run r1, or one that it resumed, without a proof"
    assert still_unproved(session, agreement, outcome, ()) == (
        f"b: {changes}; proved at the end of this run",
        f"c: {changes}; NOT proved by this run either",
    )
    assert still_unproved(session, agreement, outcome, ["b", "c"]) == ()
    assert still_unproved(session, Agreement(record(Plan)), outcome, ()) == ()


def test_nothing_of_this_is_on_the_way_of_a_plan_that_is_new(tmp_path: Path) -> None:
    session = cast(Session, SimpleNamespace(home=tmp_path))
    read = ProbeResult(fleet(host_state("a", "10.0.0.1")), {})
    from remedy.runs.earlier import earlier

    assert earlier(session, Agreement(record(Plan)), record(Plan), read) == Earlier()


def began(run: str, mtus: dict[str, int]) -> Event:
    by_host = {name: {"eth1": mtu} for name, mtu in mtus.items()}
    return run, "began", {"hosts": [*mtus], "mtus": by_host}


def test_the_mtu_of_before_is_that_before_the_first_run_of_the_plan() -> None:
    cut_off = (planned("r1"), began("r1", {"a": 1500, "b": 1500}), changed("r1", "a"))
    # The first run had changed b, too, though nobody heard of it; the second one finds it so.
    again = (*cut_off, planned("r2", resumes="r1"), began("r2", {"b": 9000, "c": 1500}))
    expected = {"a": {"eth1": 1500}, "b": {"eth1": 1500}, "c": {"eth1": 1500}}
    assert mtus_before(runs_of(*again).values(), DIGEST) == expected
    assert mtus_before(runs_of(*again).values(), "another plan") == {}
    proved = (*again, changed("r2", "b", "c"), green("r2", 2, "b", "c"))
    assert mtus_before(runs_of(*proved).values(), DIGEST) == {"a": {"eth1": 1500}}


def test_what_a_rollback_took_back_has_no_mtu_of_before() -> None:
    cut_off = runs_of(planned("r1"), began("r1", {"a": 1500, "b": 1500}), changed("r1", "a"))
    back = runs_of(
        ("r2", "planned", {"of": "r1"}), ("r2", "began", {"hosts": ["a"]}), mode="rollback"
    )
    assert mtus_before((*cut_off.values(), *back.values()), DIGEST) == {"b": {"eth1": 1500}}
