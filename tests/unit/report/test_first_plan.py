"""The first plan of many hosts is read in a minute, and shows all that somebody who agrees has to know."""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

import pytest

from remedy.plan import (
    UNKNOWN_PROGRAM,
    Change,
    CommandAction,
    FileAction,
    Finding,
    FindingKind,
    Plan,
    Remedy,
    Risk,
    guarded,
    remedies,
)
from remedy.plan.change import sha256
from remedy.report.document import run_document
from remedy.report.plan import DIFF_LINES, EVIDENCE_LINES, HIDDEN, _unified, render_plan
from remedy.report.whole import render_commands, render_whole
from remedy.runs.outcome import RunOutcome
from tests.unit.build import record
from tests.unit.deploys import broken  # noqa: F401 - hosts that the program's own remedies change
from tests.unit.deploys.fleets import single_cases
from tests.unit.plans import plan_of
from tests.unit.report.first import first_look, lines, names_of

MOST = 60
SHORT = 400
"""Characters of a command that is shown as it is."""
SEVERAL = re.compile(r"[;|&\n]|\bif\b")
"""What parts of a script are joined by: a sentence stands in its place."""
CASES = 20
SCRIPT = "".join(f"step {n}\n" for n in range(50))


def shown(plan: Plan) -> str:
    return "\n".join(lines(render_plan(plan)))


@pytest.mark.parametrize("recording", ["lab-idle", "lab-firewalld"])
def test_the_first_plan_of_64_debian_hosts_has_60_lines_at_most(recording: str) -> None:
    plan = plan_of(first_look(64, recording))
    text = lines(render_plan(plan))
    assert len(text) <= MOST, "\n".join(text)
    for words in ("gpu[001-064]: write the cluster's 64 hosts", "-127.0.1.1", "as on gpu001"):
        assert any(words in line for line in text), words
    assert max(map(len, text)) < 300


def test_a_host_that_differs_is_not_folded() -> None:
    fleet = first_look(8)
    files = dict(fleet.states["gpu003"].files)
    hosts = files["/etc/hosts"]
    odd = hosts.model_copy(update={"content": b"127.0.1.1\tgpu003\n127.0.1.1\tgpu007\n"})
    states = {
        **fleet.states,
        "gpu003": fleet.states["gpu003"].model_copy(update={"files": {**files, "/etc/hosts": odd}}),
    }
    text = shown(plan_of(type(fleet)(fleet.inventory, states, fleet.spec)))
    assert "~ gpu[001-002,004-008]: write" in text
    assert "~ gpu003: write" in text
    assert re.search(r"127\.0\.1\.1\s+gpu007", text)


def test_every_byte_is_shown_where_it_is_asked_for() -> None:
    plan = plan_of(first_look(8))
    text = "\n".join(lines(render_commands(plan)))
    assert "as on gpu001; on the others with their own names and addresses" in text
    for name in names_of(8):
        assert f"\\t{name}" in text


def test_a_plan_file_is_folded_too_and_says_what_it_is_of_all_hosts() -> None:
    plan = plan_of(first_look(8))
    read = plan.model_copy(update={"contents": {}, "addresses": {}})
    text = "\n".join(lines(render_whole(read)))
    assert text.count("  ~ gpu[001-008]: write the cluster's 8 hosts") == 1
    assert "as on gpu001; on 7 other hosts with their own" in text
    other = plan.changes[4].model_copy(update={"reason": plan.changes[4].reason + " "})
    changes = (*plan.changes[:4], other, *plan.changes[5:])
    changed = "\n".join(lines(render_whole(read.model_copy(update={"changes": changes}))))
    assert "  ~ gpu[001-004,006-008]: write" in changed


def change(host: str, number: int = 1, **fields: object) -> Change:
    action = CommandAction(observe="o", before="b", after="c", do=SCRIPT, undo="u")
    values = {"title": "t", "reason": "r", "remedy": "firewall", "action": action, **fields}
    made: Change = record(Change, id=f"{number:02d}-firewall", host=host, **values)
    return made


def test_a_script_is_the_sentence_of_its_remedy_and_whole_without_one() -> None:
    said = shown(record(Plan, changes=(change("gpu1", does="opens the ports"),)))
    assert "does     opens the ports" in said
    assert "step 7" not in said
    bare = shown(record(Plan, changes=(change("gpu1"),)))
    assert all(f"$ step {n}\n" in bare for n in range(50))


def test_what_is_known_before_agreeing_is_folded_too() -> None:
    changes = [
        change(host, reversible=False, title=f"end the job of {host}", restarts=f"{host}.service")
        for host in ("gpu7", "gpu8")
    ]
    text = shown(record(Plan, changes=tuple(changes)))
    assert "cannot be undone end the job of gpu[7-8] (gpu[7-8])" in text
    assert "restarts         gpu[7-8].service (gpu[7-8])" in text


def test_what_matters_stands_above_and_below_a_long_plan() -> None:
    last = {"reversible": False, "title": "end 2 processes", "risk": Risk.HIGH}
    changes = [change(f"gpu{n}", title=f"do {n}") for n in range(20)]
    changes += [change("gpu7", 2, **last), change("gpu8", 2, restarts="dockerd", guarded=True)]
    text = lines(render_plan(record(Plan, changes=tuple(changes))))
    for words in (
        "risk             1 high, 21 low",
        "cannot be undone end 2 processes (gpu7)",
        "restarts         dockerd (gpu8)",
        "guarded          1 change on 1 host",
    ):
        assert sum(words in line for line in text) == 2, words
    assert text[0] == "Plan: 22 changes on 20 hosts"
    assert "22 changes on 20 hosts" in text[-6]


def test_a_plan_says_for_what_its_changes_are_guarded() -> None:
    commands = {
        "gpu1": ("hostname gpu1", "hostname gpu2", "ip link set eth0 mtu 9000", "/opt/site/tune"),
        "gpu2": ("hostname gpu2", "echo 1 >/srv/one"),
        "gpu3": ("echo 1 >/srv/one",),
    }
    changes = [
        change(
            host, number, action=CommandAction(observe="o", before="b", after="c", do=do, undo=do)
        )
        for host, every in commands.items()
        for number, do in enumerate(every, 1)
    ]
    spoken = changes[-1].model_copy(update={"guarded": True})
    plan = record(Plan, changes=(*guarded(changes[:-1]), spoken))
    (line,) = (line for line in lines(render_plan(plan), 300) if line.startswith("  guarded"))
    assert line == (
        "  guarded          6 changes on 3 hosts, for what they touch: names 3, network 1; 1 only because of a "
        "program whose effects are not known; 1 because the remedy says so; the host takes them back unless a "
        "new connection confirms them"
    )
    whole = "\n".join(lines(render_whole(plan), 300))
    for words, number in (("[guarded: names]", 2), ("[guarded: network]", 1), ("[guarded]", 1)):
        assert whole.count(words) == number, whole
    document = run_document(RunOutcome("plan", "", "/srv/inventory.py", {}, plan))
    assert [c["guarded_for"] for c in document["plan"]["changes"]] == [
        *("names", "names", "network", UNKNOWN_PROGRAM, "names", "", "")
    ]


def test_findings_stand_under_the_change_that_cures_them() -> None:
    finding = record(
        Finding, host="gpu1", remedy="firewall", kind=FindingKind.DRIFT, title="r", label="l-x"
    )
    other = finding.model_copy(update={"title": "also wrong"})
    blocked = finding.model_copy(update={"kind": FindingKind.BLOCKED, "title": "not mine"})
    elsewhere = finding.model_copy(update={"remedy": "hosts_file", "title": "goes too"})
    findings = (finding, other, blocked, elsewhere)
    text = shown(record(Plan, changes=(change("gpu1"),), findings=findings))
    head, _, tail = text.partition("Not changed by this plan")
    assert head.index("~ gpu1: t") < head.index("because  r  (l-x)") < head.index("also wrong")
    assert "blocked  wrong, and remedy cannot" in tail.replace("blocked wrong", "blocked  wrong")
    assert "gpu1: not mine" in tail
    assert "gpu1: goes too" in tail
    assert "also wrong" not in tail


@pytest.mark.parametrize(("hidden", "counted"), [(0, False), (2, False), (3, True)])
def test_a_line_that_counts_others_stands_for_three_or_more(hidden: int, counted: bool) -> None:
    # The lines of a difference: its place, one that stays, and each that comes.
    before, number = b"stays\n", DIFF_LINES - 2 + hidden
    after = before + b"".join(b"line %d\n" % n for n in range(number))
    action = FileAction(
        path="/etc/x", real_path="/etc/x", before=sha256(before), after=sha256(after)
    )
    evidence = tuple(
        f"what was seen, at length, number {n}" for n in range(EVIDENCE_LINES + hidden)
    )
    finding = record(
        Finding,
        host="gpu1",
        remedy="firewall",
        kind=FindingKind.DRIFT,
        title="r",
        evidence=evidence,
    )
    blobs = {sha256(before): before, sha256(after): after}
    changes = (change("gpu1", action=action),)
    text = shown(record(Plan, changes=changes, findings=(finding,), blobs=blobs))
    assert (f"and {hidden} more lines" in text) is counted
    assert (f"+line {number - 1}\n" in text) is not counted
    assert (f"               and {hidden} more\n" in text) is counted
    assert (evidence[-1] in text) is not counted


def test_the_same_state_gives_the_same_content_digest() -> None:
    first, second = plan_of(first_look(4)), plan_of(first_look(4))
    later = second.model_copy(update={"created": "2027-01-01", "author": "eve@there"})
    assert first.content_digest == later.content_digest
    assert first.digest != later.digest
    assert plan_of(first_look(5)).content_digest != first.content_digest
    assert f"content {first.content_digest[:12]}" in shown(first)


CHANGING = [remedy for remedy in remedies() if remedy.cures]


@pytest.mark.parametrize("remedy", CHANGING, ids=lambda remedy: remedy.name)
def test_no_remedy_plans_a_script_without_a_sentence(remedy: Remedy[Any]) -> None:
    plans = [plan_of(case.fleet(), remedy.name) for case in islice(single_cases(remedy), CASES)]
    changes = [change for plan in plans for change in plan.changes]
    assert changes
    for change in changes:
        if isinstance(change.action, CommandAction):
            is_plain = len(change.action.do) < SHORT and not SEVERAL.search(change.action.do)
            assert is_plain or change.does, f"{change.title}: {change.action.do}"


def test_what_is_around_a_change_shows_no_secret() -> None:
    before = b"PATH=/bin\n# SITE_TOKEN=tiger\nPROXY=http://me:word@proxy\nA=1\nB=2\n"
    text = "\n".join(_unified(before, before.replace(b"A=1", b"A=2"), 2))
    assert "-A=1\n+A=2\n B=2" in text
    assert text.count(HIDDEN) == 2
    assert "tiger" not in text
    assert "word" not in text
