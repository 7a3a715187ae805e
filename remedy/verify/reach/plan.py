"""Reachability: ordered pairs of hosts, on ports that training would use there; ``calls`` says which pairs.

One command a host; all run at the same time, each listening and calling all others. Which ports: two of the
range from which the target's kernel really takes them, one of each further range that the engine's own
framework listens on, and the launcher's.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence
from functools import cached_property
from random import Random, SystemRandom

from remedy.firewall import spans
from remedy.firewall.ports import ENGINES, RESERVED_KEY, kernel_range, needs_of, reserved
from remedy.probe import HostState
from remedy.spec import EngineName
from remedy.spec.verify import PORTS
from remedy.values import Record, Unknown
from remedy.verify.hosts import Participants
from remedy.verify.onhost.knock import MARK
from remedy.verify.onhost.mtu import PEERS
from remedy.verify.packing import KNOCK, start
from remedy.verify.reach.calls import GROUP, Calls
from remedy.verify.scripts import INTERPRETERS, interpreter_text, interpreter_word

# The kernel's own default: ip(7), ip_local_port_range.
USUAL_RANGE = (32768, 60999)
# Seconds. The second SYN is sent after one, the third after three (RFC 6298, section 2): three were lost. What
# answers may be busy with all the others.
CONNECT, ANSWER = 3.5, 5.0
# Connections under way at a time; with as many coming in, well below 1,024 descriptors.
FLIGHT = 192
# Seconds after which an interpreter that has said nothing is given up.
INTERPRETER = 8
# Seconds: interpreters start, the last SYN is lost, and a few hundred calls a second are made.
BASE, PER_HOST, MOST = 9.0, 0.08, 120.0
# More for each host above ``GROUP``: the controller opens sessions and sends scripts one after the other, and
# the first hosts have to be there still when the last ones begin.
STARTING = 0.02


_TEST = "import sys; print('fit' if sys.version_info >= (3, 8) else 'old')"


class ReachHost(Record):
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
        hosts: all of them.
        seconds: how long each host goes on at most.
        launcher: the port among each host's that the launcher would use.
    """

    nonce: str
    hosts: tuple[ReachHost, ...]
    seconds: float
    launcher: int

    @cached_property
    def calls(self) -> Calls:
        """Who calls whom."""
        return Calls(len(self.hosts), self.nonce)

    def order(self, me: int) -> list[int]:
        """List the numbers of those whom a host calls, in which order."""
        return self.calls.order(me)


def reach_hosts(
    participants: Participants, launcher: int, engine: EngineName = "torch"
) -> list[ReachHost]:
    """Describe the hosts as their peers see them, each with ports of its own range.

    Args:
        participants: the hosts, with what the probe read there.
        launcher: the launcher's port.
        engine: what will run over these ports.
    """
    random = SystemRandom()
    hosts = []
    for host in participants.hosts:
        between, taken = kernel_ports(participants.states.get(host.name))
        ports = draw_ports(between, taken, launcher, random)
        more = engine_ports(engine, between, {*taken, *ports}, random)
        hosts.append(
            ReachHost(
                name=host.name, address=host.address, ports=(*more, *ports), python=host.python
            )
        )
    return hosts


def engine_ports(
    engine: EngineName, between: tuple[int, int], reserved: Collection[int], random: Random
) -> tuple[int, ...]:
    """Draw a port of each range beyond the kernel's from which an engine's ranks take one.

    Args:
        engine: what runs.
        between: the first and the last port that the host's kernel gives out.
        reserved: ports that cannot be tried.
        random: draws.
    """
    framework = ENGINES.get(engine)
    drawn = []
    for need in needs_of([framework] if framework else []):
        beyond = spans.minus(((need.low, need.high),), (between,))
        free = [p for low, high in beyond for p in range(low, high + 1) if p not in reserved]
        if need.low < need.high and not need.meeting and free:
            drawn.append(random.choice(free))
    return tuple(drawn)


def kernel_ports(state: HostState | None) -> tuple[tuple[int, int], set[int]]:
    """Return the range from which a host's kernel takes ports, and the ports that are taken.

    Args:
        state: of the host; None where it could not be read.
    """
    between, taken = USUAL_RANGE, set[int]()
    if state is not None and not isinstance(state.sysctls, Unknown):
        between = kernel_range(state.sysctls) or between
        kept = reserved(state.sysctls.live.get(RESERVED_KEY, ""))
        taken.update(port for low, high in kept for port in range(low, high + 1))
    if state is not None and not isinstance(state.listeners, Unknown):
        taken |= {listener.port for listener in state.listeners}
    return between, taken


def draw_ports(
    between: tuple[int, int], reserved: Collection[int], launcher: int, random: Random
) -> tuple[int, ...]:
    """Draw the ports to try on a host: one of each half of its range, and the launcher's.

    Args:
        between: the first and the last port that its kernel gives out.
        reserved: ports that are listened on, or reserved.
        launcher: the launcher's port.
        random: draws.
    """
    low, high = between
    middle = (low + high) // 2
    drawn = []
    for first, last in ((low, middle), (middle + 1, high)):
        free = [
            port for port in range(first, last + 1) if port not in reserved and port != launcher
        ]
        drawn += [random.choice(free)] if free else []
    return (*drawn, launcher)


def plan_reach(hosts: Sequence[ReachHost], launcher: int = PORTS[0]) -> ReachPlan:
    """Plan to try the links between hosts."""
    nonce = secrets.token_hex(8)
    busiest = len(Calls(len(hosts), nonce).order(0)) + 1
    seconds = min(BASE + PER_HOST * busiest, MOST) + STARTING * max(0, len(hosts) - GROUP)
    return ReachPlan(nonce=nonce, hosts=tuple(hosts), seconds=seconds, launcher=launcher)


def script(plan: ReachPlan, me: int) -> str:
    """Render the POSIX sh text of one host."""
    host = plan.hosts[me]
    config: dict[str, object] = {
        "nonce": plan.nonce,
        "me": me,
        "seconds": plan.seconds,
        "address": host.address,
        "ports": list(host.ports),
        "calls": [
            [peer, plan.hosts[peer].address, list(plan.hosts[peer].ports)]
            for peer in plan.order(me)
        ],
        "visits": dict.fromkeys(map(str, host.ports), plan.calls.callers[me]),
        "connect": CONNECT,
        "answer": ANSWER,
        "flight": FLIGHT,
        "echo": PEERS,
        "timed": False,
    }
    return knock_text(config, host.python)


def knock_text(config: dict[str, object], python: str | None, patience: float = 1.0) -> str:
    """Render the POSIX sh text that runs ``onhost.knock``.

    Args:
        config: what it is given.
        python: an interpreter to try first; None for the usual ones.
        patience: by which the time is multiplied that an interpreter may take to start.
    """
    nonce = config["nonce"]
    choices = " ".join(([interpreter_word(python)] if python else []) + list(INTERPRETERS))
    end = f"REMEDY_{nonce}"
    seconds = round(INTERPRETER * patience)
    return "\n".join(
        (
            interpreter_text(choices, _TEST, "fit", "-I -S", seconds),
            '[ -n "$found" ] || {',
            f'  printf \'%s%s"}}\\n\' \'{MARK} {nonce} {{"lacks": "\' "$why"',
            "  exit 0",
            "}",
            f"exec \"$found\" -I -S - <<'{end}'",
            f"{start(('knock', 'mtu'), config, KNOCK)}{end}",
            "",
        )
    )


def script_deadline(plan: ReachPlan) -> float:
    """Return seconds after which the host ends the whole script."""
    return plan.seconds + 12
