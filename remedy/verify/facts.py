"""What the probes of all hosts show together, before anything is started: the lowest rung. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median_low

from remedy.probe import HostState, Resolved
from remedy.probe.resolved import Answers
from remedy.text import folded
from remedy.values import Unknown
from remedy.verify.allreduce import limits
from remedy.verify.allreduce.plan import RankPlan
from remedy.verify.verdict import Culprit

# c10d's rendezvous drops a host whose heart-beats look 15 seconds old; three intervals of five seconds.
# Source: torch 2.13, dynamic_rendezvous.py, keep_alive_interval and keep_alive_max_attempt.
CLOCK_TOLERANCE = 10.0


@dataclass(frozen=True)
class Facts:
    """What speaks against starting.

    Args:
        culprits: what will make training fail.
        warnings: what will not, but should be known.
        nameless: links whose source resolves the target's name wrongly, with what it gets.
        limit: GB/s that the links of the slowest host can carry; None where it is not known.
        unknown: the hosts whose links' speed is not known.
    """

    culprits: tuple[Culprit, ...] = ()
    warnings: tuple[str, ...] = ()
    nameless: Mapping[tuple[str, str], str] = field(default_factory=dict)
    limit: float | None = None
    unknown: tuple[str, ...] = ()


def compare(states: Mapping[str, HostState], plan: RankPlan, meeting: Sequence[str] = ()) -> Facts:
    """Compare the hosts.

    Args:
        states: of all hosts that take part.
        plan: of the all-reduce over all of them.
        meeting: the hosts at which ranks meet, where that is not the first of the plan alone.
    """
    addresses = {host.name: host.address for host in plan.hosts}
    nameless = dict(_nameless(states, addresses))
    culprits = [*_same_names(states), *_clocks(states), *_held(states, plan, meeting)]
    by_host = limits.limits(states, plan.hosts, plan.backend)
    known = [limit for limit in by_host.values() if limit]
    return Facts(
        culprits=tuple(culprits),
        warnings=(*_warnings(states), *_joined(states, plan)),
        nameless=nameless,
        limit=min(known) if known and len(known) == len(by_host) else None,
        unknown=tuple(name for name, limit in by_host.items() if not limit),
    )


def _same_names(states: Mapping[str, HostState]) -> Iterator[Culprit]:
    by_name: dict[str, list[str]] = defaultdict(list)
    for name, state in states.items():
        if not isinstance(state.identity, Unknown):
            by_name[state.identity.transient_name].append(name)
    for word, hosts in by_name.items():
        if len(hosts) > 1:
            yield Culprit(
                name=folded(hosts),
                hosts=tuple(hosts),
                reason=f"{len(hosts)} hosts call themselves {word!r}",
            )


def _nameless(
    states: Mapping[str, HostState], addresses: Mapping[str, str]
) -> Iterator[tuple[tuple[str, str], str]]:
    wrong_alike: dict[int, list[str]] = {}
    for source, state in states.items():
        if isinstance(state.names, Unknown):
            continue
        peers = state.names.peers
        # What thousands of hosts answer alike is compared once.
        targets: Iterable[str] = addresses
        table = peers.alike if isinstance(peers, Resolved) else peers
        if isinstance(table, Answers):
            alike = wrong_alike.get(id(table))
            if alike is None:
                alike = [name for name in addresses if _is_wrong(table, name, addresses)]
                wrong_alike[id(table)] = alike
            own = peers.otherwise if isinstance(peers, Resolved) else {}
            targets = dict.fromkeys([*alike, *(name for name in own if name in addresses)])
        for target in targets:
            if target != source and _is_wrong(peers, target, addresses):
                resolved = peers[target]
                yield (
                    (source, target),
                    f"{target} is {', '.join(resolved)}" if resolved else "does not resolve",
                )


def _is_wrong(
    peers: Mapping[str, tuple[str, ...]], target: str, addresses: Mapping[str, str]
) -> bool:
    """Whether a name has another address first; one that was not asked for in time shows nothing here."""
    resolved, address = peers.get(target), addresses[target]
    return resolved is not None and ":" not in address and resolved[:1] != (address,)


def _clocks(states: Mapping[str, HostState]) -> Iterator[Culprit]:
    """Hosts whose clock is certainly away from that of most: each is known but for the time of its answer."""
    known = {}
    for name, state in states.items():
        if not isinstance(state.clock, Unknown) and state.clock.asked_at:
            clock = state.clock
            known[name] = (
                (clock.epoch_ns - clock.heard_at) / 1e9,
                (clock.epoch_ns - clock.asked_at) / 1e9,
            )
    if len(known) < 2:
        return
    low, high = (median_low(side) for side in zip(*known.values(), strict=True))
    for name, (earliest, latest) in known.items():
        away = max(earliest - high, low - latest)
        if away > CLOCK_TOLERANCE:
            side = "ahead of" if earliest > high else "behind"
            yield Culprit(
                name=name,
                hosts=(name,),
                reason=f"the clock of {name} is {away:.0f} s {side} that of most hosts: "
                "a c10d rendezvous drops it and the others go on without it",
            )


def _held(
    states: Mapping[str, HostState], plan: RankPlan, meeting: Sequence[str]
) -> Iterator[Culprit]:
    for host in meeting or (plan.hosts[0].name,):
        listeners = states[host].listeners
        holding = [] if isinstance(listeners, Unknown) else listeners
        listener = next((entry for entry in holding if entry.port == plan.port), None)
        if listener is not None:
            holder = f"process {', '.join(map(str, listener.holders))}" if listener.holders else ""
            yield Culprit(
                name=host,
                hosts=(host,),
                reason=f"the rendezvous port {plan.port} on {host} is held by "
                f"{holder or 'a process of another user'}",
            )


def _joined(states: Mapping[str, HostState], plan: RankPlan) -> Iterator[str]:
    """GPUs whose NVLinks carry less than those of another GPU in the host, or than the host's wires."""
    for host in plan.hosts:
        links = limits.nvlinks(states[host.name])
        outside = limits.wires(states[host.name], host.address, plan.backend)
        usual = max(*links.values(), outside or 0.0) if links else 0.0
        for gpu, rate in links.items():
            if rate < usual:
                yield (
                    f"{host.name}: the NVLinks of GPU {gpu} carry {rate:g} GB/s, and other links there"
                    f" {usual:g}: figures may be low"
                )


def _warnings(states: Mapping[str, HostState]) -> Iterator[str]:
    drivers: dict[str, list[str]] = defaultdict(list)
    torches: dict[str, list[str]] = defaultdict(list)
    for name, state in states.items():
        if not isinstance(state.gpus, Unknown):
            if state.gpus.driver:
                drivers[state.gpus.driver].append(name)
            if not isinstance(state.gpus.processes, Unknown) and state.gpus.processes:
                pids = ", ".join(str(process.pid) for process in state.gpus.processes[:4])
                yield f"{name}: its GPUs are in use by process {pids}: figures will be low"
        if not isinstance(state.software, Unknown):
            versions = sorted({package.version for package in state.software.versions("torch")})
            torches[" and ".join(versions) or "none"].append(name)
    for what, hosts_by_version in (("GPU drivers", drivers), ("torch versions", torches)):
        if len(hosts_by_version) > 1:
            words = [f"{version}: {folded(hosts)}" for version, hosts in hosts_by_version.items()]
            yield f"different {what}: {'; '.join(words)}"
