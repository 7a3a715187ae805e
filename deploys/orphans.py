"""Orphaned training processes that hold a GPU or the rendezvous port.

Cures: the next run fails with "address already in use" (EADDRINUSE) on port 29500, or finds the GPU's
memory taken, because the launcher of an earlier one lost its ssh client and runs on by itself.

No process is judged by its name. One is an orphan when it, or the process it descends from, has been
adopted by PID 1, was started from a login, has nobody left who reads its output, has no terminal in its
whole tree, and belongs to no service, container or batch job (by its control group). A job that was
detached on purpose (nohup, tmux, a log file) keeps somewhere to write to, so it is none of these: it is
reported and left alone. So is a port that somebody holds who cannot be seen. Orphans are ended only with
``end: true``: by pid and start time, first with SIGTERM, after ``grace_seconds`` with SIGKILL. That cannot
be taken back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from pydantic import Field

from remedy.deploys import _frameworks
from remedy.deploys._leftovers import Doomed, ending, moment, numbers, shared_with, shown
from remedy.firewall.ports import MEETING_PORTS
from remedy.plan import Change, Risk, Workbench, command, remedy
from remedy.probe import HostState, Listener, Process
from remedy.probe.processes import NO_READER
from remedy.spec import SpecSection
from remedy.text import counted, listed
from remedy.values import Unknown

PORT_LABEL = "master-port-in-use"
GPU_LABEL = "stale-process"

# What systemd puts what was started by ssh or at a console into; sshd's own where PAM has no pam_systemd.
_LOGIN = re.compile(
    r"/user\.slice/user-\d+\.slice/session-[^/]+\.scope|/system\.slice/(ssh|sshd|sshd@[^/]*)\.service"
)
_INITS = frozenset(("systemd", "init"))

_LIBRARY = """\
is() { # pid start: this very process lives
    stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
    set -- "$2" ${stat##*) }
    [ "$1" = "${21}" ] && [ "$2" != Z ] && [ "$2" != X ]
}
orphan() { # pid start: it lives, PID 1 is its parent and it has no terminal
    is "$1" "$2" || return 1
    set -- ${stat##*) }
    [ "$2" = 1 ] && [ "$5" = 0 ]
}
tree() { # pid: it and what descends from it, each with its start
    cat /proc/[0-9]*/stat 2>/dev/null | sed 's/^\\([0-9]*\\) (.*) /\\1 /' | awk -v root="$1" '
        { parent[$1] = $3; start[$1] = $21 }
        END {
            in_tree[root] = 1
            do {
                more = 0
                for (pid in parent)
                    if (!(pid in in_tree) && (parent[pid] in in_tree)) { in_tree[pid] = 1; more = 1 }
            } while (more)
            for (pid in in_tree) if (pid in start) print pid, start[pid]
        }'
}
all() { # any|KILL: whether any of $members lives; with KILL, each that does is killed
    found=1
    set -- "$1" $members
    how=$1
    shift
    while [ $# -gt 1 ]; do
        if is "$1" "$2"; then
            found=0
            [ "$how" != KILL ] || kill -KILL "$1"
        fi
        shift 2
    done
    return $found
}
gone_within() { # seconds
    left=$1
    while all any; do
        [ "$left" -gt 0 ] || return 1
        left=$((left - 1))
        sleep 1
    done
}
"""


Port: TypeAlias = Annotated[int, Field(ge=1, le=65535)]


class OrphansSpec(SpecSection):
    """What is done about orphans.

    ``end``: whether they are ended; without it, they are only found. ``ports``: the ports that launchers
    meet on; without it those of all launchers, and what lives is reported on those of the frameworks in use.
    ``grace_seconds``: between SIGTERM and SIGKILL.
    """

    end: bool = False
    ports: tuple[Port, ...] | None = Field(None, examples=[[29500, 29400]])
    grace_seconds: int = Field(default=10, ge=0, le=60)


@dataclass(frozen=True)
class Holding:
    """A tree of processes that holds something that training needs.

    Args:
        holder: the first of its processes that holds it.
        tree: all of it, its uppermost process below PID 1 first.
        ports: the launchers' ports that it listens on.
        gpus: the GPUs that it has a context on.
        alive: why it may be somebody's; "" for an orphan.
    """

    holder: Process
    tree: tuple[Process, ...]
    ports: tuple[int, ...]
    gpus: tuple[str, ...]
    alive: str

    @property
    def root(self) -> Process:
        """Its uppermost process below PID 1."""
        return self.tree[0]

    @property
    def what(self) -> str:
        """What it holds, in words."""
        held = [f"port {port}" for port in self.ports]
        return " and ".join([*held, *([counted(len(self.gpus), "GPU")] if self.gpus else [])])

    @property
    def label(self) -> str:
        """The cause that it is."""
        return PORT_LABEL if self.ports else GPU_LABEL


def holdings(
    host: HostState,
    processes: Sequence[Process],
    listeners: Sequence[Listener],
    ports: Sequence[int],
) -> Iterator[Holding]:
    """Yield every tree of processes that holds one of ``ports``, or a GPU."""
    by_pid = {process.pid: process for process in processes}
    held, on_gpu = _held(listeners, ports), _on_gpu(host)
    roots: dict[int, list[int]] = {}
    for pid in sorted({*held, *on_gpu}):
        if (root := _root(by_pid, pid)) is not None:
            roots.setdefault(root, []).append(pid)
    if not roots:
        return
    trees = _trees(by_pid, roots)
    for root, pids in roots.items():
        yield Holding(
            holder=by_pid[pids[0]],
            tree=trees[root],
            ports=tuple(sorted(set().union(*(held.get(pid, ()) for pid in pids)))),
            gpus=tuple(sorted(set().union(*(on_gpu.get(pid, ()) for pid in pids)))),
            alive=_alive(host, by_pid, trees[root]),
        )


def _held(listeners: Sequence[Listener], ports: Sequence[int]) -> Mapping[int, set[int]]:
    """Return which of the ports each process listens on."""
    held: dict[int, set[int]] = {}
    for listener in listeners:
        for pid in listener.holders if listener.port in ports else ():
            held.setdefault(pid, set()).add(listener.port)
    return held


def _on_gpu(host: HostState) -> Mapping[int, set[str]]:
    """Return the GPUs that each process has a context on."""
    used: dict[int, set[str]] = {}
    if not isinstance(host.gpus, Unknown) and not isinstance(host.gpus.processes, Unknown):
        for user in host.gpus.processes:
            used.setdefault(user.pid, set()).add(user.gpu)
    return used


def _root(by_pid: Mapping[int, Process], pid: int) -> int | None:
    """Return the uppermost ancestor of a process below PID 1; None where the way up is not known."""
    visited = set()
    while pid in by_pid and pid not in visited:
        if by_pid[pid].parent == 1:
            return pid
        visited.add(pid)
        pid = by_pid[pid].parent
    return None


def _trees(
    by_pid: Mapping[int, Process], roots: Mapping[int, object]
) -> Mapping[int, tuple[Process, ...]]:
    children: dict[int, list[int]] = {}
    for process in by_pid.values():
        children.setdefault(process.parent, []).append(process.pid)
    trees = {}
    for root in roots:
        members, at = [root], 0
        while at < len(members):
            members += children.get(members[at], [])
            at += 1
        trees[root] = tuple(by_pid[pid] for pid in members)
    return trees


def _alive(host: HostState, by_pid: Mapping[int, Process], tree: Sequence[Process]) -> str:
    """Return why somebody may still want a tree; "" when everything proves that nobody does."""
    root = tree[0]
    if not host.root:
        return "unknown without root: whether anybody reads its output"
    if (reason := shared_with(host)) != "":
        return reason
    if 1 not in by_pid or by_pid[1].name not in _INITS:
        return "PID 1 is no init, so it may have started it itself"
    if root.cgroup is None or not _LOGIN.fullmatch(root.cgroup):
        return f"it belongs to {root.cgroup}" if root.cgroup else "a daemon started it"
    if any(process.terminal for process in tree):
        return "it has a terminal"
    if not root.outputs:
        return "where its output goes is not known"
    if outputs := [target for target in root.outputs if not _leads_nowhere(target)]:
        return f"it writes to {outputs[0]}, so it was detached on purpose"
    return ""


def _leads_nowhere(target: str) -> bool:
    return target == NO_READER or (target.startswith("/dev/pts/") and target.endswith(" (deleted)"))


@remedy("Orphaned training processes", OrphansSpec, cures=(PORT_LABEL, GPU_LABEL), order=70)
def orphans(bench: Workbench[OrphansSpec]) -> None:
    """Find what holds GPUs and launchers' ports without an owner; plan its end where that is asked for."""
    host, settings = bench.host, bench.settings
    processes = bench.need(host.processes, "the list of processes")
    listeners = bench.need(host.listeners, "the list of listening ports")
    ended, findings = [], []
    used = settings.ports
    if used is None:
        used = _frameworks.meeting_ports(bench.fleet, host)
    # An orphan has no business on any launcher's port; a service may have one that no framework here uses.
    ports = used if settings.ports is not None else (*used, *MEETING_PORTS)
    known: set[int] = set()
    for holding in holdings(host, processes, listeners, ports):
        known.update(holding.ports)
        title = f"an orphaned process holds {holding.what}"
        if holding.alive:
            if _is_in_the_way(holding, used):
                _report_use(bench, holding)
        elif settings.end:
            findings.append(bench.drift(title, _evidence(holding), label=holding.label))
            ended.append(holding)
        else:
            fix = f"orphans.end: true in remedy.yaml, or kill {holding.root.pid}"
            fix = f"If nobody needs it: {fix}"
            bench.blocked(title, _evidence(holding), fix, label=holding.label)
    for port in sorted({listener.port for listener in listeners} & set(used) - known):
        _report_unseen(bench, port, processes, listeners)
    if ended:
        number = sum(len(holding.tree) for holding in ended)
        wait = f"gone_within {settings.grace_seconds} || {{ all KILL; gone_within 5; }}"
        bench.run(
            f"end {number} orphaned process{'es' * (number > 1)}",
            because=findings[0],
            risk=Risk.MEDIUM,
            disrupts="they are ended for good; what they have not saved is lost",
            **ending(
                "orphans",
                [_doomed(h.root) for h in ended],
                _LIBRARY,
                f"SIGTERM to pid {listed([str(h.root.pid) for h in ended])} and what descends from it, if it "
                "is the same process and still an orphan at that moment; SIGKILL to what lives after "
                f"{settings.grace_seconds} s",
                "members=",
                wait,
            ),
        )


def _is_in_the_way(holding: Holding, used: Sequence[int]) -> bool:
    """Return whether a living process is worth a line: who uses GPUs is reported elsewhere."""
    is_of_login = not holding.ports and _LOGIN.fullmatch(holding.root.cgroup or "") is not None
    return is_of_login or not set(used).isdisjoint(holding.ports)


def _report_use(bench: Workbench[OrphansSpec], holding: Holding) -> None:
    bench.report(
        f"{holding.what} in use",
        f"{_shown(holding.holder)}: not an orphan, because {holding.alive}",
        f"Wait for it to end{', or give the next run another --master-port' * bool(holding.ports)}.",
        label=holding.label,
    )


def _report_unseen(
    bench: Workbench[OrphansSpec],
    port: int,
    processes: Sequence[Process],
    listeners: Sequence[Listener],
) -> None:
    """Report a port that no tree of processes below PID 1 is known to hold: it is taken all the same."""
    pids = {pid for listener in listeners if listener.port == port for pid in listener.holders}
    holders = [process for process in processes if process.pid in pids]
    if holders:
        who = f"{_shown(holders[0])}, which does not descend from PID 1"
    elif bench.host.root:
        who = "by whom cannot be seen: the kernel, or a process of another process namespace"
    else:
        who = "by whom cannot be seen: a process of another user, and the login is not root's"
    bench.report(
        f"port {port} in use",
        who,
        f"Find it: ss -ltnp 'sport = :{port}' as root, on this host and in its containers; or give the next "
        "run another --master-port.",
        label=PORT_LABEL,
    )


def _doomed(root: Process) -> Doomed:
    pid = str(root.pid)
    test = command(["orphan", pid, str(root.started_ticks)])
    return Doomed(root.pid, test, f'members="$members $(tree {pid})"; kill -TERM {pid}')


def _evidence(holding: Holding) -> tuple[str, ...]:
    root = holding.root
    others = ", ".join(str(process.pid) for process in holding.tree[1:])
    outputs = " and ".join(dict.fromkeys(root.outputs or ()))
    origin = f"started from a login that is over ({root.cgroup})"
    return (
        f"{_shown(root)}, holds {holding.what}",
        *([f"below it: {others}"] if others else []),
        f"adopted by PID 1; {origin}; no terminal; its output goes to {outputs}",
    )


def _shown(process: Process) -> str:
    words = " ".join(process.arguments or (process.name,))
    if len(words) > 120:
        words = f"{words[:117]}..."
    since = f", started {moment(process.started_at)}" if process.started_at else ""
    return f"pid {process.pid} ({words}), uid {process.uid}{since}"


@orphans.promises
def promise(state: HostState, change: Change) -> HostState:
    """Return what the probe finds after ``change``: the trees are gone, with their ports and GPU contexts."""
    assert not isinstance(state.processes, Unknown)
    by_pid = {process.pid: process for process in state.processes}
    trees = _trees(by_pid, dict.fromkeys(numbers(change)))
    pids = {process.pid for tree in trees.values() for process in tree}
    update: dict[str, object] = {
        "processes": tuple(process for process in state.processes if process.pid not in pids)
    }
    if not isinstance(state.listeners, Unknown):
        update["listeners"] = tuple(_without(state.listeners, pids))
    gpus = state.gpus
    if not isinstance(gpus, Unknown) and not isinstance(gpus.processes, Unknown):
        users = tuple(user for user in gpus.processes if user.pid not in pids)
        update["gpus"] = gpus.model_copy(update={"processes": users})
    return state.model_copy(update=update)


def _without(listeners: Sequence[Listener], pids: Set[int]) -> Iterator[Listener]:
    """Yield what still listens once the processes ``pids`` are dead."""
    for listener in listeners:
        holders = tuple(set(listener.holders) - pids)
        if holders or not listener.holders:
            yield listener._replace(holders=holders)


@orphans.observes
def observation(state: HostState, change: Change) -> str:
    """Return the process ids of the trees, or that none of them lives."""
    assert not isinstance(state.processes, Unknown)
    return shown(change, {process.pid for process in state.processes})
