"""Unique host names: every machine is called what the inventory calls it, now and after a reboot.

Cures: two machines with one name, so that a launcher counts them as one host and local ranks run past the
GPUs there are; a name that peers cannot know; a name that was only set until the next boot, or that
cloud-init sets back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from pyinfra.api.deploy import deploy

from remedy.apply.carry import carry_out
from remedy.deploys._cloud import DROP_INS, MAIN, cloud_setting
from remedy.plan import (
    Assessment,
    Change,
    CommandAction,
    FileAction,
    Finder,
    Finding,
    FindingKind,
    Fleet,
    Remedy,
    command,
    sha256,
)
from remedy.plan.files import blocker
from remedy.probe import File, HostState, Identity
from remedy.spec import SpecSection
from remedy.values import Unknown

NAME = "hostname"
LABEL = "duplicate-hostname"
_finding = Finder(NAME, LABEL)
STATIC = "/etc/hostname"
CLOUD_FILE = DROP_INS + "99-remedy-hostname.cfg"
CLOUD_TEXT = (
    b"# Written by remedy: the host name comes from /etc/hostname.\npreserve_hostname: true\n"
)


class HostnameSpec(SpecSection):
    """``manage``: whether remedy sets host names; without it, they are only checked."""

    manage: bool = True


def assess(fleet: Fleet, host: HostState, spec: HostnameSpec) -> Assessment:
    """Decide what has to change so that the host is called what the inventory calls it, for good."""
    if isinstance(host.identity, Unknown):
        return Assessment(
            (
                _finding(
                    host, FindingKind.UNKNOWN, "the host name is not known", (host.identity.reason,)
                ),
            )
        )
    findings = list(_wrong_names(fleet, host, host.identity))
    resets = cloud_init_resets(host)
    if resets is not None:
        findings.append(
            _finding(
                host, FindingKind.DRIFT, "cloud-init sets the host name back at boot", (resets,)
            )
        )
    if not spec.manage:
        return Assessment(
            tuple(f.model_copy(update={"kind": FindingKind.REPORT}) for f in findings)
        )
    changes: list[Change] = []
    blobs: dict[str, bytes] = {}
    for path, content, needed in (
        (STATIC, f"{host.host}\n".encode(), host.identity.static_name != host.host),
        (CLOUD_FILE, CLOUD_TEXT, resets is not None),
    ):
        if not needed:
            continue
        file = host.file(path)
        if isinstance(file, Unknown):
            findings.append(
                _finding(host, FindingKind.UNKNOWN, f"{path} could not be read", (file.reason,))
            )
            continue
        blocked = blocker(file, NAME)
        if blocked is not None:
            findings.append(blocked.on(host.host, LABEL))
            continue
        changes.append(_file_change(host, file, content, findings))
        blobs |= {sha256(data): data for data in (file.content, content)}
    if host.identity.transient_name != host.host:
        changes.append(_live_change(host, host.identity, findings))
    return Assessment(tuple(findings), tuple(changes), blobs)


def cloud_init_resets(host: HostState) -> str | None:
    """Return the setting by which cloud-init will set the name at boot; None when it will not.

    ``preserve_hostname`` decides, and its default is false (cloud-init, module set_hostname).
    """
    said = cloud_setting(host, "preserve_hostname")
    return None if said is None or said[0] is True else said[1]


def _wrong_names(fleet: Fleet, host: HostState, identity: Identity) -> Iterator[Finding]:
    wrong = {"running": identity.transient_name, "static": identity.static_name}
    for kind, name in wrong.items():
        if name == host.host:
            continue
        twins = [
            state.host
            for state in fleet.states.values()
            if state.host != host.host
            and isinstance(state.identity, Identity)
            and name.split(".")[0].lower()
            in (
                state.identity.transient_name.split(".")[0].lower(),
                state.host.split(".")[0].lower(),
            )
        ]
        if name and twins:
            title = f"the {kind} host name {name!r} is used by {len(twins)} other hosts too"
        elif not name:
            title = f"there is no {kind} host name, so it is lost at the next boot"
        else:
            title = f"the {kind} host name is {name!r}, the inventory says {host.host!r}"
        yield _finding(host, FindingKind.DRIFT, title)


def _file_change(host: HostState, file: File, content: bytes, findings: list[Finding]) -> Change:
    return Change(
        id="",
        host=host.host,
        remedy=NAME,
        title=f"write {content.decode().strip()!r} into {STATIC}"
        if file.path == STATIC
        else f"write {CLOUD_FILE}: cloud-init leaves the host name alone",
        reason=findings[0].title,
        label=LABEL,
        action=FileAction(
            path=file.path,
            real_path=file.real_path,
            before=sha256(file.content) if file.exists else None,
            after=sha256(content),
        ),
    )


def _live_change(host: HostState, identity: Identity, findings: list[Finding]) -> Change:
    return Change(
        id="",
        host=host.host,
        remedy=NAME,
        title=f"set the running host name to {host.host!r}",
        reason=findings[0].title,
        label=LABEL,
        disrupts="running programs keep the name that they read at their start",
        action=CommandAction(
            observe="uname -n",
            before=identity.transient_name,
            after=host.host,
            do=_set_name(host.host),
            undo=_set_name(identity.transient_name),
        ),
    )


def _set_name(name: str) -> str:
    """Return sh text that sets the kernel's host name, without writing /etc/hostname."""
    return (
        f"if command -v hostname >/dev/null; then {command(['hostname', name])}; "
        f"else {command(['hostnamectl', '--transient', 'set-hostname', name])}; fi"
    )


def assess_fleet(fleet: Fleet, _spec: HostnameSpec) -> tuple[Finding, ...]:
    """Find names that are different and yet collide in software that compares only a part of them."""
    return (*_short_collisions(fleet), *_prefix_collisions(fleet), *_machine_id_twins(fleet))


def _short_collisions(fleet: Fleet) -> Iterator[Finding]:
    by_short: dict[str, list[str]] = defaultdict(list)
    for name in fleet.inventory.names:
        by_short[name.split(".")[0].lower()].append(name)
    for short, names in by_short.items():
        if len(names) > 1:
            yield _finding.report(
                None,
                f"{len(names)} hosts of the inventory have the short name {short!r}",
                LABEL,
                tuple(names),
                "Launchers that cut a name at its first dot take them for one host: rename all but one.",
            )


def _prefix_collisions(fleet: Fleet) -> Iterator[Finding]:
    """Yield names of which one is another plus a hyphenated part (oneCCL pull request 221)."""
    names = {name.lower(): name for name in fleet.inventory.names}
    for lower, name in names.items():
        parts = lower.split("-")
        for cut in range(1, len(parts)):
            shorter = names.get("-".join(parts[:cut]))
            if shorter is not None:
                yield _finding.report(
                    None,
                    f"the name {shorter!r} is the beginning of {name!r}",
                    LABEL,
                    (shorter, name),
                    "Some libraries compare only as many characters as the shorter name has: rename one.",
                )


def _machine_id_twins(fleet: Fleet) -> Iterator[Finding]:
    by_id: dict[str, list[str]] = defaultdict(list)
    for state in fleet.states.values():
        if isinstance(state.identity, Identity) and state.identity.machine_id:
            by_id[state.identity.machine_id].append(state.host)
    for twins in by_id.values():
        if len(twins) > 1:
            yield _finding.report(
                None,
                f"{len(twins)} hosts have one machine-id, as cloned images do",
                LABEL,
                tuple(twins),
                "On all but one: rm /etc/machine-id && systemd-machine-id-setup, then reboot (machine-id(5)).",
            )


def promise(state: HostState, change: Change) -> HostState:
    """Return what the probe finds after ``change``: the file decides the static name, the kernel the other."""
    if isinstance(state.identity, Unknown):
        return state
    if isinstance(change.action, CommandAction):
        names = {"transient_name": change.action.after}
    else:
        file = state.file(STATIC)
        names = {} if isinstance(file, Unknown) else {"static_name": file.content.decode().strip()}
    return state.model_copy(update={"identity": state.identity.model_copy(update=names)})


REMEDY = Remedy(
    name=NAME,
    title="Unique host names",
    text=__doc__,
    cures=(LABEL,),
    spec=HostnameSpec,
    assess=assess,
    assess_fleet=assess_fleet,
    order=20,
    promise=promise,
    reads=(MAIN, DROP_INS + "*.cfg", CLOUD_FILE),
)


@deploy("Unique host names")
def hostname() -> None:
    """Give the current host its name of the inventory; for use under plain pyinfra."""
    carry_out(REMEDY.name)
