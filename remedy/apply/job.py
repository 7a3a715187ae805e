"""What a script on a host is made for: the run, and how the connection is guarded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from remedy.transport import Output, Script


@dataclass(frozen=True)
class Once:
    """A plan that serves once on each host: the host keeps its digest.

    Args:
        digest: of the whole plan; "" where nothing is kept.
        earlier: the runs that began to carry it out, and that this run resumes.
    """

    digest: str = ""
    earlier: tuple[str, ...] = ()


NOT_KEPT = Once()


@dataclass(frozen=True)
class Job:
    """What a script is rendered for.

    Args:
        run: the run's id, which names the folder of receipts on the host.
        nonce: marks the script's own lines among whatever else a host prints.
        by: who runs it, user@machine.
        head: of the controller's journal, for the host to keep; "" for none.
        keep_days: after which the host forgets what taking a run back needs; None for never.
        once: the plan that serves once on each host.
    """

    run: str
    nonce: str
    by: str
    head: str = ""
    keep_days: int | None = None
    once: Once = NOT_KEPT


@dataclass(frozen=True)
class Guard:
    """How a change that can cut the connection is guarded.

    Args:
        seconds: after which the host takes it back unless a new connection confirmed it; more than
            two attempts to connect need.
        needs_systemd: whether a host without systemd, where a reboot is not covered, is refused.
    """

    seconds: int = 60
    needs_systemd: bool = False


DEFAULT_GUARD = Guard()


@dataclass(frozen=True)
class SecondProbe:
    """The probe of a host that was changed, in the same command as the confirmation of its changes.

    Args:
        script: the probe.
        take: is called with the output of a host that was confirmed, and when it was asked, by this machine's
            clock (epoch nanoseconds).
    """

    script: Script
    take: Callable[[Output, int], None]
