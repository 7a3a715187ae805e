"""What was not seen to be good is not shown as good: on the page, in last lines, of a run that was cut off."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console, RenderableType

from remedy.audit.story import Story
from remedy.errors import LockedError
from remedy.plan import Change, CommandAction, Finding, FindingKind, Plan
from remedy.report.audit import render_run, run_line
from remedy.report.ladder import render_verdict
from remedy.report.outcome import render_outcome
from remedy.report.pages.map import KINDS
from remedy.report.plan import render_plan
from remedy.report.records import story_body
from remedy.runs.host import probed, unread
from remedy.runs.outcome import HostOutcome, RunOutcome
from remedy.verify.verdict import DeadLink, HostVerdict, Rung, Verdict
from tests.unit.build import record
from tests.unit.report.pages.samples import proof_page

ACTION = CommandAction(observe="a", before="b", after="c", do="d", undo="e")
HOSTS = ("gpu01", "gpu02", "gpu03")
DEAD = DeadLink(source="gpu01", target="gpu02", port=29500, outcome="refused")
TRIED = Rung(name="reachability", passed=False)


def text_of(renderable: RenderableType) -> str:
    text = io.StringIO()
    Console(file=text, width=200).print(renderable)
    return text.getvalue()


def verdict(*, passed: bool, rungs: tuple[Rung, ...] = (TRIED,)) -> Verdict:
    return Verdict(
        passed=passed,
        reason="r",
        outcomes=tuple(HostVerdict(host=name, outcome="pass") for name in HOSTS[:2]),
        rungs=rungs,
        dead_links=(DEAD,),
    )


def squares(text: str, outcome: str) -> int:
    look, letter = KINDS[outcome]
    return len(re.findall(rf'<td class="{look}"[^>]*>{re.escape(letter)}</td>', text))


def test_a_host_that_took_no_part_is_not_painted_green() -> None:
    text = proof_page(verdict(passed=False).excusing({"gpu03": "gpu03: no connection"}))
    assert (squares(text, "ok"), squares(text, "refused"), squares(text, "not tested")) == (1, 1, 4)
    assert '<td class="names">gpu03</td><td class="word dim">not-tested</td>' in text


def test_links_that_nobody_tried_are_not_painted_green() -> None:
    text = proof_page(verdict(passed=False, rungs=()))
    assert (squares(text, "ok"), squares(text, "not tested")) == (0, 1)


def test_a_proof_without_some_hosts_says_so_in_its_title() -> None:
    whole, part = verdict(passed=True), verdict(passed=True).excusing({"gpu03": "no connection"})
    assert '<span class="good">proved</span>' in proof_page(whole)
    assert '<span class="part">proved, but 1 host not tested</span>' in proof_page(part)
    assert "not tested: gpu03 (no connection)" in text_of(render_verdict(part, None))


def unknown(host: str) -> Finding:
    made: Finding = record(Finding, host=host, kind=FindingKind.UNKNOWN, title="rules not read")
    return made


def blocked(host: str) -> Finding:
    made: Finding = record(Finding, host=host, kind=FindingKind.BLOCKED, title="read-only")
    return made


def change(host: str) -> Change:
    made: Change = record(Change, id="01-x", host=host, action=ACTION)
    return made


@pytest.mark.parametrize(
    ("plan", "unread_hosts", "words"),
    [
        (record(Plan), 0, "Nothing to change."),
        (record(Plan), 1, "1 host could not be read; no changes are planned"),
        (
            record(Plan, findings=(unknown("gpu01"), unknown("gpu02"))),
            0,
            "2 hosts have facts that could not be read; no changes are planned",
        ),
        (
            record(Plan, findings=(blocked("gpu01"), unknown("gpu02"))),
            0,
            "1 host has facts that could not be read; 1 host has what remedy cannot or may not change; no",
        ),
        (
            record(Plan, findings=(unknown("gpu01"),), changes=(change("gpu02"),)),
            1,
            "1 change on 1 host",
        ),
    ],
)
def test_the_last_line_of_a_plan_counts_what_was_not_read(
    plan: Plan, unread_hosts: int, words: str
) -> None:
    text = text_of(render_plan(plan, unread_hosts))
    assert words in text
    if plan.changes:
        assert "; 1 host could not be read; 1 host has facts that could not be read" in text


def test_an_unknown_fact_counts_also_where_changes_are_pending() -> None:
    plan = record(Plan, findings=(unknown("gpu01"),), changes=(change("gpu01"),))
    outcome = probed("gpu01", plan)
    run = RunOutcome("check", "", "inventory.py", {"gpu01": outcome}, plan)
    assert (outcome.status.value, run.exit_code) == ("pending", 1)
    assert (
        text_of(render_outcome(run)).splitlines()[-1]
        == "unknown      gpu01: 1 fact could not be read or judged"
    )


def test_no_line_over_a_host_that_is_about_to_change_says_that_all_is_well() -> None:
    hosts = {
        "gpu01": probed("gpu01", record(Plan)),
        "gpu02": unread(LockedError("gpu02: about to change: run r1 waits")),
    }
    run = RunOutcome("apply", "r", "inventory.py", hosts, record(Plan), converged=False)
    text = text_of(render_outcome(run))
    assert "unsettled   gpu02" in text
    assert "not all      gpu02: about to change by itself" in text
    assert "no change" not in text
    assert "zero drift" not in text
    assert run.exit_code == 4


def cut_off() -> Story:
    story = Story("r1", "apply", "2026-01-01", by="ann@ops", began={"gpu01", "gpu02"})
    story.planned = dict.fromkeys(HOSTS, ("t",))
    story.results = {"gpu02": {"01-x": "done"}}
    return story


def test_of_a_run_that_was_cut_off_not_known_is_not_not_made() -> None:
    text = text_of(render_run(cut_off(), None, ""))
    assert (
        "not known   gpu01: begun, and the journal has no answer; the hosts have receipts: --inv"
        in text
    )
    assert "not made    gpu03: the run did not come to it" in text
    assert "not ended" in text


def test_the_document_of_a_run_says_what_is_not_known_of_it() -> None:
    story = cut_off()
    story.settled = {"gpu01": "confirmed"}
    body = story_body(story, {})
    assert (body["not_known"], body["not_begun"]) == (("gpu01",), ("gpu03",))
    assert body["settled"] == {"gpu01": "confirmed"}
    story.mode = "check"
    assert story_body(story, {})["not_begun"] == (), "a command that changes no host misses none"


def test_receipts_and_what_was_settled_later_are_shown() -> None:
    story = cut_off()
    story.settled = {"gpu01": "confirmed"}
    text = text_of(render_run(story, None, "", {"gpu01": "began then; made 01-x"}))
    assert "confirmed   gpu01: what waited for a confirmation" in text
    assert "receipts    gpu01: began then; made 01-x" in text
    assert "not known   gpu01: begun, and the journal has no answer\n" in text
    assert "--inventory" not in text, "it was given"


def test_a_host_without_findings_is_ok() -> None:
    run = RunOutcome("check", "", "i", {"gpu01": HostOutcome(probed("gpu01", record(Plan)).status)})
    assert "unknown" not in text_of(render_outcome(run))
    assert run.exit_code == 0


@pytest.mark.parametrize(
    ("hosts", "end", "words"),
    [
        (
            {"gpu01": "free", "gpu02": "removed"},
            "unlocked",
            ("not locked  gpu01", "released    gpu02"),
        ),
        (
            {"gpu01": "fenced", "gpu02": "unknown"},
            "not unlocked",
            ("taken away", "not known   gpu02"),
        ),
        ({"gpu01": "free"}, "not locked", ("not locked  gpu01",)),
        ({"gpu01": "alive"}, "not unlocked", ("at work     gpu01",)),
        ({}, "not ended", ()),
    ],
)
def test_what_was_not_unlocked_is_not_shown_as_unlocked(
    hosts: dict[str, str], end: str, words: tuple[str, ...]
) -> None:
    story = Story("r1", "unlock", "2026-01-31T12:00:00Z", by="ann@ops", hosts=hosts)
    shown = text_of(render_run(story, None, ""))
    assert shown.splitlines()[-1].strip().startswith(end)
    assert all(word in shown for word in words)
    assert f" {end} " in run_line(story)
