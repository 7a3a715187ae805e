"""What is known of a fault of the lab: what it does, how a repair ends, and what the log of a job shows of it.

All of it stands where the fault is declared, and nowhere else: the tests that walk through all faults, their
page and the corpus of logs read it there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from remedy.lab.host import Host

Inject: TypeAlias = Callable[[Host], None]


@dataclass(frozen=True)
class Repair:
    """How ``remedy apply`` ends on a host with a fault.

    Args:
        words: what it has to print where only a user can put the host right, alternatives with ``|`` between
            them; "" where the host is repaired.
        is_reachable: whether a login to the host comes to its end.
    """

    words: str = ""
    is_reachable: bool = True


REPAIRED = Repair()


def by_hand(words: str) -> Repair:
    """Return the end on a host that its user has to put right, and is told so in these words."""
    return Repair(words)


def out_of_reach(words: str) -> Repair:
    """Return the end on a host that cannot be read, with the words that say why."""
    return Repair(words, is_reachable=False)


@dataclass(frozen=True)
class JobLog:
    """What the corpus of logs holds of a job under a fault: torch with gloo, on two hosts, the second broken.

    Args:
        label: the cause in its log; "healthy" where the job runs as without the fault; "" without a log.
        secondary: a cause that the log shows as well.
        absence: why there is no log.
    """

    label: str = ""
    secondary: str = ""
    absence: str = ""


HEALTHY = JobLog("healthy")


def no_log(reason: str) -> JobLog:
    """Return that the corpus has no log, and why."""
    return JobLog(absence=reason)


LIKE_A_FIREWALL = no_log(
    "its words are those of a firewall that drops or rejects, which the logs lab-firewall-* hold"
)
WAY_BY_SSH = no_log("a job runs as before; it is the way by ssh that is stuck")
NEXT_BOOT = no_log("a job runs as before; it is the next boot that is wrong")
LATER = no_log("a job runs as before; it is a later time at which something is changed")


@dataclass(frozen=True)
class LabFault:
    """Something that can be broken.

    Args:
        name: how users call it.
        text: what it does, one line.
        inject: breaks a host.
        repair: how ``remedy apply`` ends on the host; None where nobody has said.
        log: what the corpus of logs holds of it; None where nobody has said.
        harmless: why nothing needs to be reported of it on a host of the lab; "" where something does.
        console: what a command on the host's console has to show, where no session can be had; "" elsewhere.
        is_slow: whether each check of the host takes twenty seconds.
        order: of several faults of one host the higher come later, since others cannot be injected after them.
    """

    name: str
    text: str
    inject: Inject
    repair: Repair | None = None
    log: JobLog | None = None
    harmless: str = ""
    console: str = ""
    is_slow: bool = False
    order: int = 0

    @property
    def gaps(self) -> tuple[str, ...]:
        """What is not known of it, one sentence each."""
        missing = []
        if self.repair is None:
            missing.append(
                f"{self.name}: how does `remedy apply` end under it? Say @fault(..., repair=REPAIRED), or "
                'by_hand("words it has to print"), or out_of_reach("words")'
            )
        if self.log is None:
            missing.append(
                f"{self.name}: what does the log of a job show of it? Record one in tests/diagnose/corpus "
                'and say @fault(..., log=HEALTHY) or JobLog("cause"), or say log=no_log("the reason")'
            )
        return tuple(missing)
