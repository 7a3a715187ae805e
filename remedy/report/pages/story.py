"""The page of a run as the journal has it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from remedy.audit.story import Story
from remedy.errors import RemedyError
from remedy.plan import Plan
from remedy.report.audit import PART, choice_of, own_end, render_run
from remedy.report.pages.sheet import Sheet, lines_of
from remedy.report.whole import render_body
from remedy.runs.outcome import OK, PENDING
from remedy.templating import render_page


def story_page(
    story: Story,
    plan: Plan | None,
    problem: str,
    receipts: Mapping[str, str],
    errors: Mapping[str, RemedyError] = MappingProxyType({}),
    inventory: str = "",
    journal: str = "",
) -> str:
    """Return the page; the arguments are those of ``render_run``.

    Args:
        inventory: its file; "" where it is not known.
        journal: the file that has the run.
    """
    state, look = _state(story)
    end = "" if story.exit_code is None else str(story.exit_code)
    rows = [
        ("command", f"remedy {story.mode}"),
        ("begun", f"{story.time} by {story.by or 'unknown'}"),
        ("inventory", inventory),
        ("journal", journal),
        ("approved by", ", ".join(story.approvals)),
        ("takes back", story.of),
        ("resumes", story.resumes),
        ("remedies", choice_of(story)),
        ("plan", story.digest),
        ("exit code", end),
    ]
    return render_page(
        "story.html",
        sheet=Sheet(
            f"run {story.run}",
            state,
            look,
            reason=story.reason,
            rows=tuple((key, value) for key, value in rows if value),
        ),
        story=lines_of(render_run(story, plan, problem, receipts, errors=errors)),
        whole=lines_of(render_body(plan)) if plan is not None else (),
    )


def _state(story: Story) -> tuple[str, str]:
    """Return the heading of a run, and how it looks."""
    if end := own_end(story):
        return end, "part"
    if story.exit_code is None:
        return "not ended", "bad"
    if story.proved is False:
        return "not proved", "bad"
    if story.proved:
        part = f"{PART}, exit code {story.exit_code}", "part"  # some hosts had no part in it
        return part if story.exit_code != OK else ("proved", "good")
    look = "part" if story.exit_code in (OK, PENDING) else "bad"
    return f"ended with exit code {story.exit_code}, not verified", look
