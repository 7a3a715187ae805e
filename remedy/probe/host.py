"""Who the host is: names, boot, kernel, the session that the probe ran in, its limits and its environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from remedy.probe.frames import NoAnswerError, Sections, fact
from remedy.values import Fact, Record

UNLIMITED = -1
"""A limit that is none (getrlimit(2) RLIM_INFINITY)."""

_LIMIT_NAMES = {
    "Max locked memory": "memlock",
    "Max open files": "nofile",
    "Max stack size": "stack",
    "Max processes": "nproc",
    "Max core file size": "core",
    "Max address space": "as",
    "Max msgqueue size": "msgqueue",
    "Max realtime priority": "rtprio",
}


class Clock(Record):
    """The host's wall clock (``date``) and uptime, read at the same moment at the start of the probe.

    By the controller's clock that moment was after ``asked_at`` and before ``heard_at`` (epoch nanoseconds);
    both are 0 when the controller did not note the time.
    """

    epoch_ns: int
    uptime: float
    asked_at: int = 0
    heard_at: int = 0


class Identity(Record):
    """Who the host says it is.

    ``static_name`` is /etc/hostname's, "" where there is none; ``transient_name`` the kernel's (uname -n).
    ``fqdn`` is the canonical name of its own name as the resolver gives it, "" where it does not resolve.
    ``booted_at`` is the epoch second of the start of PID 1, give or take one, 0 where it is not known.
    ``virtualization`` is systemd-detect-virt's word ("none", "kvm", "docker", ...), "" where it is not known;
    ``cloud_init`` whether cloud-init will run at the next boot. Sources: hostname(5), hostnamectl(1),
    machine-id(5), os-release(5).
    """

    static_name: str
    transient_name: str
    fqdn: str
    machine_id: str
    boot_id: str
    booted_at: int
    os_id: str
    os_version: str
    kernel: str
    virtualization: str
    cloud_init: Fact[bool]
    hardware: str = ""


class Kernel(Record):
    """The running kernel and the machine; memory in bytes, CPUs and NUMA nodes as lists of ranges."""

    command_line: str
    modules: frozenset[str]
    memory: int
    cpus: str
    numa_nodes: str
    transparent_hugepages: str


class Session(Record):
    """The session of the probe: home directories (the user's first), PATH, and which programs are there."""

    uid: int
    homes: tuple[str, ...]
    path: str
    programs: Mapping[str, str]
    present: frozenset[str]

    def has(self, program: str) -> bool:
        """Return whether ``program`` (one of ``sources.PROGRAMS``) is installed."""
        return program in self.programs


class Limit(NamedTuple):
    """A resource limit of this session, in the unit of getrlimit(2); ``UNLIMITED`` where there is none."""

    soft: int
    hard: int


class Unit(Record):
    """A systemd service (systemctl(1)).

    ``load`` is "loaded", "masked" or "not-found"; ``active`` "active" or "inactive", a one-shot service such as
    ufw's being active after it has run; ``enabled`` tells of the next boot: "enabled", "static" (always),
    "disabled" or "masked". ``memlock`` (bytes) and ``nofile`` are the limits of what it starts, ``None`` where
    they were not asked for.
    """

    name: str
    load: str
    active: str
    enabled: str
    memlock: int | None = None
    nofile: int | None = None

    @property
    def running(self) -> bool:
        """Return whether it is active now."""
        return self.active == "active"


def parse_clock(sections: Sections, asked_at: int = 0, heard_at: int = 0) -> Clock:
    """Read section ``clock``: ``date +%s.%N``; busybox has whole seconds only.

    Args:
        sections: the probe's.
        asked_at: when the controller asked, by its own clock (epoch nanoseconds); 0: it did not note it.
        heard_at: when it had the whole answer, by the same clock; 0: it did not note it.
    """
    seconds, _, fraction = sections.text("clock").strip().partition(".")
    nanoseconds = int(fraction) if len(fraction) == 9 and fraction.isdigit() else 0
    began = sections.found["clock"].began
    # The host has worked since then, by its own stopwatch: so it was at least that long ago.
    since = max(section.ended for section in sections.found.values()) - began
    return Clock(
        epoch_ns=int(seconds) * 10**9 + nanoseconds,
        uptime=began,
        asked_at=asked_at if heard_at else 0,
        heard_at=heard_at - int(since * 1e9) if asked_at and heard_at else 0,
    )


def parse_session(sections: Sections) -> Session:
    """Read section ``session``: a word and its value a line."""
    homes, path, programs, present = [], "", {}, set()
    for line in sections.text("session").splitlines():
        word, _, value = line.partition(" ")
        if word == "home":
            homes.append(value)
        elif word == "path":
            path = value
        elif word == "program":
            name, _, where = value.partition(" ")
            programs[name] = where
        elif word == "present":
            present.add(value)
    return Session(
        uid=effective_uid(sections),
        homes=tuple(dict.fromkeys(homes)),
        path=path,
        programs=programs,
        present=frozenset(present),
    )


def effective_uid(sections: Sections) -> int:
    """Return the user id that the probe ran as (proc_pid_status(5))."""
    for line in sections.lines("kernel")["/proc/self/status"]:
        if line.startswith("Uid:"):
            return int(line.split()[2])
    raise NoAnswerError("the host did not say who the probe ran as")


def parse_identity(
    sections: Sections, booted_at: int, files: Mapping[str, str], fqdn: str
) -> Identity:
    """Put together who the host is.

    Args:
        sections: the probe's.
        booted_at: epoch second of the start of PID 1.
        files: text of /etc/hostname, /etc/machine-id and /etc/os-release, "" where there is none.
        fqdn: the canonical name of the host's own name.
    """
    lines = sections.lines("kernel")
    release = _assignments(files["/etc/os-release"])
    static = [line.strip() for line in files["/etc/hostname"].splitlines()]
    return Identity(
        static_name=next((line for line in static if line and not line.startswith("#")), ""),
        transient_name=_first(lines, "/proc/sys/kernel/hostname"),
        fqdn=fqdn,
        machine_id=files["/etc/machine-id"].strip(),
        boot_id=_first(lines, "/proc/sys/kernel/random/boot_id"),
        booted_at=booted_at,
        os_id=release.get("ID", ""),
        os_version=release.get("VERSION_ID", ""),
        kernel=_first(lines, "/proc/sys/kernel/osrelease"),
        virtualization=_virtualization(sections),
        cloud_init=fact(lambda: _cloud_init(sections)),
        hardware=" ".join(
            filter(
                None,
                (
                    _first(lines, "/sys/class/dmi/id/sys_vendor"),
                    _first(lines, "/sys/class/dmi/id/product_name"),
                ),
            )
        ),
    )


def parse_kernel(sections: Sections) -> Kernel:
    """Read what the kernel says of itself and the machine."""
    lines = sections.lines("kernel")
    memory = next(
        (line for line in lines["/proc/meminfo"] if line.startswith("MemTotal:")), "MemTotal: 0 kB"
    )
    thp = _first(lines, "/sys/kernel/mm/transparent_hugepage/enabled")
    return Kernel(
        command_line=_first(lines, "/proc/cmdline"),
        modules=frozenset(line.partition(" ")[0] for line in lines.get("/proc/modules", ())),
        memory=int(memory.split()[1]) * 1024,
        cpus=_first(lines, "/sys/devices/system/cpu/online"),
        numa_nodes=_first(lines, "/sys/devices/system/node/online"),
        transparent_hugepages=thp.partition("[")[2].partition("]")[0],
    )


def parse_limits(sections: Sections) -> Mapping[str, Limit]:
    """Read /proc/self/limits: the limits of what this ssh session starts, in bytes or numbers of things."""
    limits = {}
    for line in sections.lines("kernel")["/proc/self/limits"]:
        name = _LIMIT_NAMES.get(line[:26].strip())
        if name:
            soft, hard = (
                UNLIMITED if word == "unlimited" else int(word) for word in line[26:].split()[:2]
            )
            limits[name] = Limit(soft, hard)
    return limits


def parse_environment(sections: Sections) -> Mapping[str, str]:
    """Read section ``environment``: the variables that a command over ssh sees; secrets are "<redacted>"."""
    pairs = (line.partition("=") for line in sections.text("environment").splitlines())
    return {name: value for name, equals, value in pairs if equals}


def parse_units(sections: Sections) -> Mapping[str, Unit]:
    """Read section ``units``: a line a service, a line a link that starts one at boot, ``systemctl show``.

    A service that is only another name for one of the others is left out.
    """
    rows: list[list[str]] = []
    wanted: dict[str, str] = {}
    limits: dict[str, dict[str, str]] = {}
    shown: dict[str, str] = {}
    for line in sections.text("units").splitlines():
        words = line.split()
        if len(words) == 4 and words[0] == "unit":
            rows.append(words[1:])
        elif len(words) == 2 and words[0] == "wanted":
            name = words[1].rpartition("/")[2]
            if wanted.get(name) != "enabled":
                wanted[name] = "static" if words[1].startswith("/usr/lib/") else "enabled"
        else:
            key, equals, value = line.partition("=")
            if key == "Id":
                shown = limits.setdefault(value, {})
            elif equals:
                shown[key] = value
    return {
        name: Unit(
            name=name,
            load=load,
            active=active,
            enabled="masked" if load == "masked" else wanted.get(name, "disabled"),
            memlock=_unit_limit(limits.get(name, {}).get("LimitMEMLOCK")),
            nofile=_unit_limit(limits.get(name, {}).get("LimitNOFILE")),
        )
        for name, load, active in rows
        if load != "alias"
    }


def _unit_limit(text: str | None) -> int | None:
    if text is None:
        return None
    return int(text) if text.isdigit() and int(text) < 2**64 - 1 else UNLIMITED


def _virtualization(sections: Sections) -> str:
    try:
        return sections.text("virtualization").strip()
    except NoAnswerError:
        return ""


def _cloud_init(sections: Sections) -> bool:
    session = parse_session(sections)
    installed = session.has("cloud-init") or "/etc/cloud/cloud.cfg" in session.present
    return installed and not session.present & {
        "/etc/cloud/cloud-init.disabled",
        "/run/cloud-init/disabled",
    }


def _assignments(text: str) -> dict[str, str]:
    pairs = (line.strip().partition("=") for line in text.splitlines() if not line.startswith("#"))
    return {name: value.strip("\"'") for name, equals, value in pairs if equals}


def _first(lines: Mapping[str, list[str]], path: str) -> str:
    found = lines.get(path)
    return found[0].strip() if found else ""
