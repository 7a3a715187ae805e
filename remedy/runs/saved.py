"""Plans that were made before: a plan file, and the plan of a run that did not come to its end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from remedy.apply.start import origin, run_named
from remedy.audit.agreement import Agreement, plan_path, read_agreed
from remedy.audit.journal import FILE_NAME
from remedy.audit.story import Story, hosts_of_plan
from remedy.errors import RefusedError, RemedyError, StaleError, UsageError
from remedy.files import STANDARD, name_of
from remedy.plan import Plan, read_plan
from remedy.plan.seal import changed_secrets
from remedy.runs.gate import require_approval
from remedy.runs.probe import ProbeResult
from remedy.runs.session import Session
from remedy.secret import Seal, read_seal
from remedy.text import fold, quoted


def read_saved(session: Session, path: Path, approvals: int) -> Agreement:
    """Read a plan file that is to be carried out.

    Raises:
        PlanFileError: it cannot be used.
        StaleError: it was made for a different inventory, or was carried out before.
        RefusedError: fewer than ``approvals`` signatures count.
    """
    plan = read_plan(path)
    if plan.purpose:
        raise UsageError(
            f"{name_of(path)} is for something else: {plan.purpose}",
            next_step=f"Give it to the command that it is for: {_command_for(session, plan, path)}",
        )
    check_bonds(session, path, plan)
    used = hosts_of_plan(session.home / FILE_NAME, plan.digest) & set(session.hosts)
    if used & set(plan.hosts):
        raise StaleError(
            f"{name_of(path)} was carried out before on {fold(sorted(used))}; a plan is used once",
            next_step=f"Make a new one: remedy plan {session.typed} -o {new_file(path)}"
            f"{_or_resume(session, plan)}",
        )
    planner, valid = require_approval(session, plan, path, approvals)
    return Agreement(plan, valid, planner, by=origin().author)


def _command_for(session: Session, plan: Plan, path: Path) -> str:
    """Return the command that carries out a plan that is for no apply."""
    run, verb = run_named(plan.purpose), plan.purpose.partition(" ")[0]
    if not run or verb not in ("rollback", "unlock"):
        return "remedy rollback, or remedy unlock"
    force = " --force" * (verb == "unlock")
    return f"remedy {verb} {run} {session.typed}{force} --plan {quoted(path)}"


def new_file(path: Path) -> str:
    """Return where a plan is written in place of one that was read, as it is typed."""
    return "plan.json" if path == STANDARD else quoted(path)


def refuse_choice(session: Session, command: str) -> None:
    """Refuse ``--only`` and ``--skip`` beside a plan that was made before.

    Args:
        session: with the remedies that the command line chooses.
        command: what makes such a plan, up to the inventory.

    Raises:
        UsageError: it chooses some.
    """
    if session.choice:
        inventory, words = quoted(session.inventory.path), session.choice.words
        raise UsageError(
            f"{words}: a plan that was made before has its own remedies",
            next_step=f"Leave the option out, or make a new plan with it: {command} {inventory} {words} -o "
            "plan.json",
        )


def resumed(session: Session, run: str, approvals: int) -> tuple[Agreement, tuple[str, ...]]:
    """Return the plan of a run, and the hosts on which it is still to be carried out.

    Raises:
        UsageError: there is no such run, or it is not an apply.
        StaleError: its plan is not the one that the journal names, or was made for a different inventory.
        RefusedError: fewer than ``approvals`` signatures count, or a wave of the plan was taken back.
    """
    plan, remaining = unfinished(session, run)
    _refuse_red(session, plan)
    path = plan_path(session.home, run)
    # The file is the journal's: a new plan is made beside it, and not in its place.
    check_bonds(session, path, plan, f"remedy apply {quoted(session.inventory.path)}")
    planner, valid = require_approval(session, plan, path, approvals)
    hosts = tuple(host for host in remaining if host in session.hosts)
    sizes = session.story(run).sizes
    agreement = Agreement(plan, valid, planner, resumes=run, by=origin().author, sizes=sizes)
    return agreement, hosts


def _or_resume(session: Session, plan: Plan) -> str:
    """Return how the last run of a plan that did not come to its end is resumed; "" where none can be."""
    runs = [s for s in session.stories().values() if s.mode == "apply" and s.digest == plan.digest]
    stopped = [story.run for story in runs if _remaining(runs, story)]
    if not stopped or any(map(_red_waves, runs)):
        return ""
    words = f"remedy apply {session.typed} --resume {stopped[-1]}"
    return f". To resume the run that stopped: {words}"


def _remaining(stories: Iterable[Story], story: Story) -> tuple[str, ...]:
    """Return the hosts of a run that neither it nor a run with the same plan settled."""
    settled = {
        host
        for same_plan in stories
        if same_plan.mode == "apply" and same_plan.digest == story.digest
        for host in same_plan.planned
        if host not in same_plan.unfinished
    }
    return tuple(host for host in story.planned if host not in settled)


def _red_waves(story: Story) -> list[Mapping[str, Any]]:
    """Return the waves of a run whose proof failed."""
    return [wave for wave in story.waves if wave.get("passed") is False]


def unfinished(session: Session, run: str) -> tuple[Plan, tuple[str, ...]]:
    """Return the whole plan of a run, and the hosts that neither it nor a run that resumed it settled.

    Raises:
        UsageError: there is no such run, or it is not an apply.
        StaleError: its plan is not the one that the journal names.
    """
    stories, story = session.stories(), session.story(run)
    if story.mode != "apply":
        raise UsageError(
            f"{run} is a {story.mode}, and only an apply can be resumed",
            next_step=f"List the runs: remedy history {session.typed}",
        )
    return read_agreed(session.home, story), _remaining(stories.values(), story)


def _refuse_red(session: Session, plan: Plan) -> None:
    """Refuse a plan of which the proof of a wave failed: on the other hosts it would do the same.

    Raises:
        RefusedError: there is such a wave.
    """
    for story in session.stories().values():
        red = _red_waves(story)
        if red and story.digest == plan.digest:
            number, of = red[0].get("wave"), red[0].get("of")
            wave = f"wave {number} of run {of}" if of and number else f"run {of}"
            raise RefusedError(
                f"run {story.run} stopped because the proof of {wave if of else f'its wave {number}'} failed: "
                "this plan is not carried out on further hosts",
                next_step="See what was taken back, and which change is suspected: "
                f"{session.show_command(story.run)}. Then make a new plan: remedy plan {session.typed}",
            )


def check_machines(plan: Plan, result: ProbeResult) -> None:
    """Refuse a plan where other machines answer than those that it was made for.

    Raises:
        StaleError: they do.
    """
    current = result.marked(plan).machines
    strangers = [host for host, mark in current.items() if plan.machines.get(host, mark) != mark]
    if strangers:
        raise StaleError(
            f"{fold(strangers)}: a different machine answers there than the one that the plan was made for",
            next_step=f"Make a new one: remedy plan {quoted(result.fleet.inventory.path)} -o plan.json. Or "
            f"leave these hosts out: --limit {quoted(f'*!{fold(strangers)}')}",
        )


def changed_since(session: Session, plan: Plan, result: ProbeResult) -> tuple[str, ...]:
    """Return, in words, what is no longer as it was when a plan was saved.

    It is a note, no refusal: what the plan changes is compared on each host, and a secret is how remedy gets
    in, not what it changes there.
    """
    current = result.marked(plan).observed
    hosts = [host for host, mark in current.items() if plan.observed.get(host, mark) != mark]
    notes = []
    if hosts:
        notes.append(
            f"{fold(hosts)}: changed since the plan was made; each object is compared before it is changed"
        )
    return (*notes, *changed_secrets(plan, session.inventory, _seal(session)))


def _seal(session: Session) -> Seal | None:
    """Return the key of saved plans; None where it cannot be used, which is no reason to stop."""
    try:
        return read_seal(session.home)
    except RemedyError:
        return None


def check_bonds(session: Session, path: Path, plan: Plan, again: str = "") -> None:
    """Refuse a plan of a different inventory, or of different settings.

    Args:
        session: with the inventory and the settings that hold now.
        path: the plan's file.
        plan: the plan.
        again: the command that makes such a plan; "" for that of an apply.

    Raises:
        StaleError: it is of such.
    """
    inventory = session.inventory
    options = "".join(f" {words}" for words in (plan.choice.words,) if words)
    again = again or f"remedy plan {quoted(inventory.path)}{options} -o {new_file(path)}"
    name = name_of(path)
    strangers = [host for host in plan.hosts if host not in inventory]
    if plan.inventory_digest == inventory.digest and not strangers:
        if plan.spec_digest == session.spec.digest:
            return
        raise StaleError(
            f"{name} was made with different settings, or before remedy.yaml was edited",
            next_step=f"Make it again: {again}",
        )
    departures = [host for host in plan.hosts if host not in inventory]
    reason = (
        f": it changes {fold(departures)}, which is no longer in the inventory"
        if departures
        else ""
    )
    raise StaleError(
        f"{name} was made for a different inventory, or before this one was edited{reason}",
        next_step=f"Make it again: {again}",
    )
