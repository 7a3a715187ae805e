"""Unique host names: every machine is called what the inventory calls it, now and after a reboot.

Cures: two machines with one name, so that a launcher counts them as one host and local ranks run past the
GPUs there are; a name that peers cannot know; a name that was only set until the next boot, or that
cloud-init sets back.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from remedy.deploys._cloud import DROP_INS, MAIN, cloud_setting
from remedy.plan import (
    Change,
    CommandAction,
    Fleet,
    FleetBench,
    Workbench,
    command,
    once_a_fleet,
    remedy,
)
from remedy.probe import HostState, Identity, Kernel, Sysctls
from remedy.spec import SpecSection
from remedy.text import counted, fold
from remedy.values import Unknown

STATIC = "/etc/hostname"
CLOUD_FILE = DROP_INS + "99-remedy-hostname.cfg"
CLOUD_TEXT = (
    b"# Written by remedy: the host name comes from /etc/hostname.\npreserve_hostname: true\n"
)


class HostnameSpec(SpecSection):
    """``manage``: whether remedy sets host names; without it, they are only checked."""

    manage: bool = True


@remedy(
    "Unique host names",
    HostnameSpec,
    cures=("duplicate-hostname",),
    order=20,
    reads=(MAIN, DROP_INS + "*.cfg", CLOUD_FILE),
)
def hostname(bench: Workbench[HostnameSpec]) -> None:
    """Decide what has to change so that the host is called what the inventory calls it, for good."""
    name = bench.host.host
    identity = bench.need(bench.host.identity, "the host name")
    resets = cloud_init_resets(bench.host)
    titles = list(_wrong_names(bench, identity))
    note = bench.drift if bench.settings.manage else bench.report
    findings = [note(title) for title in titles]
    if resets is not None:
        findings.append(note("cloud-init sets the host name back at boot", resets))
    for place, other in _set_at_boot(bench.host):
        if other != name:
            fix = "Take the name out of there: /etc/hostname is where it belongs."
            bench.blocked(f"after the next boot, the host name is {other!r}", place, fix)
    if not findings or not bench.settings.manage:
        return
    because = findings[0]
    if identity.transient_name != name:
        way = "by hostname, or by hostnamectl --transient where there is no such program"
        bench.run(
            f"set the running host name to {name!r}",
            because=because,
            disrupts="running programs keep the name that they read at their start",
            observe="uname -n",
            before=identity.transient_name,
            after=name,
            do=_set_name(name),
            undo=_set_name(identity.transient_name),
            does=f"gives the kernel the name {way}; {STATIC} stays as it is",
            undoes=f"gives the kernel the name {identity.transient_name!r} {way}",
        )
    if identity.static_name != name:
        content = _renamed(bench.file(STATIC).content, name)
        bench.write(STATIC, content, f"write {name!r} into {STATIC}", because=because)
    if resets is not None:
        title = f"write {CLOUD_FILE}: cloud-init leaves the host name alone"
        bench.write(CLOUD_FILE, CLOUD_TEXT, title, because=because)


def _renamed(content: bytes, name: str) -> bytes:
    """Return /etc/hostname with this name in place of the first; comments stay (hostname(5))."""
    lines = [line for line in content.splitlines() if line.strip()]
    comments = [line for line in lines if line[:1] == b"#"]
    first = next((at for at, line in enumerate(lines) if line not in comments), len(lines))
    return b"".join(line + b"\n" for line in (*lines[:first], name.encode(), *comments[first:]))


def cloud_init_resets(host: HostState) -> str | None:
    """Return the setting by which cloud-init will set the name at boot; None when it will not.

    ``preserve_hostname`` decides, and its default is false (cloud-init, module set_hostname).
    """
    setting = cloud_setting(host, "preserve_hostname")
    return None if setting is None or setting[0] is True else setting[1]


def _set_at_boot(host: HostState) -> Iterator[tuple[str, str]]:
    """Yield what sets another name than /etc/hostname at boot, and the name (systemd(1), sysctl.d(5))."""
    if isinstance(host.kernel, Kernel):
        for word in host.kernel.command_line.split():
            key, _, value = word.partition("=")
            if key == "systemd.hostname" and value:
                yield f"kernel command line: {word}", value
    if isinstance(host.sysctls, Sysctls):
        line = host.sysctls.winner("kernel.hostname")
        if line is not None:
            yield f"{line.path}:{line.line}: {line.key} = {line.value}", line.value


def _wrong_names(bench: Workbench[HostnameSpec], identity: Identity) -> Iterator[str]:
    """Yield what is wrong with the names that a host has, in words."""
    target = bench.host.host
    for kind, name in (("running", identity.transient_name), ("static", identity.static_name)):
        if name == target:
            continue
        short = _short(name)
        is_own = short in (_short(identity.transient_name), _short(target))
        twins = _carriers(bench.fleet)[short] - is_own
        if name and twins:
            yield f"the {kind} host name {name!r} is used by {counted(twins, 'other host')} too"
        elif not name:
            yield f"there is no {kind} host name, so it is lost at the next boot"
        else:
            yield f"the {kind} host name is {name!r}, the inventory says {target!r}"


@once_a_fleet
def _carriers(fleet: Fleet) -> Counter[str]:
    """Return how many hosts have each short name, as the running one or in the inventory."""
    return Counter(
        short
        for state in fleet.states.values()
        if isinstance(state.identity, Identity)
        for short in {_short(state.identity.transient_name), _short(state.host)}
    )


def _short(name: str) -> str:
    return name.split(".")[0].lower()


def _set_name(name: str) -> str:
    """Return sh text that sets the kernel's host name, without writing /etc/hostname."""
    return (
        f"if command -v hostname >/dev/null; then {command(['hostname', name])}; "
        f"else {command(['hostnamectl', '--transient', 'set-hostname', name])}; fi"
    )


@hostname.fleetwide
def collisions(bench: FleetBench[HostnameSpec]) -> None:
    """Find names that are different and yet collide in software that compares only a part of them."""
    by_short: dict[str, list[str]] = defaultdict(list)
    for name in bench.fleet.inventory.names:
        by_short[_short(name)].append(name)
    for short, names in by_short.items():
        if len(names) > 1:
            bench.report(
                f"{len(names)} hosts of the inventory have the short name {short!r}",
                names,
                "Launchers that cut a name at its first dot take them for one host: rename all but one.",
            )
    for shorter, name in _prefixes(bench.fleet.inventory.names):
        bench.report(
            f"the name {shorter!r} is the beginning of {name!r}",
            (shorter, name),
            "Some libraries compare only as many characters as the shorter name has: rename one.",
        )
    by_id: dict[str, list[str]] = defaultdict(list)
    by_boot: dict[str, list[str]] = defaultdict(list)
    for state in bench.fleet.states.values():
        if isinstance(state.identity, Identity):
            by_id[state.identity.machine_id].append(state.host)
            by_boot[state.identity.boot_id].append(state.host)
    by_id.pop("", None)
    by_boot.pop("", None)
    for hosts in by_boot.values():
        if len(hosts) > 1:
            bench.report(
                f"{fold(hosts)} run on one machine: they have one boot-id, as its containers do",
                hosts,
                "No test between them says anything of a network, so nothing is proved by them: give the "
                "inventory one host of each machine.",
            )
    for twins in by_id.values():
        if len(twins) > 1:
            bench.report(
                f"{len(twins)} hosts have one machine-id, as cloned images do",
                twins,
                "On all but one: rm /etc/machine-id && systemd-machine-id-setup, then reboot (machine-id(5)).",
            )


def _prefixes(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each name that another one, with a hyphen after it, begins with (oneCCL pull request 221)."""
    by_lower = {name.lower(): name for name in names}
    for lower, name in by_lower.items():
        parts = lower.split("-")
        for cut in range(1, len(parts)):
            shorter = by_lower.get("-".join(parts[:cut]))
            if shorter is not None:
                yield shorter, name


@hostname.promises
def promise(state: HostState, change: Change) -> HostState:
    """Return what the probe finds after ``change``: the file decides the static name, the kernel the other."""
    assert isinstance(state.identity, Identity)
    if isinstance(change.action, CommandAction):
        names = {"transient_name": change.action.after}
    else:
        file = state.file(STATIC)
        names = {} if isinstance(file, Unknown) else {"static_name": file.content.decode().strip()}
    return state.model_copy(update={"identity": state.identity.model_copy(update=names)})


@hostname.observes
def observation(state: HostState, _change: Change) -> str:
    """Return the kernel's host name."""
    assert isinstance(state.identity, Identity)
    return state.identity.transient_name
