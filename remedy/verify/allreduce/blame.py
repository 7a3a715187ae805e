"""The culprit of an all-reduce that failed: from what each host saw, the strongest witness first.

A broken group makes all its members complain, most of them about the loss of others. So the witnesses are
ranked: a host that reported nothing, a rank that died by itself, an error about the host's own state, a
connection without an answer, a refusal, a rank that did not join, a name that resolves to loopback; and
only then the host that is farthest behind.
"""

from __future__ import annotations

import ipaddress
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from remedy.text import folded, listed
from remedy.verify.allreduce.answers import AgentReport, EndReport, phase_index
from remedy.verify.allreduce.engines import ENGINES
from remedy.verify.allreduce.plan import RankPlan
from remedy.verify.verdict import Culprit, culprit

# Words that torch, gloo and NCCL use when the trouble is with a peer or the way to it.
_ABOUT_PEERS = re.compile(
    r"clos|reset|refus|tim(ed|e)[ -]?out|connect|route|broken pipe|did not join|monitoredBarrier|"
    r"remote|wait|peer|ncclSystemError|ncclInternalError|DistNetwork|DistStore|heartbeat|socket|"
    r"another rank had failed|was lost",
    re.IGNORECASE,
)
# gloo, gloo/transport/tcp/address.cc: "remote=[10.0.0.2]:14766", the port in the wrong byte order.
_GLOO_ADDRESS = re.compile(r"\b(remote|local)=\[([^\]]+)\]:(\d+)")
_REFUSED = re.compile(r"refused|no route to host|unreachable|prohibited", re.IGNORECASE)
# torch's own socket: "The client socket has failed to connect to any network address of (10.0.0.1, 29500)"
_STORE_ADDRESS = re.compile(
    r"(?:network address of|connect to) \(?\[?([0-9A-Fa-f:.]+?)\]?[,:] ?(\d+)"
)
_MONITORED = re.compile(r"[Rr]anks? ([\d, ]+) failed to pass monitoredBarrier")

# How an error about the ranks of one host begins: ``onhost.engines.torch_rank``.
INSIDE = "inside this host: "
LINKS = 4
"""Links that are named with their ports; more are counted."""

_NEVER_RAN = {
    "no-python": "has no Python 3",
    "no-torch": "has no torch",
    "no-engine": "lacks what the engine needs",
    "no-address": "does not have its cluster address",
    "port-in-use": "cannot hold the rendezvous",
    "no-space": "cannot write",
    "terminated": "was stopped by a signal",
    "orphaned": "lost its connection to the controller",
}


# proc_pid_stat(5): a process in such a state when its time was up.
STUCK = {
    "T": "is stopped (SIGSTOP)",
    "t": "is held by a debugger",
    "D": "is stuck in the kernel (a device or a file system does not answer)",
}


class FailedRun(NamedTuple):
    """All that is known of a failed run."""

    plan: RankPlan
    reports: Mapping[str, AgentReport]

    def host_at(self, address: str) -> str:
        """Find the host that has this cluster address, or return the address itself."""
        for host in self.plan.hosts:
            if same_address(host.address, address):
                return host.name
        return address

    def texts(self, report: AgentReport) -> str:
        """Join all errors and last lines of the host's ranks and launcher."""
        parts = [rank.error.long for rank in report.ranks if rank.error]
        parts += [line for rank in report.ranks for line in rank.log]
        parts += report.launcher.log if report.launcher else ()
        return "\n".join(parts)


def same_address(first: str, second: str) -> bool:
    """Say whether two texts are one address, also where IPv4 comes wrapped in IPv6."""
    try:
        pair = [ipaddress.ip_address(text) for text in (first, second)]
    except ValueError:
        return first == second
    plain = [getattr(address, "ipv4_mapped", None) or address for address in pair]
    return bool(plain[0] == plain[1])


def swap_ports(text: str) -> str:
    """Put the ports that gloo prints byte-swapped right: they are what a user would open."""

    def right(match: re.Match[str]) -> str:
        port = int(match[3])
        swapped = (port & 0xFF) << 8 | port >> 8 if port < 65536 else port
        return f"{match[1]}=[{match[2]}]:{swapped}"

    return _GLOO_ADDRESS.sub(right, text)


def signal_name(number: int) -> str:
    """Name a signal as this machine does."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def missing_hosts(case: FailedRun) -> frozenset[str]:
    """Collect the hosts that a failed group itself reports as absent, or that show it by themselves."""
    missing: set[str] = set()
    for witness in (_silent, _unfit, _died, _failed_itself, _stuck, _missed, _absent):
        if named := witness(case):
            missing.update(named.hosts)
    return frozenset(missing)


def unanswered_links(case: FailedRun) -> frozenset[tuple[str, str]]:
    """Collect the links on which a host got no answer."""
    known = {host.name for host in case.plan.hosts}
    return frozenset(
        (name, peer)
        for name, report in case.reports.items()
        if report.end
        for address, _, _ in report.end.unanswered
        if (peer := case.host_at(address)) in known and peer != name
    )


def find(case: FailedRun) -> Culprit | None:
    """Name the culprit of the first witness that has one; without a host where none stands out."""
    witnesses: tuple[Callable[[FailedRun], Culprit | None], ...] = (
        _silent,
        _unfit,
        _died,
        _failed_itself,
        _stuck,
        _unanswered,
        _refused,
        _missed,
        _absent,
        _loopback,
        _behind,
    )
    return next((named for witness in witnesses if (named := witness(case))), None)


def _silent(case: FailedRun) -> Culprit | None:
    failures = {name: report.failure for name, report in case.reports.items() if report.end is None}
    if not failures:
        return None
    first, why = next(iter(failures.items()))
    return culprit(
        f"{folded(failures)} did not take part: {first}: {why.removeprefix(first + ': ')}",
        *failures,
    )


def _unfit(case: FailedRun) -> Culprit | None:
    unfit = {
        name: report.end
        for name, report in case.reports.items()
        if report.end and report.end.how in _NEVER_RAN
    }
    if not unfit:
        return None
    first = next(iter(unfit.values()))
    detail = f": {first.detail}" if first.detail else ""
    return culprit(f"{folded(unfit)} {_NEVER_RAN[first.how]}{detail}", *unfit)


def _died(case: FailedRun) -> Culprit | None:
    for name, report in case.reports.items():
        for rank in report.ranks:
            if rank.exit_code is not None and rank.exit_code < 0:
                word = signal_name(-rank.exit_code)
                after = f"after the phase {rank.phase!r}" if rank.phase else "before it began"
                return culprit(f"a rank on {name} was killed by {word} {after}", name)
    for name, report in case.reports.items():
        code = report.launcher.exit_code if report.launcher else None
        # By our own hand only where something else had ended the run.
        if code is not None and code < 0 and report.end and report.end.how == "exited":
            return culprit(f"the launcher on {name} was killed by {signal_name(-code)}", name)
    return None


def _failed_itself(case: FailedRun) -> Culprit | None:
    guilty: dict[str, str] = {}
    for name, report in case.reports.items():
        for rank in report.ranks:
            inside = rank.error and INSIDE in rank.error.text
            if rank.error and (
                inside or not _ABOUT_PEERS.search(rank.error.long or rank.error.text)
            ):
                guilty.setdefault(name, rank.error.text)
        code = report.launcher.exit_code if report.launcher else None
        started = any(rank.phase for rank in report.ranks)
        if code and not started and not _ABOUT_PEERS.search(case.texts(report)):
            last = report.launcher.log[-1:] if report.launcher else ()
            guilty.setdefault(name, f"the launcher ended with {code}: {' '.join(last)}")
    if not guilty:
        return None
    return culprit(f"{folded(guilty)} failed by itself: {next(iter(guilty.values()))}", *guilty)


def _stuck(case: FailedRun) -> Culprit | None:
    """Processes that do not run, where others do: the rest of the group only waits for these."""
    stuck = {
        name: STUCK[rank.state]
        for name, report in case.reports.items()
        for rank in report.ranks
        if rank.state in STUCK
    }
    if not stuck or len(stuck) == len(case.plan.hosts):
        return None
    return culprit(
        f"a rank on {folded(stuck)} does not run: it {next(iter(stuck.values()))}", *stuck
    )


def _unanswered(case: FailedRun) -> Culprit | None:
    pairs = {
        (name, case.host_at(address)): port
        for name, report in case.reports.items()
        if report.end
        for address, port, _ in report.end.unanswered
    }
    return _explain(case, pairs, "no answer (packets, or the answers to them, are dropped)")


def _refused(case: FailedRun) -> Culprit | None:
    pairs: dict[tuple[str, str], int] = {}
    for name, report in case.reports.items():
        # Errors alone: a refusal in a log may only say that the store was not up yet.
        texts = [rank.error.long for rank in report.ranks if rank.error]
        if report.launcher and not any(rank.phase for rank in report.ranks):
            texts += report.launcher.log
        for line in swap_ports("\n".join(texts)).splitlines():
            if not _REFUSED.search(line):
                continue
            for match in _GLOO_ADDRESS.finditer(line):
                if match[1] == "remote":
                    pairs[name, case.host_at(match[2])] = int(match[3])
            for match in _STORE_ADDRESS.finditer(line):
                pairs[name, case.host_at(match[1])] = int(match[2])
    return _explain(case, pairs, "refused (by a firewall, or no listener)")


def _explain(case: FailedRun, pairs: Mapping[tuple[str, str], int], ending: str) -> Culprit | None:
    """Name a host when all the failed links share it, else the hosts of the links themselves."""
    known = {host.name for host in case.plan.hosts}
    pairs = {pair: port for pair, port in pairs.items() if pair[1] in known and pair[0] != pair[1]}
    if not pairs:
        return None
    links = [f"{source} -> {target} port {port}" for (source, target), port in pairs.items()]
    text = f"{listed(links, LINKS)}: {ending}"
    counted = Counter(host for pair in pairs for host in pair)
    most, often = counted.most_common(1)[0]
    if len(pairs) > 1 and often == len(pairs):
        return culprit(f"{most} is cut off: {text}", most)
    return culprit(text, *(host for pair in pairs for host in pair))


def _loopback(case: FailedRun) -> Culprit | None:
    guilty: dict[str, str] = {}
    for name, report in case.reports.items():
        # Only where the group was being made: gloo publishes the address that its own name leads to.
        stuck = any(rank.phase == "rendezvous" for rank in report.ranks)
        address = report.end.name_address if report.end else ""
        if stuck and (address.startswith(("127.", "::1")) or "not resolve" in address):
            guilty[name] = address
    if not guilty or case.plan.backend == "nccl":
        return None
    first, address = next(iter(guilty.items()))
    how = "does not resolve" if "not resolve" in address else f"resolves to {address}"
    return culprit(
        f"{folded(guilty)}: the host's own name {how} on {first}, so its peers get a loopback address",
        *guilty,
    )


def _missed(case: FailedRun) -> Culprit | None:
    """The hosts that NCCL itself misses; those that are only behind count where none is worse off."""
    hosts = case.plan.rank_hosts
    reported = {
        rank: how
        for report in case.reports.values()
        if report.end
        for rank, how in report.end.missed
        if rank < len(hosts)
    }
    gone = {rank: how for rank, how in reported.items() if how != "behind"} or reported
    missed = dict.fromkeys(hosts[rank] for rank in sorted(gone))
    if not missed or len(missed) == len(case.plan.hosts):
        return None
    ranks = listed(f"rank {rank} {how}" for rank, how in sorted(gone.items()))
    return culprit(f"NCCL waits for {folded(missed)} (its RAS service reports: {ranks})", *missed)


def _absent(case: FailedRun) -> Culprit | None:
    hosts = case.plan.rank_hosts
    ranks: set[int] = set()
    for report in case.reports.values():
        for rank in report.ranks:
            ranks.update(rank.missing)
        for match in _MONITORED.finditer(case.texts(report)):
            ranks.update(int(number) for number in re.findall(r"\d+", match[1]))
    absent = dict.fromkeys(hosts[rank] for rank in sorted(ranks) if rank < len(hosts))
    if not absent or len(absent) == len(case.plan.hosts):
        return None
    starting = [name for name in absent if is_starting(case, case.reports[name].least_phase)]
    more = f": {_slow_start(case, starting)}" if starting else ""
    return culprit(f"{folded(absent)} did not join the others{more}", *absent)


def _behind(case: FailedRun) -> Culprit | None:
    phases = {name: report.least_phase for name, report in case.reports.items()}
    least = min(phases.values(), key=phase_index)
    behind = [name for name, phase in phases.items() if phase == least]
    word = f"the phase {least!r}" if least else "the start of a rank"
    more = f": {_slow_start(case, behind)}" if is_starting(case, least) else ""
    if len(behind) < len(phases):
        return culprit(f"{folded(behind)} came no farther than {word}{more}", *behind)
    ranks = [rank for report in case.reports.values() for rank in report.ranks]
    texts = {swap_ports(rank.error.text) if rank.error else "" for rank in ranks}
    # What all of them report is no one host's fault, and all that there is to go by.
    more = f"; each reports: {texts.pop()}" if len(texts) == 1 and "" not in texts else more
    return culprit(f"all hosts came as far as {word}, and none any farther{more}")


def is_starting(case: FailedRun, phase: str) -> bool:
    """Say whether a rank in a phase cannot meet others yet; without a sum inside its host it may be at that."""
    return phase == "" or (phase == "started" and ENGINES[case.plan.engine].inside)


def _slow_start(case: FailedRun, hosts: Iterable[str]) -> str:
    """What slow hosts were at, and what gives them more time: a cold file system is no fault of a network."""
    ends: list[EndReport] = [end for name in hosts if (end := case.reports[name].end)]
    title = ENGINES[case.plan.engine].title
    after = f" after {max(end.seconds for end in ends):.0f} s" if ends else ""
    return (
        f"{title} had not started there{after} (where that is just slow, "
        "give it more time: `verify: {deadline: SECONDS}`)"
    )
