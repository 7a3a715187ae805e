"""The errors of remedy, one tree.

::

    RemedyError                 something expected went wrong; carries the next step   exit 1
    ├── UsageError              what the user typed or wrote cannot be used            exit 2
    │   ├── InventoryError      the inventory file
    │   ├── SpecError           remedy.yaml
    │   └── PlanFileError       a plan file
    ├── RefusedError            remedy will not go on, for safety                      exit 4
    │   ├── HostKeyError        a host's key is unknown
    │   │   ├── ChangedKeyError it is not the one that is known
    │   │   └── RevokedKeyError it was withdrawn
    │   ├── StaleError          the host is no longer what the plan was made for
    │   └── LockedError         another run holds the host
    ├── UnreachableError        no connection to a host                                exit 5
    ├── LaunchError             the ranks of a proof cannot be started as asked        exit 3
    ├── OutputError             standard output cannot be written
    ├── ProbeError              a host's probe gave no answer that can be read
    └── LabError                the lab on this machine

A ``RemedyError`` is an expected failure: it is shown without a traceback. Anything else that escapes
is a bug, and is shown as one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

MOST_TOGETHER = 10
"""Errors of a file that are shown at once; whoever corrects these sees the others."""


class RemedyError(Exception):
    """An expected failure, shown with what to do next.

    Args:
        message: what went wrong and where, one sentence.
        next_step: what the user can do about it; shown after the message.
    """

    exit_code: ClassVar[int] = 1
    parts: tuple[RemedyError, ...] = ()
    """The errors that this one is made of, in the order in which they are shown; none of a single error."""

    def __init__(self, message: str, *, next_step: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step

    def __str__(self) -> str:
        return f"{self.message}\n{self.next_step}" if self.next_step else self.message


def raise_together(errors: Iterable[RemedyError]) -> None:
    """Raise errors of one kind as one, up to a bound, those with the same next step one after the other.

    The message and the next step of several have a line for each. Nothing is raised where there are no errors.
    """
    by_message: dict[str, RemedyError] = {}
    for error in errors:
        by_message.setdefault(error.message, error)
    known = list(by_message.values())
    if len(known) < 2:
        for error in known:
            raise error
        return
    steps = list(dict.fromkeys(error.next_step for error in known))
    known.sort(key=lambda error: steps.index(error.next_step))
    parts = known[:MOST_TOGETHER]
    if len(known) > len(parts):
        rest = len(known) - len(parts)
        words = "1 more error is" if rest == 1 else f"{rest} more errors are"
        parts.append(type(known[0])(f"{words} not shown", next_step="Correct those above first."))
    whole = type(known[0])(
        "\n".join(error.message for error in parts),
        next_step="\n".join(dict.fromkeys(error.next_step for error in parts)),
    )
    whole.parts = tuple(parts)
    raise whole


class UsageError(RemedyError):
    """What the user typed or wrote cannot be used."""

    exit_code = 2


class InventoryError(UsageError):
    """The inventory cannot be read or does not make sense."""


class SpecError(UsageError):
    """``remedy.yaml`` cannot be read or does not make sense."""


class PlanFileError(UsageError):
    """A plan file cannot be read, or is of a version this remedy does not know.

    Args:
        message: as for every error; ``next_step``, too.
        inventory: that the file names, as it is typed; "" where it names none.
    """

    def __init__(self, message: str, *, next_step: str = "", inventory: str = "") -> None:
        super().__init__(message, next_step=next_step)
        self.inventory = inventory


class OutputError(RemedyError):
    """Standard output cannot be written, as on a full disk; a reader that went away is no such error."""


class RefusedError(RemedyError):
    """remedy will not go on, because going on could harm."""

    exit_code = 4


class HostKeyError(RefusedError):
    """A host's ssh key is unknown, has changed or was withdrawn."""


class ChangedKeyError(HostKeyError):
    """A host's ssh key is not the one that is known."""


class RevokedKeyError(HostKeyError):
    """A host's ssh key was withdrawn: known_hosts marks it @revoked."""


class StaleError(RefusedError):
    """A host is no longer in the state that the plan was made for."""


class LockedError(RefusedError):
    """Another run holds the host."""


class UnreachableError(RemedyError):
    """There is no connection to a host, or it broke."""

    exit_code = 5


class LaunchError(RemedyError):
    """The ranks of a proof cannot be started in the way that was asked for, so nothing can be proved."""

    exit_code = 3


class ProbeError(RemedyError):
    """A host's probe gave no answer that can be read."""


class LabError(RemedyError):
    """The lab on this machine could not do what was asked."""
