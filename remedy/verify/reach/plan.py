"""Reachability: every ordered pair of hosts, on ports that training would use there.

One command a host; all run at the same time, each listening and calling all others. Which ports: two of the
range from which the target's kernel really takes them, and the launcher's. What came of it: ``ways``.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence
from random import Random

from remedy.spec.verify import PORTS
from remedy.values import Record
from remedy.verify.allreduce.plan import INTERPRETERS, given
from remedy.verify.packing import KNOCK, start

# The kernel's own default: ip(7), ip_local_port_range.
USUAL_RANGE = (32768, 60999)
# Above this many hosts they call each other group by group, each group called by one other at a time.
GROUP = 128
# Seconds: interpreters start, the last SYN is lost, and a few hundred calls a second are made.
BASE, PER_HOST, MOST = 9.0, 0.08, 120.0


class Door(Record):
    """A host as its peers see it: name, cluster address, and the ports to try there.

    Args:
        python: an interpreter that the inventory names, tried first; any Python >= 3.8 will do.
    """

    name: str
    address: str
    ports: tuple[int, ...]
    python: str | None = None


class ReachPlan(Record):
    """Who calls whom.

    Args:
        nonce: 16 hexadecimal digits, new for each run.
        doors: all hosts.
        seconds: how long each host goes on at most.
        launcher: the port among each host's that the launcher would use.
    """

    nonce: str
    doors: tuple[Door, ...]
    seconds: float
    launcher: int

    def order(self, me: int) -> list[int]:
        """Whom a host calls, in which order: its own group from the next one on, then group by group."""
        count = len(self.doors)
        groups = max(1, -(-count // GROUP))
        size = -(-count // groups)
        members = [range(at, min(at + size, count)) for at in range(0, count, size)]
        own = me // size
        turn = [one for wave in range(len(members)) for one in self._turned(members, own, wave, me)]
        return [one for one in turn if one != me]

    @staticmethod
    def _turned(members: Sequence[range], own: int, wave: int, me: int) -> list[int]:
        group = members[(own + wave) % len(members)]
        start = (me - members[own].start + 1) % len(group)
        return [*group[start:], *group[:start]]


def draw_ports(
    between: tuple[int, int], taken: Collection[int], launcher: int, random: Random
) -> tuple[int, ...]:
    """Draw the ports to try on a host: one of each half of its range, and the launcher's.

    Args:
        between: the first and the last port that its kernel gives out.
        taken: ports that are listened on, or reserved.
        launcher: the launcher's port.
        random: draws.
    """
    low, high = between
    middle = (low + high) // 2
    drawn = []
    for first, last in ((low, middle), (middle + 1, high)):
        free = [port for port in range(first, last + 1) if port not in taken and port != launcher]
        drawn += [random.choice(free)] if free else []
    return (*drawn, launcher)


def plan_reach(doors: Sequence[Door], launcher: int = PORTS[0]) -> ReachPlan:
    """Plan to try all ways between hosts."""
    seconds = min(BASE + PER_HOST * len(doors), MOST)
    return ReachPlan(
        nonce=secrets.token_hex(8), doors=tuple(doors), seconds=seconds, launcher=launcher
    )


def script(plan: ReachPlan, me: int) -> str:
    """The POSIX sh text of one host."""
    config: dict[str, object] = {
        "nonce": plan.nonce,
        "me": me,
        "seconds": plan.seconds,
        "hosts": [[door.address, list(door.ports)] for door in plan.doors],
        "order": plan.order(me),
    }
    own = plan.doors[me].python
    choices = " ".join(([given(own)] if own else []) + list(INTERPRETERS))
    end = f"REMEDY_{plan.nonce}"
    return "\n".join(
        (
            f"for python in {choices}; do",
            '  command -v "$python" >/dev/null 2>&1 && break',
            "done",
            f"exec \"$python\" -I -S - <<'{end}'",
            f"{start(('knock', 'mtu'), config, KNOCK)}{end}",
            "",
        )
    )


def script_deadline(plan: ReachPlan) -> float:
    """Seconds after which the host ends the whole script."""
    return plan.seconds + 12
