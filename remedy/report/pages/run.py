"""The page of a run: how its hosts ended, and what was proved."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Group

from remedy.report.culprits import headline
from remedy.report.diagnosis import render_explanation
from remedy.report.look import render_views
from remedy.report.outcome import last_lines, render_hosts
from remedy.report.pages.proof import ground, proof_of
from remedy.report.pages.sheet import Sheet, lines_of
from remedy.report.plan import render_steps
from remedy.report.whole import render_body
from remedy.runs.outcome import OK, UNREACHABLE, RunOutcome
from remedy.templating import render_page
from remedy.text import counted
from remedy.verify.verdict import NOT_TESTED, Verdict


@dataclass(frozen=True)
class Circumstances:
    """What an outcome does not say of its run.

    Args:
        began: when the command began, RFC 3339 in UTC.
        by: who typed it, user@machine.
    """

    began: str
    by: str


def run_page(outcome: RunOutcome, circumstances: Circumstances) -> str:
    """Return the page.

    Args:
        outcome: how the run ended.
        circumstances: when, and who.
    """
    verdict, explanation = outcome.verdict, outcome.explanation
    state, look = _state(outcome)
    rows = [
        ("command", f"remedy {outcome.mode}"),
        ("begun", f"{circumstances.began} by {circumstances.by}"),
        ("run", outcome.run),
        ("inventory", outcome.inventory),
        ("takes back" if outcome.mode == "rollback" else "resumes", outcome.of),
        ("remedies", outcome.plan.choice.words if outcome.plan is not None else ""),
        ("hosts", str(len(outcome.hosts))),
        ("plan", outcome.plan.digest if outcome.plan is not None and outcome.plan.changes else ""),
        ("proof", " · ".join(ground(verdict)) if verdict is not None else ""),
        ("exit code", str(outcome.exit_code)),
    ]
    plan = outcome.plan if outcome.plan is not None and outcome.plan.changes else None
    return render_page(
        "run.html",
        sheet=Sheet(
            Path(outcome.inventory).name,
            state,
            look,
            reason=_reason(verdict) if verdict is not None else "",
            rows=tuple((key, value) for key, value in rows if value),
        ),
        cause=lines_of(render_explanation(explanation)) if explanation is not None else (),
        changing=outcome.mode != "verify",
        # Whoever wrote the plan: its words stand beside every command, whole.
        plan=lines_of(render_steps(plan)) if plan is not None else (),
        whole=lines_of(render_body(plan)) if plan is not None else (),
        result=lines_of(Group(render_hosts(outcome), *last_lines(outcome))),
        proof=proof_of(verdict) if verdict is not None else None,
        views=lines_of(render_views(outcome.views)) if outcome.views else (),
    )


def _reason(verdict: Verdict) -> str:
    """Return the sentence of a verdict; where its culprits are below, how many there are."""
    if verdict.passed:
        return verdict.reason
    return headline(verdict) + "".join(verdict.reason.partition(NOT_TESTED)[1:])


def _state(outcome: RunOutcome) -> tuple[str, str]:
    """Return the heading of a run, and how it looks."""
    verdict = outcome.verdict
    if verdict is None:
        if outcome.exit_code == OK:
            return "done, not verified", "part"
        return f"ended with exit code {outcome.exit_code}, not verified", "bad"
    if not verdict.passed:
        return "not proved", "bad"
    if verdict.absent:
        return f"proved, but {counted(len(verdict.absent), 'host')} not tested", "part"
    if outcome.exit_code not in (OK, UNREACHABLE):
        return f"proved, but exit code {outcome.exit_code}", "bad"
    return "proved", "good"
