"""Which machine the last run saw at each entry's address, kept beside the inventory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from remedy.errors import RemedyError
from remedy.files import kept_mode, make_folder, write_whole
from remedy.plan import Fleet
from remedy.plan.identities import identity_of, machine_mark

NAME = "machines.json"


@dataclass(frozen=True)
class Machines:
    """What the last run saw, by host.

    Args:
        marks: what stands for its machine-id.
        boots: its boot-id.
    """

    marks: Mapping[str, str] = field(default_factory=dict)
    boots: Mapping[str, str] = field(default_factory=dict)


def load(home: Path) -> Machines:
    """Return what the last run saw; nothing where none was kept, or it cannot be read."""
    try:
        document = json.loads((home / NAME).read_bytes())
        return Machines(_texts(document["marks"]), _texts(document["boots"]))
    except (OSError, ValueError, KeyError, TypeError):
        return Machines()


def save(home: Path, fleet: Fleet) -> None:
    """Keep which machine answered at the address of each host that was read.

    Raises:
        RemedyError: it cannot be written.
    """
    last = load(home)
    seen = {n: identity for n in fleet.states if (identity := identity_of(fleet, n))}
    marks = {
        **last.marks,
        **{n: machine_mark(i.machine_id) for n, i in seen.items() if i.machine_id},
    }
    boots = {**last.boots, **{n: i.boot_id for n, i in seen.items() if i.boot_id}}
    kept = {
        kind: {name: known[name] for name in fleet.inventory.names if name in known}
        for kind, known in (("marks", marks), ("boots", boots))
    }
    try:
        make_folder(home)
        write_whole(home / NAME, json.dumps(kept, indent=1), mode=kept_mode(home))
    except OSError as error:
        raise RemedyError(
            f"which machine is which cannot be kept in {home}: {error.strerror}",
            next_step="Make room or give write access before the next run.",
        ) from error


def _texts(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise TypeError("no table")
    return {str(key): str(text) for key, text in value.items()}
