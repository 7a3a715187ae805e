"""What keeps a file from being changed, as far as that shows in what was read of it."""

from __future__ import annotations

import re

from remedy.probe import File

# A file that says so at its top is written again by that program, over whatever is changed here.
MANAGED = re.compile(
    rb"(?:managed|generated|maintained) by (puppet|chef|salt|cfengine|networkmanager)", re.I
)
HEADER_BYTES = 1024


def obstacle(file: File, remedy: str) -> tuple[str, str] | None:
    """Return what keeps a file from being changed, and what the user can do; None when nothing is known to."""
    manager = MANAGED.search(file.content[:HEADER_BYTES])
    if manager is not None:
        tool = manager[1].decode()
        fix = f"Make the change in {tool}, or take the file out of it. To leave the file alone, see the "
        return (
            f"{file.path} says that it is managed by {tool}, which would write it again",
            f"{fix}settings: remedy explain {remedy}",
        )
    if file.immutable:
        return (
            f"{file.path} is immutable (chattr +i), so it cannot be changed, not even by root",
            f"If it may be changed: chattr -i {file.real_path}, then run the command again.",
        )
    if file.read_only:
        return (
            f"{file.path} is on a file system that is mounted read-only",
            f"Remount it: mount -o remount,rw $(findmnt -n -o TARGET --target {file.real_path})",
        )
    return None
