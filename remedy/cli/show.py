"""``remedy show``: render a plan file or a run."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from remedy.cli import document, names
from remedy.cli.common import Options, errors_shown, home_of, opened
from remedy.cli.document import print_document
from remedy.cli.next_step import HERE, note_inventory
from remedy.cli.pages import check_page, html_option, write_page
from remedy.cli.paths import FilePath
from remedy.cli.terminal import err, out
from remedy.errors import PlanFileError, RemedyError, UsageError
from remedy.files import STANDARD, full_path
from remedy.text import quoted

if TYPE_CHECKING:
    from remedy.audit import Story
    from remedy.plan import Plan


_CHANGE_NOTHING = {
    "check": "a check",
    "plan": "a plan",
    "rehearsal": "a rehearsal",
    "verify": "a verification",
}


@click.command()
@click.argument("plan_or_run")
@click.option(
    "--home",
    type=FilePath(),
    default=HERE,
    show_default=True,
    help="The .remedy folder that holds the run, or the folder of the inventory.",
)
@click.option(
    "--inventory",
    type=FilePath(),
    help="Of a run: its inventory; the hosts are asked for their receipts of it.",
)
@click.option("--limit", multiple=True, metavar="HOSTS", help="Ask only these hosts.")
@click.option("--spec", type=FilePath(), help="remedy.yaml to use.")
@click.option("-K", "--ask-sudo-password", is_flag=True, help="Ask once for the sudo password.")
@html_option("the plan to the last byte, or the run as the journal has it")
@click.option("--json", "as_json", is_flag=True, help="One JSON document: the plan, or the run.")
def show(
    plan_or_run: str,
    home: Path,
    inventory: Path | None,
    limit: tuple[str, ...],
    spec: Path | None,
    ask_sudo_password: bool,
    html: Path | None,
    as_json: bool,
) -> None:
    """Render a plan file, or a run by its id or as `latest`: what was planned, by whom, and the results.

    Old and stale plans, and plans of any inventory, are shown too. No host is contacted without --inventory;
    with it the exit code is 5 where a host could not be reached.
    """
    with errors_shown():
        if inventory is None and (limit or spec or ask_sudo_password):
            raise UsageError(
                "--limit, --spec and --ask-sudo-password are for hosts that are asked for their receipts",
                next_step="Add --inventory, or leave them out.",
            )
        path = Path(plan_or_run)
        check_page(html, path)
        if path != STANDARD and (path.is_dir() or not path.exists()):
            options = None
            home = _home(home)
            if inventory is not None:
                home = home_of(inventory)
                options = Options(inventory, spec, limit, ask_sudo_password=ask_sudo_password)
            _show_run(plan_or_run, home, options, html, as_json=as_json)
            return
        _show_plan(path, html, as_json=as_json)


def _home(folder: Path) -> Path:
    """Return the folder of the journal where that of the inventory may have been typed."""
    from remedy.audit.journal import FILE_NAME

    inner = folder / HERE
    return inner if (inner / FILE_NAME).is_file() and not (folder / FILE_NAME).exists() else folder


def _write(html: Path, text: str) -> None:
    for problem in write_page(html, text):
        err.print(Text(problem, style="yellow"))


def _show_plan(path: Path, html: Path | None = None, *, as_json: bool) -> None:
    from remedy.apply.waves import TAKEN_BACK
    from remedy.plan import read_plan
    from remedy.report.whole import render_whole

    plan = read_plan(path)
    if html is not None:
        from remedy.report.pages.plan import plan_file_page

        _write(html, plan_file_page(plan))
    if as_json:
        from remedy.report.document import plan_body

        print_document("plan", {"inventory": plan.inventory, **plan_body(plan)})
        return
    out.print(render_whole(plan))
    if plan.changes and not plan.purpose:
        out.print(f"with --waves, {TAKEN_BACK}")


def _show_run(
    run: str, home: Path, options: Options | None, html: Path | None, *, as_json: bool
) -> None:
    """Show a run from the journal, and the plan that it carried out.

    Raises:
        UsageError: there is no such run.
    """
    from remedy.audit.journal import FILE_NAME
    from remedy.audit.latest import ELSEWHERE, LATEST, latest
    from remedy.audit.story import read_stories
    from remedy.report.audit import render_run

    known = None if options is not None else names.inventory_of(home)
    if known is not None:
        document.about(inventory=known)
    elif options is None:
        note_inventory(None, home)  # of a different folder none is known either
    stories = read_stories(home / FILE_NAME)
    story = stories.get(run)
    if run == LATEST:
        story = latest(stories.values(), "no run", lambda _: True, home, ELSEWHERE)
        run = story.run
    if story is None:
        raise UsageError(
            f"{run} is neither a plan file nor a run in {full_path(home)}",
            next_step="List the runs: remedy history INVENTORY. "
            "A journal in a different folder: --home FOLDER/.remedy",
        )
    words, errors = _receipts(options, story)
    receipts = {name: text for name, text in words.items() if name not in errors}
    plan, problem = _plan_of(story, home)
    if html is not None:
        from remedy.report.pages.story import story_page

        path = known if options is None else options.inventory
        places = ("" if path is None else full_path(path), full_path(home / FILE_NAME))
        _write(html, story_page(story, plan, problem, receipts, errors, *places))
    if as_json:
        from remedy.report.records import story_body

        print_document("story", story_body(story, words))
    else:
        typed = "" if known is None else quoted(known)
        out.print(render_run(story, plan, problem, receipts, typed, errors))
    if errors:
        from remedy.runs.outcome import most_severe

        sys.exit(most_severe(error.exit_code for error in errors.values()))


def _plan_of(story: Story, home: Path) -> tuple[Plan | None, str]:
    """Return the plan that is kept for a run, if any, and what is wrong with it."""
    from remedy.audit.agreement import plan_path
    from remedy.plan import read_plan

    path = plan_path(home, story.run)
    if not path.exists():
        return None, ""
    try:
        plan = read_plan(path, of_journal=True)
    except PlanFileError as error:
        return None, f"its plan cannot be shown: {error.message}"
    if story.digest not in ("", plan.digest):
        return plan, "the plan that is kept for this run is NOT the plan that the journal names"
    return plan, ""


def _receipts(
    options: Options | None, story: Story
) -> tuple[Mapping[str, str], Mapping[str, RemedyError]]:
    """Return what hosts noted of a run, and why some could not be asked; nothing where none is to be."""
    if options is None:
        return {}, {}
    if story.mode in _CHANGE_NOTHING:
        words = f"{_CHANGE_NOTHING[story.mode]} changes no host, so no host has a receipt of it"
        err.print(Text(words, style="dim"))
        return {}, {}
    with opened(options) as (session, _):
        from remedy.runs.journal import ask_receipts

        answers = ask_receipts(session, story)
        return answers.words, answers.errors
