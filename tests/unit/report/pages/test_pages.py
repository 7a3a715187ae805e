"""The pages of a plan, a run and a fleet: what they show, and that nothing of others gets to be markup."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from remedy.audit.story import Story
from remedy.errors import UnreachableError
from remedy.plan import Change, CommandAction, Finding, FindingKind, Plan
from remedy.report.culprits import accused_of
from remedy.report.pages.bandwidth import APART, pace_of, plot_of
from remedy.report.pages.fleet import KINDS as KINDS_OF_RUNS
from remedy.report.pages.fleet import fleet_page, months, returning, row_of
from remedy.report.pages.map import KINDS, map_of
from remedy.report.pages.plan import plan_file_page, plan_page
from remedy.report.pages.proof import hosts_of
from remedy.report.pages.run import run_page
from remedy.report.pages.sheet import lines_of
from remedy.report.pages.story import story_page
from remedy.report.plan import render_plan
from remedy.runs.host import unread
from remedy.verify.verdict import Bandwidth, Verdict
from tests.unit.build import record
from tests.unit.report.pages.samples import (
    WHO,
    first_plan,
    good,
    many_faults,
    names_of,
    proof_page,
    red,
    run,
    year,
)


class Reader(HTMLParser):
    """The words of a page, and the tags that are open at its end."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.open: list[str] = []
        self.heading = ""
        self.feed(page)

    def handle_starttag(self, tag: str, _: object) -> None:
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self.words += " " * (tag in ("td", "th", "dt", "dd", "li"))

    def handle_startendtag(self, tag: str, _: object) -> None:
        pass

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)
        if "h1" in self.open:
            self.heading += data

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())


def pages() -> dict[str, str]:
    plan = first_plan(8)
    return {
        "plan": plan_page(plan),
        "run": run_page(run(good(8), plan, "apply"), WHO),
        "red": proof_page(red(64)),
        "fleet": fleet_page(year(), "/srv/inventory.py", {}),
        "file": plan_file_page(plan),
        "story": story_page(year()[-1], plan, "", {"gpu001": "noted"}),
    }


@pytest.mark.parametrize("kind", ["plan", "run", "red", "fleet", "file", "story"])
def test_a_page_is_one_whole_document_that_fetches_nothing(kind: str) -> None:
    page = pages()[kind]
    assert not Reader(page).open
    assert page.startswith("<!doctype html>")
    for outside in ("http://", "https://", "src=", "<script", "@import", "url("):
        assert outside not in page


def test_the_page_of_a_plan_has_who_and_when_the_remedies_and_every_command() -> None:
    plan = first_plan(8)
    text = Reader(plan_page(plan)).text
    for word in (plan.author, plan.created, plan.digest, plan.content_digest, plan.inventory):
        assert word in text
    assert {change.remedy for change in plan.changes} <= set(text.split())
    assert {change.title.split()[0] for change in plan.changes} <= set(text.split())
    shown, whole = text.split("Every command and file, whole")
    assert "127.0.1.1" in shown
    assert len(whole) > len(shown) / 2


def test_the_page_of_a_plan_file_has_all_of_it_in_the_open_and_believes_no_word_of_it() -> None:
    plan = first_plan(8)
    change = next(c for c in plan.changes if isinstance(c.action, CommandAction))
    script = change.action
    assert isinstance(script, CommandAction)
    wolf = change.model_copy(
        update={"does": "nothing at all", "action": script.model_copy(update={"do": "rm -rf /srv"})}
    )
    text = plan_file_page(plan.model_copy(update={"changes": (wolf,)}))
    assert "rm -rf /srv" in text
    assert "<details>" not in text
    # A narrow screen must not break its lines: a piece without a mark could pass for one of remedy's own.
    assert '<pre class="exact">' in text
    assert "white-space: pre;" in text


def test_the_page_of_a_run_with_somebody_elses_plan_shows_the_command_itself() -> None:
    plan = first_plan(8)
    change = next(c for c in plan.changes if isinstance(c.action, CommandAction))
    script = change.action
    assert isinstance(script, CommandAction)
    wolf = change.model_copy(update={"action": script.model_copy(update={"do": "rm -rf /srv"})})
    page = run_page(run(good(8), plan.model_copy(update={"changes": (wolf,)}), "apply"), WHO)
    assert "rm -rf /srv" in page


@pytest.mark.parametrize(
    ("values", "heading"),
    [
        ({"exit_code": 0, "proved": True}, "proved"),
        ({"exit_code": 5, "proved": True}, "proved in part, exit code 5"),
        ({"exit_code": 3, "proved": False}, "not proved"),
        ({"exit_code": None, "proved": True}, "not ended"),
        ({"exit_code": 1}, "ended with exit code 1, not verified"),
        ({"exit_code": None, "mode": "unlock", "hosts": {"gpu01": "removed"}}, "unlocked"),
        ({"exit_code": None, "mode": "unlock", "hosts": {"gpu01": "unknown"}}, "not unlocked"),
        ({"exit_code": None, "mode": "unlock"}, "not ended"),
    ],
)
def test_the_page_of_a_run_on_record_says_how_it_ended(
    values: dict[str, object], heading: str
) -> None:
    story = replace(Story("r1", "apply", "2026-01-31T12:00:00.000Z", by="ann@ops"), **values)  # type: ignore[arg-type]
    page = Reader(story_page(story, None, "", {"gpu01": "made 2 of 2"}))
    assert page.heading == f"run r1: {heading}"
    for words in ("ann@ops", "2026-01-31T12:00:00.000Z", "made 2 of 2"):
        assert words in page.text


def test_a_plan_without_changes_is_not_called_good_where_something_was_not_read() -> None:
    assert '"good">nothing to change<' in plan_page(record(Plan))
    assert '"part">nothing to change<' in plan_page(record(Plan), 1)
    finding = record(Finding, host="gpu01", kind=FindingKind.UNKNOWN, title="rules not read")
    page = plan_page(record(Plan, findings=(finding,)))
    assert '"part">nothing to change<' in page
    assert "rules not read" in page


def test_the_page_of_a_run_has_its_hosts_its_proof_and_who_ran_it() -> None:
    plan = first_plan(8)
    text = Reader(run_page(run(good(8), plan, "apply"), WHO)).text
    words = ("remedy apply", WHO.by, WHO.began, "20260131T120000Z-0a1b2c3d", "inventory.py")
    for word in (*words, "64 of 64 ranks", "changed", plan.digest, "What was planned"):
        assert word in text
    assert plan.changes[0].title in text


@pytest.mark.parametrize(
    ("verdict", "broken", "heading"),
    [
        (good(4), False, "proved"),
        (good(4).excusing({"x": "no connection"}), False, "proved, but 1 host not tested"),
        (red(4), False, "not proved"),
        (None, False, "done, not verified"),
        (None, True, "ended with exit code 5, not verified"),
    ],
)
def test_the_heading_says_no_more_than_was_seen(
    verdict: Verdict | None, broken: bool, heading: str
) -> None:
    outcome = run(verdict)
    if broken:
        error = UnreachableError("x: no connection")
        outcome = replace(outcome, hosts={"x": unread(error)})
    assert Reader(run_page(outcome, WHO)).heading == f"inventory.py: {heading}"


def test_the_map_has_a_square_for_each_link_and_none_that_nobody_tried_is_good() -> None:
    verdict = red(64)
    drawn = map_of(verdict)
    assert drawn is not None
    squares = {
        (source, target): square
        for source, row in drawn.rows
        for target, square in zip(drawn.hosts, row, strict=True)
    }
    assert len(squares) == 64 * 64
    dead = {(link.source, link.target) for link in verdict.dead_links}
    absent = set(verdict.absent)
    for link, square in squares.items():
        if link[0] == link[1]:
            assert square is None
            continue
        assert square is not None
        is_good = square.kind.outcome == "ok"
        assert is_good == (link not in dead and not absent & set(link)), link
        assert (square.tip != "") == (link in dead)
    # Nobody has to tell colours apart.
    assert len({letter for _, letter in KINDS.values()}) == len(KINDS)


def test_a_map_of_many_hosts_has_those_with_dead_links_and_says_so() -> None:
    verdict = red(512)
    few = verdict.model_copy(update={"dead_links": verdict.dead_links[-6:], "dead_count": 6})
    drawn = map_of(few)
    assert drawn is not None
    concerned = {host for link in few.dead_links for host in (link.source, link.target)}
    assert set(drawn.hosts) == concerned
    assert f"Shown are {len(concerned)} of 512 hosts" in drawn.words


def test_of_too_many_hosts_with_dead_links_those_with_the_most_are_drawn() -> None:
    verdict = red(512)
    drawn = map_of(verdict)
    assert drawn is not None
    assert len(drawn.hosts) == 160
    (wall,) = verdict.culprits[0].hosts
    assert drawn.hosts[0] == wall
    assert "Shown are 160 of 512 hosts: those with the most dead links" in drawn.words


def test_where_no_link_is_dead_a_map_shows_only_what_was_not_tested() -> None:
    whole = map_of(good(8))
    assert whole is not None
    assert (whole.rows, whole.words) == (
        (),
        "Every pair of hosts was tried both ways: all 56 links work.",
    )
    part = map_of(good(8).excusing({"gpu99": "gpu99: no connection"}))
    assert part is not None
    assert {kind.outcome for kind in part.kinds} == {"ok", "not tested"}
    assert part.hosts[-1] == "gpu99"
    assert {s.kind.outcome for s in part.rows[-1][1] if s is not None} == {"not tested"}
    many = map_of(good(200).excusing({"gpu99": "gpu99: no connection"}))
    assert many is not None
    assert (many.rows, many.words) == ((), "No link is dead; those of gpu99 were not tested.")
    some = map_of(good(8).model_copy(update={"links_sampled": True}))
    assert some is not None
    assert some.words.startswith("Not every link was tried")
    assert map_of(good(8).model_copy(update={"rungs": ()})) is None


def test_links_that_are_too_many_to_be_known_are_not_drawn() -> None:
    drawn = map_of(red(8).model_copy(update={"dead_count": 10_000}))
    assert drawn is not None
    assert drawn.rows == ()
    assert "10,000 links are dead" in drawn.words


def test_the_plot_has_each_size_below_the_limit_and_room_for_its_names() -> None:
    plot = plot_of(good(8))
    assert plot is not None
    assert len(plot.dots) == 7
    assert [dot.x for dot in plot.dots] == sorted(dot.x for dot in plot.dots)
    marks = {mark.look: mark.at for mark in plot.marks}
    assert marks["limit"] < min(dot.y for dot in plot.dots)  # above all of them
    assert marks["limit"] < marks["needs"]
    places = sorted(tick.at for tick in plot.columns)
    assert all(b - a >= APART for a, b in pairwise(places))
    assert plot.columns[0].name == "256M"
    assert all(plot.y_top <= dot.y <= plot.y_bottom for dot in plot.dots)


@pytest.mark.parametrize("gbps", [0.0, 1e-9, 0.013, 1.0, 99.9, 4321.0])
@pytest.mark.parametrize("sizes", [[0], [8], [8, 16], list(range(1, 60))])
def test_any_figures_can_be_drawn(gbps: float, sizes: list[int]) -> None:
    rows = tuple(Bandwidth(bytes=s, seconds=1.0, algbw=gbps, busbw=gbps) for s in sizes)
    plot = plot_of(good(2).model_copy(update={"bandwidth": rows, "limit_gbps": None}))
    assert plot is not None
    assert 2 <= len(plot.rows) <= 7
    assert all(plot.y_top <= dot.y <= plot.y_bottom for dot in plot.dots)
    assert all(plot.x_low <= dot.x <= plot.x_high for dot in plot.dots)


def test_the_pace_has_each_host_the_slowest_first() -> None:
    pace = pace_of(good(512))
    assert pace is not None
    assert pace.rows[0].host == names_of(512)[-1]
    assert [row.is_slow for row in pace.rows].count(True) == 1
    assert pace.more == "; 352 quicker hosts not listed"
    assert pace_of(red(4)) is None


def test_a_fleets_months_have_its_runs_and_who_came_back_how_often() -> None:
    stories = year()
    shown = months(map(row_of, stories))
    assert [month.name for month in shown] == [f"2025-{n:02}" for n in range(12, 0, -1)]
    assert sum(len(month.runs) for month in shown) == len(stories)
    assert [month.red for month in shown].count(1) == 1
    back = {row.hosts: row for row in returning(stories, {})}
    assert back["rack01-gpu[001-002]"].times == 8
    assert back["rack01-gpu003"].times == 4
    assert back["rack01-gpu003"].titles == ("01-hosts_file",)
    action = CommandAction(observe="o", before="b", after="a", do="d", undo="u")
    plans = {
        story.run: record(
            Plan,
            changes=tuple(
                record(
                    Change, host=host, title=f"name it {host}", id="01-hosts_file", action=action
                )
                for host in story.results
            ),
        )
        for story in stories
    }
    named = {row.hosts: row for row in returning(stories, plans)}
    assert named["rack01-gpu[001-002]"].titles == ("name it rack01-gpu[001-002]",)
    assert named["rack01-gpu003"].titles == ("name it rack01-gpu003",)
    text = Reader(fleet_page(stories, "/srv/inventory.py", {})).text
    assert "inventory.py: 132 runs, last proved" in text
    assert "not ended" in text


def test_one_repair_is_no_return_and_a_rollback_is_no_repair() -> None:
    stories = [story for story in year() if story.mode == "apply"][:1]
    back = replace(stories[0], mode="rollback", run="back")
    assert returning([stories[0], back], {}) == ()


def test_a_proof_without_some_hosts_is_not_that_of_all() -> None:
    story = next(story for story in year() if story.proved)
    part = replace(story, exit_code=5)
    assert (row_of(story).proof, row_of(story).kind_look) == ("proved", "good")
    assert (row_of(part).proof, row_of(part).kind_look) == ("proved in part", "part")
    (month,) = months([row_of(story), row_of(part)])
    assert (month.proved, month.red) == (1, 0)
    assert '"part">1 run, last proved in part<' in fleet_page([part], "/srv/inventory.py", {})
    assert len({(kind.look, kind.letter) for kind in KINDS_OF_RUNS}) == len(KINDS_OF_RUNS)


@pytest.mark.parametrize("count", [8, 64, 512])
def test_culprits_in_number_are_a_block_for_each_reason_and_none_is_lost(count: int) -> None:
    outcome = many_faults(count)
    verdict = outcome.verdict
    assert verdict is not None
    page = run_page(outcome, WHO)
    assert page.count('<div class="culprit">') == len(accused_of(verdict)) <= 7
    text = Reader(page).text
    assert "<h2>Culprits</h2>" in page
    alone = verdict.model_copy(update={"culprits": verdict.culprits[:1]})
    assert "<h2>Culprit</h2>" in run_page(replace(outcome, verdict=alone), WHO)
    for culprit in verdict.culprits:
        assert " ".join(culprit.reason.split()) in text, culprit.reason
    for rung in verdict.rungs:
        assert len(rung.message) < 600, "the cell of the ladder"
    assert page.count("<tr>") < 40 + 512, "and a row of the map a host"


def test_a_page_names_its_inventory() -> None:
    outcome = replace(run(good(8)), inventory="/srv/fleet/inventory.py")
    text = Reader(run_page(outcome, WHO)).text
    assert "inventory /srv/fleet/inventory.py" in text
    assert "inventory /srv/fleet.py" in Reader(fleet_page(year(), "/srv/fleet.py", {})).text
    story = story_page(year()[-1], None, "", {}, {}, "/srv/fleet.py", "/srv/.remedy/journal.jsonl")
    text = Reader(story).text
    assert "inventory /srv/fleet.py" in text
    assert "journal /srv/.remedy/journal.jsonl" in text


def test_hosts_that_ended_alike_but_for_their_names_are_one_row() -> None:
    rows = hosts_of(good(8).excusing({f"x{n}": f"x{n}: no answer within {n} s" for n in range(9)}))
    assert [(row.names, row.reason) for row in rows[1:]] == [("x[0-8]", "no answer within 0-8 s")]


def test_what_a_verification_would_have_changed_stands_below_its_proof() -> None:
    plan = first_plan(8)
    text = Reader(run_page(run(good(8), plan, "verify"), WHO)).text
    assert text.index("The ladder") < text.index("What an apply would change")
    assert "What was planned" not in text


def test_an_empty_journal_is_no_good_fleet() -> None:
    page = fleet_page([], "/srv/inventory.py", {})
    assert '"part">0 runs, never verified<' in page
    assert "None: no host was changed by more than one apply." in page


def test_lines_are_those_of_a_terminal_with_their_looks() -> None:
    lines = lines_of(render_plan(first_plan(2)))
    assert "".join(span.text for span in lines[0]).startswith("Plan: ")
    assert lines[0][0].look == "strong"
    looks = {look for line in lines for span in line for look in span.look.split()}
    assert {"good", "bad", "dim", "part"} <= looks
    assert not any("\x1b" in span.text for line in lines for span in line)
