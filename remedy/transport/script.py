"""What runs on a host, and what comes back, as values."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass

from remedy.errors import RemedyError


class Root(enum.Enum):
    """Whether a script runs as root, by sudo where the ssh user is another."""

    NO = "no"
    PREFERRED = (
        "preferred"  # as the ssh user where there is no sudo: what needs root is then unknown
    )
    REQUIRED = "required"


@dataclass(frozen=True)
class Script:
    """A shell text to run on one host.

    Args:
        text: POSIX sh, given to ``sh -s``.
        deadline: seconds after which the host ends it.
        root: whether it has to run as root.
        packs: whether it packs what it prints by itself, into lines of at most $REMEDY_COLUMNS characters where
            that is set, without a carriage return.
    """

    text: str
    deadline: float
    root: Root = Root.NO
    packs: bool = False


@dataclass(frozen=True)
class Output:
    """The output of one script on one host.

    ``error`` is None when the script ran to its end by itself, whatever its exit code; ``ended_at`` is when
    that was known here, by this machine's clock (epoch nanoseconds).
    """

    host: str
    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None
    seconds: float = 0.0
    error: RemedyError | None = None
    ended_at: int = 0


@dataclass(frozen=True)
class HostEvent:
    """A host went from one stage to the next: connecting, running, done or failed.

    ``seconds``: in which the stage is over, where the host itself ends it; None where nothing bounds it here.
    """

    host: str
    stage: str
    detail: str = ""
    seconds: float | None = None


Listener = Callable[[HostEvent], None]
