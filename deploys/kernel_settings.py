"""Kernel settings: what the kernel gives connections, processes and memory of jobs is enough.

Finds: no ports left for new connections, because all are reserved or the range is narrow; a table of tracked
connections that is full, so that new ones are dropped; launchers' ports that only root may listen on; buffers
of TCP that are too small to carry data, segments that are too short or too long for any interface, and
programs that may never send more; packets that live for fewer routers than there may be on the way to a peer;
too few processes or open files for a whole host. What makes jobs slow, or end early, is a report: short queues
of connections that wait to be taken, connections that are given up after a few losses, few maps of memory,
memory that is given only where all of it is there.

How it is judged: the values in force, with the lines that set them at boot, and those that files set at the
next boot, each against what no kernel is shipped with. A value that is right is accepted by its text. Nothing
is changed: whoever set such a value meant something by it, and `port_range` looks after the ports of
launchers.

Sources: Documentation/networking/ip-sysctl.rst, nf_conntrack-sysctl.rst, admin-guide/sysctl/{kernel,fs,vm}.rst;
inet_csk_find_open_port() in net/ipv4/inet_connection_sock.c, tcp_mtu_to_mss() and tcp_mtup_init() in
net/ipv4/tcp_output.c, tcp_stream_memory_free() in net/ipv4/tcp.c.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import Field

from remedy.causes import Cause
from remedy.deploys import _frameworks
from remedy.deploys._boot_lines import sources
from remedy.deploys._peers import Place, place_of
from remedy.firewall import spans
from remedy.firewall.ports import RANGE_KEY, RESERVED_KEY, parse_ports, reserved
from remedy.plan import FindingKind, Workbench, remedy
from remedy.probe import HostState, Names, Sysctls
from remedy.spec import SpecSection
from remedy.text import counted, is_number
from remedy.values import Unknown

CONNECTIONS = Cause(
    name="kernel-setting",
    group="Network path",
    cause="A setting of the kernel leaves no room for new connections, or loses what goes over them.",
    confirm="`sysctl KEY` of what the finding names; `nstat -az` counts what the kernel drops.",
    fix="`sysctl -w KEY=VALUE`, and the line in /etc/sysctl.d that sets it.",
    silent="connections are refused, dropped or stall, as they do behind a firewall",
)
RESOURCES = Cause(
    name="kernel-limit",
    group="Limits and memory",
    cause="A setting of the kernel gives a host fewer processes, files or maps of memory than jobs need.",
    confirm="`sysctl KEY` of what the finding names.",
    fix="`sysctl -w KEY=VALUE`, and the line in /etc/sysctl.d that sets it.",
    silent="the texts are those of a session's limits, such as Resource temporarily unavailable",
)
FEWEST_PORTS = 100
USUAL_RANGE = "32768 60999"
PRIVILEGED = "net.ipv4.ip_unprivileged_port_start"
TRACKED, MOST_TRACKED = "net.netfilter.nf_conntrack_count", "net.netfilter.nf_conntrack_max"
HOPS, FEWEST_HOPS = "net.ipv4.ip_default_ttl", 32
PROBING, FIRST_SEGMENT, LEAST_SEGMENT = (
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_base_mss",
    "net.ipv4.tcp_min_snd_mss",
)
# What carries little of what it costs; and what an interface with an MTU of 1280 does not take any more.
SHORTEST_SEGMENT, LONGEST_SEGMENT = 512, 1220
GROWS, TAKES, LEAST_TAKEN = "net.ipv4.tcp_moderate_rcvbuf", "net.ipv4.tcp_rmem", 65536
OVERCOMMIT, NEVER = "vm.overcommit_memory", "2"


class KernelSettingsSpec(SpecSection):
    """``accept``: settings that are right as they are, as findings show them."""

    accept: tuple[str, ...] = Field(
        (), examples=[["net.ipv4.ip_local_reserved_ports = 1024-65535"]]
    )


Bench = Workbench[KernelSettingsSpec]


class _Counted(dict[str, str]):
    """A number with whatever noun is asked for."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number

    def __missing__(self, noun: str) -> str:
        return counted(self._number, noun)


@dataclass(frozen=True)
class Least:
    """What a setting has to be at least.

    Args:
        key: its name.
        number: the least value.
        title: what is wrong below it, with a noun in braces for the value and what it counts.
        usual: the value that kernels start with.
        kind: how bad that is.
        cause: the cause that it is.
        at: which of several numbers counts.
    """

    key: str
    number: int
    title: str
    usual: str
    kind: FindingKind = FindingKind.BLOCKED
    cause: Cause = RESOURCES
    at: int = 0


_REPORT = FindingKind.REPORT
LEAST = (
    Least(
        TAKES, LEAST_TAKEN, "TCP takes {byte} at once, so that connections stall",
        "4096 131072 6291456", cause=CONNECTIONS, at=2,
    ),
    Least(
        "net.ipv4.tcp_wmem", 65536, "TCP sends {byte} at once, so that connections stall",
        "4096 16384 4194304", cause=CONNECTIONS, at=2,
    ),
    Least(
        "net.ipv4.tcp_mem", 4096, "all connections together may have {page} of memory",
        "190000 253000 380000",
        cause=CONNECTIONS, at=2,
    ),
    Least(
        "net.ipv4.tcp_notsent_lowat", 1, "programs that wait until they may send wait for ever",
        "4294967295", cause=CONNECTIONS,
    ),
    Least(
        "net.netfilter.nf_conntrack_tcp_timeout_established", 600,
        "a connection that is silent for {second} is forgotten, and firewalls drop what comes then", "432000",
        cause=CONNECTIONS,
    ),
    Least(
        "net.ipv4.tcp_window_scaling", 1, "TCP sends 64 KiB at once, and waits then", "1", _REPORT, CONNECTIONS
    ),
    Least("net.ipv4.tcp_sack", 1, "TCP sends everything again after a loss", "1", _REPORT, CONNECTIONS),
    Least("fs.file-max", 65536, "all processes together may have {file} open", "9223372036854775807"),
    Least("kernel.pid_max", 4096, "a host may have {process}, threads included", "4194304"),
    Least("kernel.threads-max", 4096, "a host may have {thread}", "126000"),
    Least("net.core.somaxconn", 128, "{connection} may wait to be taken, no more", "4096", _REPORT),
    Least("net.core.netdev_max_backlog", 100, "{packet} may wait for a CPU, no more", "1000", _REPORT),
    Least("net.ipv4.tcp_retries2", 5, "connections are given up after {loss} in a row", "15", _REPORT),
    Least("net.ipv4.tcp_syn_retries", 2, "a connection is tried {time} more", "6", _REPORT),
    Least(
        "net.ipv4.tcp_synack_retries", 1,
        "a new connection is answered once, and never again after a loss", "5", _REPORT,
    ),
    Least(
        "net.ipv4.tcp_max_syn_backlog", 64,
        "{connection} may wait for their third packet, no more", "512", _REPORT,
    ),
    Least("vm.max_map_count", 65530, "a process may have {map} of memory", "65530", _REPORT),
)  # fmt: skip


@dataclass(frozen=True)
class Shortage:
    """A setting that is wrong.

    Args:
        title: what it does.
        settings: the settings that do so, the first of which accepts it.
        fix: what sets it right.
        kind: how bad that is.
        cause: the cause that it is.
    """

    title: str
    settings: tuple[str, ...]
    fix: str
    kind: FindingKind = FindingKind.BLOCKED
    cause: Cause = CONNECTIONS


@remedy("Kernel settings", KernelSettingsSpec, finds=(CONNECTIONS, RESOURCES), order=90)
def kernel_settings(bench: Bench) -> None:
    """Look for settings that leave jobs too little, now or after the next boot."""
    sysctls = bench.known(bench.host.sysctls)
    place = place_of(bench.fleet, bench.host)
    known = set()
    for shortage in _faults(bench, sysctls.live, place):
        known.add(shortage.title)
        _note(bench, shortage, "", _set_at_boot(bench, sysctls, shortage))
    later = _at_boot(sysctls)
    for shortage in _faults(bench, later, place):
        keys = [setting.partition(" = ")[0] for setting in shortage.settings]
        lines = [line for line in map(sysctls.winner, keys) if line is not None]
        if shortage.title not in known and lines:
            places = (f"{line.path}:{line.line}: {line.key} = {line.value}" for line in lines)
            _note(bench, shortage, "after the next boot, ", tuple(places))


def _set_at_boot(bench: Bench, sysctls: Sysctls, shortage: Shortage) -> tuple[str, ...]:
    """Return the lines that set again at boot what is wrong now."""
    places: list[str] = []
    for setting in shortage.settings:
        key, _, value = setting.partition(" = ")
        line = sysctls.winner(key)
        if line is not None and line.value == value:
            places.append(f"{line.path}:{line.line}: {line.key} = {line.value}")
        if not isinstance(bench.host.mentions, Unknown):
            path = f"/proc/sys/{key.translate(str.maketrans('/.', './'))}"
            places += sources(bench.host.mentions, path, value)
    return tuple(dict.fromkeys(places))


def _at_boot(sysctls: Sysctls) -> dict[str, str]:
    """Return the settings after the next boot: those of files, and what nobody sets as it is now."""
    kept = {
        key: value
        for key, value in sysctls.live.items()
        if key not in (RANGE_KEY, RESERVED_KEY, TRACKED)
    }
    later = {RANGE_KEY: USUAL_RANGE, RESERVED_KEY: ""} if RANGE_KEY in sysctls.live else {}
    lines = sysctls.winners((*later, *kept))
    return {**later, **kept, **{key: line.value for key, line in lines.items()}}


def _note(bench: Bench, shortage: Shortage, when: str, lines: tuple[str, ...]) -> None:
    line = shortage.settings[0]
    if line in bench.settings.accept:
        return
    evidence = lines if when else (*shortage.settings, *lines)
    note = bench.report if shortage.kind is _REPORT else bench.blocked
    cure = shortage.fix
    if when:
        cure = "Remove that line, or write there what is to be"
    elif lines:
        cure = f"Remove the line that sets it at boot. {cure}"
    fix = f'{cure}; if it is right, add to kernel_settings.accept in remedy.yaml: "{line}"'
    note(f"{when}{shortage.title}", evidence, fix, label=shortage.cause.name)


def _faults(bench: Bench, values: Mapping[str, str], place: Place | None) -> Iterator[Shortage]:
    """Yield what is wrong with some settings."""
    yield from _ports_left(values)
    yield from _ports_of_root(bench, values)
    yield from _table(values)
    yield from _segments(values)
    yield from _window(values)
    for least in LEAST:
        yield from _too_little(least, values.get(least.key, ""))
    hops = values.get(HOPS, "")
    if place is not None and place.beyond and is_number(hops) and int(hops) < FEWEST_HOPS:
        title = f"packets of this host live for {counted(int(hops), 'router')}, and peers are beyond one"
        yield Shortage(title, (f"{HOPS} = {hops}",), f"Set it: sysctl -w {HOPS}=64")
    if values.get(OVERCOMMIT) == NEVER:
        title = (
            "memory is given only where all of it is there, and CUDA and shared memory ask for more"
        )
        fix = f"Set it: sysctl -w {OVERCOMMIT}=0"
        yield Shortage(title, (f"{OVERCOMMIT} = {NEVER}",), fix, _REPORT, RESOURCES)


def _ports_left(values: Mapping[str, str]) -> Iterator[Shortage]:
    """Yield that few ports are left for new connections."""
    low, _, high = values.get(RANGE_KEY, "").partition(" ")
    kept = values.get(RESERVED_KEY, "")
    try:
        span = parse_ports(f"{low}-{high}")
    except ValueError:
        return
    free = spans.minus((span,), reserved(kept))
    number = sum(last - first + 1 for first, last in free)
    if number >= FEWEST_PORTS:
        return
    settings: tuple[str, ...] = (f"{RESERVED_KEY} = {kept}", f"{RANGE_KEY} = {low} {high}")
    if span[1] - span[0] + 1 < FEWEST_PORTS:
        settings = settings[1:] if not kept else settings[::-1]
    yield Shortage(
        f"{counted(number, 'port') if number else 'no port'} of this host can be given to new connections",
        settings,
        f"Reserve fewer ports, or widen the range: sysctl -w {RESERVED_KEY}= {RANGE_KEY}='{USUAL_RANGE}'",
    )


def _ports_of_root(bench: Bench, values: Mapping[str, str]) -> Iterator[Shortage]:
    """Yield that launchers' ports are for root alone."""
    first = values.get(PRIVILEGED, "")
    needed = sorted({n.low for n in _frameworks.needs(bench.fleet, bench.host) if n.fixed})
    closed = [port for port in needed if is_number(first) and port < int(first)]
    if not closed:
        return
    as_root = _user_of(bench.host) in ("", "root")
    yield Shortage(
        f"only root may listen on {', '.join(map(str, closed))}, which launchers need",
        (f"{PRIVILEGED} = {first}",),
        f"Set it: sysctl -w {PRIVILEGED}=1024",
        _REPORT if as_root else FindingKind.BLOCKED,
    )


def _segments(values: Mapping[str, str]) -> Iterator[Shortage]:
    """Yield that TCP cuts what it sends into too short or too long segments."""
    probing, first = values.get(PROBING, "0"), values.get(FIRST_SEGMENT, "")
    if probing in ("1", "2") and is_number(first) and int(first) < SHORTEST_SEGMENT:
        always = probing == "2"
        yield Shortage(
            f"TCP {'begins with' if always else 'falls back to'} segments of {counted(int(first), 'byte')}, so "
            "that connections crawl",
            (f"{FIRST_SEGMENT} = {first}", f"{PROBING} = {probing}"),
            f"Set the usual value: sysctl -w {FIRST_SEGMENT}=1024",
            FindingKind.BLOCKED if always else _REPORT,
        )
    least = values.get(LEAST_SEGMENT, "")
    if is_number(least) and int(least) > LONGEST_SEGMENT:
        yield Shortage(
            f"TCP sends no segment shorter than {counted(int(least), 'byte')}, also where none of that length "
            "gets through",
            (f"{LEAST_SEGMENT} = {least}",),
            f"Set the usual value: sysctl -w {LEAST_SEGMENT}=48",
        )


def _window(values: Mapping[str, str]) -> Iterator[Shortage]:
    """Yield that TCP takes little at once and never comes to take more (tcp_moderate_rcvbuf)."""
    numbers = values.get(TAKES, "").split()
    start = numbers[1] if len(numbers) == 3 else ""
    if values.get(GROWS) == "0" and is_number(start) and int(start) < LEAST_TAKEN:
        yield Shortage(
            f"TCP takes {counted(int(start), 'byte')} at once and never more, so that connections crawl",
            (f"{GROWS} = 0", f"{TAKES} = {' '.join(numbers)}"),
            f"Let it grow: sysctl -w {GROWS}=1",
        )


def _user_of(host: HostState) -> str:
    """Return who runs the jobs, as far as it is known."""
    return host.names.user if isinstance(host.names, Names) else ""


def _table(values: Mapping[str, str]) -> Iterator[Shortage]:
    """Yield that the table of tracked connections is full, or nearly."""
    used, most = values.get(TRACKED, ""), values.get(MOST_TRACKED, "")
    if is_number(used) and is_number(most) and int(most) and int(used) * 20 >= int(most) * 19:
        yield Shortage(
            f"the table of tracked connections is full ({used} of {most}), so that new ones are dropped",
            (f"{MOST_TRACKED} = {most}", f"{TRACKED} = {used}"),
            f"Make it larger: sysctl -w {MOST_TRACKED}={max(262144, 4 * int(most))}; see whose they are: "
            "conntrack -L",
        )


def _too_little(least: Least, text: str) -> Iterator[Shortage]:
    """Yield that a setting is below what it has to be."""
    numbers = text.split()
    value = numbers[least.at] if len(numbers) > least.at else ""
    if is_number(value) and int(value) < least.number:
        yield Shortage(
            least.title.format_map(_Counted(int(value))),
            (f"{least.key} = {text}",),
            f"Set the usual value: sysctl -w {least.key}='{least.usual}'",
            least.kind,
            least.cause,
        )


@kernel_settings.breaks
def no_port_is_left(state: HostState) -> HostState:
    """Have a kernel that may give no port to anybody."""
    if not isinstance(state.sysctls, Sysctls):
        return state
    live = {**state.sysctls.live, RANGE_KEY: USUAL_RANGE, RESERVED_KEY: "1024-65535"}
    return state.model_copy(update={"sysctls": state.sysctls.model_copy(update={"live": live})})
