"""What was agreed to: the whole plan and who signed it, both kept beside the journal."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from remedy import __version__
from remedy.apply.start import RUN_ID
from remedy.audit.approval import Approval, planner_file
from remedy.audit.presence import is_at_work
from remedy.audit.story import TOUCHED, Story
from remedy.errors import RemedyError, StaleError
from remedy.files import flush_folder, is_shared, kept_mode, make_folder, write_whole
from remedy.plan import EVERY, Change, Choice, Origin, Plan, inverse, read_plan, write_plan
from remedy.plan.reading import ROLLBACK
from remedy.plan.shared import format_for
from remedy.plan.splice import placed

PLAN_NAME = "plan.json"


@dataclass(frozen=True)
class Agreement:
    """A plan that somebody agreed to, on a terminal or by signatures.

    Args:
        plan: the whole plan, also the part for hosts that are not asked for this time.
        approvals: the signatures that counted.
        planner: the signature of whoever made the plan; None where no approval was required.
        resumes: the run that is resumed, "" for none.
        of: the run that is taken back, "" for none.
        by: who carries it out now, "" for the plan's author.
        sizes: of the waves of the run that it resumes, "" where that changed all hosts at a time.
    """

    plan: Plan
    approvals: tuple[Approval, ...] = ()
    planner: Approval | None = None
    resumes: str = ""
    of: str = ""
    by: str = ""
    sizes: str = ""

    def record(
        self, part: Plan, *, waves: int, proving: bool = False, sizes: str = ""
    ) -> dict[str, Any]:
        """Return the record of the journal before anything is changed.

        Args:
            part: the part of the plan that is carried out now.
            waves: in how many steps.
            proving: whether each of them ends with a proof.
            sizes: of the steps, as they were asked for, so that a run that resumes this one has them as well.
        """
        data: dict[str, Any] = {
            "by": self.by or self.plan.author,
            "author": self.plan.author,
            "created": self.plan.created,
            "inventory": self.plan.inventory,
            "inventory_digest": self.plan.inventory_digest,
            "spec_digest": self.plan.spec_digest,
            "tool_version": self.plan.tool_version,
            "digest": self.plan.digest,
            "changes": titles(part),
            "waves": waves,
            "prove_waves": proving,
        }
        if self.approvals:
            data["approvals"] = [
                {
                    "principal": approval.principal,
                    "signature": approval.signature.read_text(encoding="utf-8"),
                }
                for approval in self.approvals
            ]
        if self.planner is not None:
            data["planner"] = {
                "principal": self.planner.principal,
                "signature": self.planner.signature.read_text(encoding="utf-8"),
            }
        data |= {"sizes": sizes} if sizes else {}
        data |= self.plan.choice.record
        return {**data, **{k: v for k in ("resumes", "of") if (v := getattr(self, k))}}


def titles(plan: Plan) -> dict[str, list[str]]:
    """Return the titles of each host's changes, in order."""
    titles_by_host: dict[str, list[str]] = {}
    for change in plan.changes:
        titles_by_host.setdefault(change.host, []).append(change.title)
    return titles_by_host


def keep(agreement: Agreement, home: Path, run: str) -> None:
    """Keep the plan of a run and its signatures, so that it can be shown, taken back and resumed.

    Raises:
        RemedyError: they cannot be written.
    """
    path = plan_path(home, run)
    try:
        make_folder(path.parent.parent)
        path.parent.mkdir(mode=0o700)
        if is_shared(path.parent.parent):
            path.parent.chmod(0o2770)
        flush_folder(path.parent.parent)
        write_plan(agreement.plan, path, mode=kept_mode(path.parent))
        for number, approval in enumerate(agreement.approvals, 1):
            _copy(approval.signature, path.with_name(f"{path.name}.{number}.sig"))
        if agreement.planner is not None:
            _copy(agreement.planner.signature, planner_file(path))
    except OSError as error:
        raise RemedyError(
            f"{path.parent} cannot be written: {error.strerror}",
            next_step="Nothing was changed. Make room or give write access, and run the command again.",
        ) from error


def forget(home: Path, days: int | None, now: datetime) -> None:
    """Remove the plans of runs that are older than some days; None keeps all. The journal keeps what they did.

    A run whose controller is at work keeps its own; what cannot be removed is left to the next run.
    """
    if days is None:
        return
    limit = f"{now - timedelta(days=days):%Y%m%dT%H%M%SZ}"
    for folder in (home / "runs").iterdir():
        is_run = RUN_ID.fullmatch(folder.name) is not None  # it begins with the run's time, in UTC
        if is_run and folder.name < limit and not is_at_work(home, folder.name):
            shutil.rmtree(folder, ignore_errors=True)


def plan_path(home: Path, run: str) -> Path:
    """Return where the plan of a run is kept."""
    return home / "runs" / run / PLAN_NAME


def read_agreed(home: Path, story: Story) -> Plan:
    """Return the plan that was agreed to for a run.

    Raises:
        PlanFileError: it is gone, or cannot be read.
        StaleError: it is not the plan that the journal names.
    """
    path = plan_path(home, story.run)
    plan = read_plan(path, of_journal=True)
    if plan.digest != story.digest:
        raise StaleError(
            f"{path} is not the plan that the journal names for this run",
            next_step=f"Bring the plan {story.digest:.12} back from a backup of the folder .remedy.",
        )
    return plan


def undoing(plan: Plan, story: Story, origin: Origin, choice: Choice = EVERY) -> Plan:
    """Return the plan that takes a run back: the changes that it made, or may have made, last one first.

    What was right before, or was never tried, is not taken back; nor is what cannot be.

    Args:
        plan: what the run carried out.
        story: the run.
        origin: who takes it back, and when.
        choice: the remedies whose changes are taken back; those of others stay, and the plan says so.
    """
    changes = tuple(change for change in touched(plan, story) if change.remedy in choice)
    hosts: dict[str, list[Change]] = {}
    for change in changes:
        hosts.setdefault(change.host, []).append(change)
    back = tuple(
        placed(change, plan.blobs) for steps in hosts.values() for change in inverse(steps)
    )
    return plan.model_copy(
        update={
            "format_version": format_for(len(hosts)),
            "tool_version": __version__,
            "created": origin.created,
            "author": origin.author,
            "changes": back,
            "purpose": f"{ROLLBACK}{story.run}",
            "findings": (),
            "observed": {},
            "machines": {},
            "secrets": {},
            "sealed_by": "",
            "only": choice.only,
            "skip": choice.skip,
        }
    )


def touched(plan: Plan, story: Story) -> tuple[Change, ...]:
    """Return the changes of a plan that its run made, or may have made."""
    return tuple(
        change
        for change in plan.changes
        if story.results.get(change.host, {}).get(change.id, "lost") in TOUCHED
    )


def irreversible(plan: Plan, story: Story, choice: Choice = EVERY) -> tuple[Change, ...]:
    """Return the changes of a choice that a run made, or may have made, and that nothing takes back."""
    return tuple(c for c in touched(plan, story) if not c.reversible and c.remedy in choice)


def _copy(signature: Path, path: Path) -> None:
    write_whole(path, signature.read_bytes(), mode=kept_mode(path.parent))
