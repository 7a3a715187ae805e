"""What an interrupted run says of each host, and the command that goes on with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from remedy.apply.report import ChangeResult, ChangeStatus, HostReport
from remedy.audit import Journal
from remedy.audit.journal import FILE_NAME, read_records
from remedy.audit.story import read_stories
from remedy.runs.activity import Activity, interrupted
from remedy.transport import HostEvent

DONE = HostReport("", {"01-x": ChangeResult(id="01-x", status=ChangeStatus.DONE)}, finished=True)


@pytest.mark.parametrize(
    ("stages", "words"),
    [
        (["connecting"], "nothing is known to have begun there"),
        (["connecting", "changing"], "a script may be at work there"),
        (["connecting", "changing", "connecting"], "a script may be at work there"),
        # Guarded changes are confirmed over a new connection.
        (["changing", "answered", "confirming", "connecting"], "not known to be confirmed"),
        (["confirming", "reverting", "connecting"], "takes its guarded changes back"),
    ],
)
def test_a_new_connection_takes_back_nothing_that_is_known(stages: list[str], words: str) -> None:
    activity = Activity(run="r", planned=("a", "b"), at_work=("a",))
    for stage in stages:
        activity.hear(HostEvent("a", stage))
    (known,) = (text for text, hosts in activity.known().items() if hosts == ["a"])
    assert words in known
    end = interrupted(activity, signal="SIGINT", code=130, inventory="i.py", guard_seconds=60)
    guarded = any("is taken back in 60 s" in line for line in end.lines)
    assert guarded == ("confirming" in stages and "reverting" not in stages)


def activity(home: Path, *, mode: str = "apply", of: str = "") -> Activity:
    journal = Journal(home, run="r1", mode=mode)
    journal.write("planned", by="ann@ops", changes={"gpu01": ["t"], "gpu02": ["t"], "gpu03": ["t"]})
    planned = ("gpu01", "gpu02", "gpu03")
    return Activity(mode, "r1", of, planned=planned, journal=journal)


def words_of(state: Activity) -> str:
    report = interrupted(
        state, signal="SIGTERM", code=143, inventory="inventory.py", guard_seconds=60
    )
    lines = [*report.lines, *(f"{purpose}: {command}" for purpose, command in report.commands)]
    return "\n".join(lines)


def test_a_run_that_had_begun_says_what_is_known_of_each_host(tmp_path: Path) -> None:
    state = activity(tmp_path)
    state.at_work = ("gpu02", "gpu03")
    state.reports = {"gpu01": DONE}
    state.steps = {"gpu02": "changing", "gpu03": "confirming"}
    text = words_of(state)
    for words in (
        "gpu01: changed",
        "gpu02: a script may be at work there",
        "gpu03: changed, and not known to be confirmed",
        "gpu03: what is guarded there is taken back in 60 s",
        "what the hosts noted: remedy show r1 --inventory inventory.py",
        "go on: remedy apply inventory.py --resume r1",
        "take it back: remedy rollback r1 inventory.py",
    ):
        assert words in text
    story = read_stories(tmp_path / FILE_NAME)["r1"]
    assert story.exit_code == 143
    assert story.hosts == {"gpu01": "changed", "gpu02": "not known", "gpu03": "not known"}


def test_a_rollback_of_some_remedies_goes_on_with_these(tmp_path: Path) -> None:
    state = activity(tmp_path, mode="rollback", of="r0")
    state.at_work, state.choice = ("gpu02",), "--only hosts_file"
    assert "go on: remedy rollback r0 inventory.py --only hosts_file" in words_of(state).split("\n")


def test_a_wave_whose_proof_did_not_end_is_proved_before_the_run_goes_on(tmp_path: Path) -> None:
    state = activity(tmp_path)
    state.reports, state.unproved = {"gpu01": DONE}, ("gpu01",)
    lines = words_of(state).splitlines()
    assert "gpu01: changed; the proof of its wave did not end" in lines
    prove, go_on = (
        "prove it: remedy verify inventory.py",
        "go on: remedy apply inventory.py --resume r1",
    )
    assert lines.index(prove) < lines.index(go_on)
    assert read_stories(tmp_path / FILE_NAME)["r1"].hosts["gpu01"] == "changed"


def test_a_resumed_run_that_has_changed_nothing_goes_on_as_the_one_before(tmp_path: Path) -> None:
    state = activity(tmp_path)
    state.resumes, state.resumed = "r0", ("gpu04", "gpu05")
    assert words_of(state).splitlines() == [
        "run r1: recorded as interrupted",
        "nothing was changed on any host",
        "gpu[04-05]: changed before; the proof of its wave did not end",
        "what the hosts noted: remedy show r0 --inventory inventory.py",
        "go on: remedy apply inventory.py --resume r0",
        "take it back: remedy rollback r0 inventory.py",
    ]


def test_a_red_wave_that_is_taken_back_is_a_part_of_its_run(tmp_path: Path) -> None:
    outer = activity(tmp_path)
    outer.reports, outer.unproved = {"gpu01": DONE}, ("gpu01",)
    outer.at_work = ("gpu01",)
    journal = Journal(tmp_path, run="r2", mode="rollback")
    journal.write("planned", by="ann@ops", of="r1", changes={"gpu01": ["t"]})
    state = Activity(
        "rollback", "r2", "r1", planned=("gpu01",), at_work=("gpu01",), journal=journal
    )
    state.outer = outer
    lines = words_of(state).splitlines()
    assert lines[:3] == [
        "run r1: recorded as interrupted",
        "run r2: recorded as interrupted",
        "run r2 takes a wave of run r1 back, whose proof failed",
    ]
    for words in (
        "gpu01: a script may be at work there, and then ends its changes within two minutes",
        "gpu[02-03]: not begun",
        "what the hosts noted: remedy show r1 --inventory inventory.py",
        "go on: remedy rollback r1 inventory.py",
    ):
        assert words in lines
    ends = {run: story.hosts for run, story in read_stories(tmp_path / FILE_NAME).items()}
    assert ends == {
        "r1": {"gpu01": "not known", "gpu02": "not reached", "gpu03": "not reached"},
        "r2": {"gpu01": "not known"},
    }


def test_a_red_wave_that_was_taken_back_is_not_called_changed(tmp_path: Path) -> None:
    state = activity(tmp_path)
    state.reports, state.unproved = {"gpu01": DONE}, ("gpu01",)
    state.taken_back, state.tested = {"gpu01": "r2"}, ("gpu01", "gpu02")
    text = words_of(state)
    assert "gpu01: taken back by run r2, because the proof of its wave failed" in text
    assert "gpu[01-02]: what the verification has at work there ends by itself" in text
    assert "--resume" not in text  # it would be refused
    assert read_stories(tmp_path / FILE_NAME)["r1"].hosts["gpu01"] == "failed"


@pytest.mark.parametrize(
    ("mode", "of", "command"),
    [
        ("apply", "", "prove it: remedy verify inventory.py"),
        ("rollback", "r0", "go on: remedy rollback r0 inventory.py"),
    ],
)
def test_the_command_that_goes_on(tmp_path: Path, mode: str, of: str, command: str) -> None:
    state = activity(tmp_path, mode=mode, of=of)
    state.reports = dict.fromkeys(state.planned, DONE)
    assert command in words_of(state)


def test_before_the_first_host_there_is_nothing_to_take_back(tmp_path: Path) -> None:
    text = words_of(activity(tmp_path))
    assert "nothing was changed on any host" in text
    assert "rollback" not in text


def test_what_was_settled_before_the_run_is_not_called_nothing() -> None:
    waited = "changes of run r0 waited: taken back before anything else"
    state = Activity(settled={"gpu01": (waited, "r0")})
    answer = "was asked to take them back; its answer is not known"
    state.requests = dict.fromkeys(("gpu02", "gpu03"), (answer, "r0"))
    text = words_of(state).splitlines()
    assert text == [
        "gpu01: changes of run r0 waited: taken back before anything else",
        "gpu[02-03]: was asked to take them back; its answer is not known",
        "nothing else was changed on any host",
        "what the hosts noted: remedy show r0 --inventory inventory.py",
        "take it back: remedy rollback r0 inventory.py",
    ]


def test_an_unlock_that_was_cut_off_goes_on_with_itself() -> None:
    state = Activity("unlock", "r0", requests={"gpu01": ("was asked to release it", "r0")})
    assert "go on: remedy unlock r0 inventory.py" in words_of(state)


def test_a_run_that_had_ended_is_not_ended_twice(tmp_path: Path) -> None:
    state = activity(tmp_path)
    state.ended = True
    assert "had ended" in words_of(state)
    assert [entry.body["event"] for entry in read_records(tmp_path / FILE_NAME)] == ["planned"]


def test_an_end_that_cannot_be_recorded_is_no_reason_to_say_less(tmp_path: Path) -> None:
    state = activity(tmp_path)
    state.at_work = ("gpu01",)
    (tmp_path / "head").write_text(json.dumps({"journal": "x", "seq": 99, "hash": "y"}))
    text = words_of(state)
    assert "its end is not recorded" in text
    assert "go on: remedy apply" in text
