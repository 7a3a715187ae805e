"""What keeps a file from being changed, told before anything is tried."""

from __future__ import annotations

import re
from dataclasses import dataclass

from remedy.plan.change import Finding, FindingKind
from remedy.probe import File


@dataclass(frozen=True)
class Blocker:
    """Why a file cannot be changed, and what the user can do about it."""

    remedy: str
    title: str
    fix: str

    def on(self, host: str, label: str) -> Finding:
        """Return the finding that says so for one host."""
        return Finding(
            host=host,
            remedy=self.remedy,
            kind=FindingKind.BLOCKED,
            label=label,
            title=self.title,
            fix=self.fix,
        )


# A file that says so at its top is written again by that program, over whatever is changed here.
MANAGED = re.compile(
    rb"(?:managed|generated|maintained) by (puppet|chef|salt|cfengine|networkmanager)", re.I
)
HEADER_BYTES = 1024


def blocker(file: File, remedy: str) -> Blocker | None:
    """Return what keeps ``file`` from being changed; None when nothing is known to."""
    manager = MANAGED.search(file.content[:HEADER_BYTES])
    if manager is not None:
        who = manager[1].decode()
        return Blocker(
            remedy,
            f"{file.path} says that it is managed by {who}, which would write it again",
            f"Make the change in {who}, or take the file out of it; to leave the file alone, set what "
            f"`remedy explain {remedy}` tells for that.",
        )
    if file.immutable:
        return Blocker(
            remedy,
            f"{file.path} is immutable (chattr +i), so somebody wants it as it is",
            f"If it may be changed: chattr -i {file.real_path}, then run the command again.",
        )
    if file.read_only:
        return Blocker(
            remedy,
            f"{file.path} is on a file system that is mounted read-only",
            f"Remount it: mount -o remount,rw $(findmnt -n -o TARGET --target {file.real_path})",
        )
    return None
