"""Which remedy ends a cause, and what to type against it: known without importing any of remedy's own remedies.

They are half of what a command has to import, and a log by itself needs no more than their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from remedy.causes import NO_HOST_FIX, Cause, causes
from remedy.diagnose.advice import look
from remedy.diagnose.diagnosis import (
    UNKNOWN,
    Confirmation,
    ConfirmationStatus,
    Diagnosis,
    Explanation,
)
from remedy.installed import REMEDIES, points
from remedy.text import limited, quoted
from remedy.yaml_text import parse_own

TABLE = "cures.yaml"


class Cures(NamedTuple):
    """The causes that a remedy has to do with: those that its changes end, and those that it reports."""

    cures: tuple[str, ...]
    finds: tuple[str, ...]


@cache
def own_cures() -> Mapping[str, Cures]:
    """Return what each of remedy's own remedies cures and finds, in the order in which they act."""
    table = parse_own(resources.files(__package__).joinpath(TABLE).read_text(encoding="utf-8"))
    return {
        name: Cures(tuple(row.get("cures", ())), tuple(row.get("finds", ())))
        for name, row in table.items()
    }


def cause_of(label: str) -> Cause | None:
    """Return the cause with a label; those that remedies bring are looked for last, since they are imported."""
    if (cause := causes().get(label)) is not None:
        return cause
    from remedy.plan import all_causes

    return all_causes().get(label)


def curing(label: str) -> list[str]:
    """Return the remedies whose changes end a cause."""
    return [name for name, remedy in _every().items() if label in remedy.cures]


def reporting(label: str) -> list[str]:
    """Return the remedies that report a cause without ending it."""
    return [name for name, remedy in _every().items() if label in remedy.finds]


def remedy_for(label: str) -> str | None:
    """Return the remedy that cures a cause, else the one that reports it, None where there is none."""
    cause = causes().get(label)
    if cause is not None and cause.group == NO_HOST_FIX:
        return None
    words = set(label.split("-"))
    for group in (curing(label), reporting(label)):
        if group:
            # Several can cure one cause: the one whose name is most like it comes first.
            return max(group, key=lambda name: len(words & set(name.split("_"))))
    return None


def command_for(
    inventory: str,
    confirmations: Iterable[Confirmation],
    diagnosis: Diagnosis,
    ask: str | None = None,
) -> str | None:
    """Return the command to type against a cause, None where remedy can do nothing against it.

    Other causes that the hosts confirm are cured by the same command: training fails until all of them are.
    What is not certain changes no host.

    Args:
        inventory: as it is to be typed.
        confirmations: of the hosts; none where no host was probed.
        diagnosis: with the cause.
        ask: the command that asks the hosts, where they were not asked.
    """
    label = diagnosis.label
    by_label = {confirmation.label: confirmation for confirmation in confirmations}
    confirmation = by_label.get(label)
    curable = [
        c for c in by_label.values() if c.status is ConfirmationStatus.CONFIRMED and c.curable
    ]
    if curable and (label == UNKNOWN or confirmation in curable):
        hosts = dict.fromkeys(host for c in curable for host in c.hosts)
        return f"remedy apply {inventory} --limit {limited(hosts)}"
    if confirmation is not None and confirmation.status is ConfirmationStatus.REFUTED:
        return None  # nothing would be changed
    if remedy_for(label) is None:
        return None
    if diagnosis.confidence != "certain":
        return ask or f"remedy check {inventory}"
    # Hosts that were read would be changed by what is curable, which is not there.
    verb = "apply" if curing(label) and confirmation is None else "check"
    return f"remedy {verb} {inventory}"


def explain_alone(diagnosis: Diagnosis, logs: Iterable[Path]) -> Explanation:
    """Explain a diagnosis by nothing but its logs: what is not certain asks the hosts next.

    Args:
        diagnosis: of the logs.
        logs: as they were named.
    """
    typed = " ".join(map(quoted, logs))
    ask = f"remedy diagnose {typed} --inventory INVENTORY"
    return Explanation(
        diagnosis=diagnosis,
        remedy=remedy_for(diagnosis.label),
        command=command_for("INVENTORY", (), diagnosis, ask),
        look=look(diagnosis),
    )


def _every() -> Mapping[str, Cures]:
    """Return what all remedies cure and find; where others brought some, all have to be imported."""
    if not points(group=REMEDIES):
        return own_cures()
    from remedy.plan import remedies

    return {remedy.name: Cures(remedy.cures, remedy.finds) for remedy in remedies()}
