"""The page of a plan: one that remedy just made, or a file of whoever wrote it."""

from __future__ import annotations

from remedy.plan import Plan
from remedy.report import whole
from remedy.report.pages.sheet import Sheet, lines_of
from remedy.report.plan import render_body
from remedy.report.summary import changes_on_hosts, remedies_of, tally, weighed
from remedy.templating import render_page


def plan_page(plan: Plan, unread: int = 0, inventory: str = "", run: str = "") -> str:
    """Return the page: what is to know before agreeing, which remedy where, each change with its reason.

    Args:
        plan: made by this remedy, for the hosts as they were just read.
        unread: how many hosts could not be read, so that what they need is unknown.
        inventory: its file, from the root: the plan itself has no more than its name.
        run: under which the plan is on record; "" where it is not.
    """
    changes = bool(plan.changes)
    return render_page(
        "plan.html",
        sheet=_sheet(plan, unread, ("run", run), ("inventory", inventory)),
        weight=lines_of(weighed(plan)) if changes else (),
        remedies=remedies_of(plan),
        plan=lines_of(render_body(plan)),
        end=lines_of(tally(plan, unread)),
        whole=lines_of(render_body(plan, whole.exact_action)) if changes else (),
    )


def plan_file_page(plan: Plan) -> str:
    """Return the page of a plan file for whoever answers for it: everything that it does, to the last byte.

    Args:
        plan: as it was read, whoever wrote it; its own words for what it does are not believed.
    """
    return render_page(
        "plan_file.html",
        sheet=_sheet(plan, 0),
        remedies=remedies_of(plan),
        plan=lines_of(whole.render_body(plan)),
        end=lines_of(tally(plan)),
    )


def _sheet(plan: Plan, unread: int, *circumstances: tuple[str, str]) -> Sheet:
    """Return the head: who made it, when, for what.

    Args:
        plan: of which the page is.
        unread: how many hosts could not be read.
        circumstances: what the plan does not have of itself; a name and a value each.
    """
    # What is wrong without a remedy, or was not read, is not good.
    look = "part" if plan.changes or plan.findings or unread else "good"
    rows = [
        ("made", f"{plan.date} by {plan.author}"),
        *circumstances,
        ("purpose", plan.purpose),
        ("plan", plan.digest),
        ("content", plan.content_digest),
        ("remedies", _choice(plan)),
    ]
    state = changes_on_hosts(plan.changes) if plan.changes else "nothing to change"
    return Sheet(plan.inventory, state, look, rows=tuple((k, v) for k, v in rows if v))


def _choice(plan: Plan) -> str:
    """Return which remedies decided, where it was not all."""
    only = f"only {', '.join(plan.only)}" if plan.only else ""
    skip = f"without {', '.join(plan.skip)}" if plan.skip else ""
    return "; ".join(filter(None, [only, skip]))
