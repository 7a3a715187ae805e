"""Ports for new sockets: the same range on all hosts, and no launcher's port among them.

Cures: a launcher that now and then finds its port in use, because the kernel gave it to an outgoing connection
(29500 lies in a range that somebody widened to 1024-65535; HCCL's 60000-60031 lie in the default one); a range
that is narrower on one host than what the firewalls let in.

The range is left alone unless the spec names one. Launchers' ports that lie inside a host's range are reserved:
they are added to what is reserved already, never put in its place. A reserved port can still be bound by
whoever asks for exactly that one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator

from remedy.deploys._sysctl import after_live, keys_of, live_action
from remedy.deploys.firewall import FirewallSpec
from remedy.edit import sysctl
from remedy.firewall import spans
from remedy.firewall.ports import FRAMEWORKS, RANGE_KEY, VERIFICATION, Need, parse_ports
from remedy.plan import (
    Assessment,
    Change,
    CommandAction,
    FileAction,
    Finder,
    Finding,
    FindingKind,
    Fleet,
    sha256,
)
from remedy.plan.files import blocker
from remedy.plan.legacy import old_remedy
from remedy.probe import HostState, Sysctls
from remedy.spec import SpecSection
from remedy.values import Unknown

NAME = "port_range"
_finding = Finder(NAME, "firewall-ports")
PATH = "/etc/sysctl.d/90-remedy-ports.conf"
RESERVED_KEY = "net.ipv4.ip_local_reserved_ports"
WHY = "ports for new sockets, and those that launchers listen on"
FEWEST = 100


def _bounds(value: object) -> object:
    return list(parse_ports(value)) if isinstance(value, str) else value


def _wide_enough(bounds: tuple[int, int]) -> tuple[int, int]:
    low, high = bounds
    if not 1024 <= low <= high <= 65535:
        raise ValueError(f"a range lies between 1024 and 65535, the lower end first: {low}-{high}")
    if high - low + 1 < FEWEST:
        raise ValueError(f"{low}-{high} are only {high - low + 1} ports, fewer than {FEWEST}")
    return bounds


def _ports(text: str) -> str:
    parse_ports(text)
    return text


class PortRangeSpec(SpecSection):
    """``range``: ports for new sockets on all hosts ("50000-60999"); None leaves each host its own.

    ``reserve``: ports that are never given to a new socket by chance, beyond those of the launchers in use
    (``firewall.frameworks``) that lie in the range.
    """

    range: Annotated[
        tuple[int, int] | None,
        BeforeValidator(_bounds),
        AfterValidator(lambda found: None if found is None else _wide_enough(found)),
    ] = None
    reserve: tuple[Annotated[str, BeforeValidator(str), AfterValidator(_ports)], ...] = ()


def wanted_settings(fleet: Fleet, host: Sysctls, spec: PortRangeSpec) -> dict[str, str]:
    """Return the settings that a host shall have, now and at boot; none where nothing is asked or wrong."""
    found = {}
    if spec.range is not None:
        found[RANGE_KEY] = f"{spec.range[0]} {spec.range[1]}"
    needed = spans.merge([*_at_risk(fleet, host, spec), *map(parse_ports, spec.reserve)])
    if needed:
        own = [_reserved(host.live.get(RESERVED_KEY, ""))]
        winner = host.winner(RESERVED_KEY)
        own += [] if winner is None else [_reserved(winner.value)]
        merged = spans.merge([*needed, *(span for one in own for span in one)])
        found[RESERVED_KEY] = ",".join(spans.port_texts(merged, "-"))
    return found


def _at_risk(fleet: Fleet, host: Sysctls, spec: PortRangeSpec) -> spans.Spans:
    """Return the launchers' ports that the kernel may give away."""
    bounds = spec.range or _range(host)
    return (
        spans.meet((bounds,), spans.merge((n.low, n.high) for n in _fixed(fleet))) if bounds else ()
    )


def _fixed(fleet: Fleet) -> Iterator[Need]:
    frameworks = fleet.spec.section("firewall", FirewallSpec).frameworks
    yield from (need for name in frameworks for need in FRAMEWORKS[name] if need.fixed)
    yield VERIFICATION


def _range(host: Sysctls) -> tuple[int, int] | None:
    words = host.live.get(RANGE_KEY, "").split()
    return (int(words[0]), int(words[1])) if len(words) == 2 else None


def _reserved(text: str) -> spans.Spans:
    """Read a list of ports such as "8080,9000-9100"; what is none of that is passed over."""
    found = []
    for part in text.split(","):
        try:
            found.append(parse_ports(part.strip()))
        except ValueError:
            continue
    return spans.merge(found)


def assess(fleet: Fleet, host: HostState, spec: PortRangeSpec) -> Assessment:
    """Decide what a host's range and its reserved ports shall be."""
    asked = spec.range is not None or bool(spec.reserve)
    if not isinstance(host.sysctls, Sysctls):
        if not asked:
            return Assessment()
        title = "the kernel's settings are not known"
        return Assessment((_finding(host, FindingKind.UNKNOWN, title, (host.sysctls.reason,)),))
    wanted = wanted_settings(fleet, host.sysctls, spec)
    file = host.file(PATH)
    if not wanted:
        return _withdrawn(host)
    missing = [key for key in wanted if key not in host.sysctls.live]
    if missing:
        title = f"the value of {missing[0]} is not known"
        fix = f"See that the probe can read it: sysctl {missing[0]}"
        return Assessment((_finding(host, FindingKind.UNKNOWN, title, fix=fix),))
    findings = list(_wrong_now(fleet, host, host.sysctls, spec, wanted))
    if isinstance(file, Unknown):
        title = f"{PATH} could not be read"
        return Assessment((*findings, _finding(host, FindingKind.UNKNOWN, title, (file.reason,))))
    content = sysctl.render(wanted, WHY)
    in_place = file.exists and file.content == content
    if not in_place and (file.exists or not sysctl.kept(host, wanted)):
        if not findings:
            findings.append(
                _finding(host, FindingKind.DRIFT, "the ports for new sockets would be others after a reboot",
                         _evidence(host.sysctls, wanted))
            )  # fmt: skip
        stuck = blocker(file, NAME)
        if stuck is not None:
            return Assessment((*findings, stuck.on(host.host, "firewall-ports")))
        in_place = True
    changes: list[Change] = []
    blobs: dict[str, bytes] = {}
    if in_place and not (file.exists and file.content == content):
        action: FileAction | CommandAction = FileAction(
            path=PATH,
            real_path=file.real_path,
            before=sha256(file.content) if file.exists else None,
            after=sha256(content),
        )
        blobs = {sha256(data): data for data in (file.content, content)}
        changes.append(_change(host, f"write {PATH}, for the next boot", findings[0], action))
    live = {key: value for key, value in wanted.items() if host.sysctls.live[key] != value}
    if live:
        before = {key: host.sysctls.live[key] for key in live}
        told = ", ".join(f"{key} = {value}" for key, value in live.items())
        changes.append(_change(host, f"set {told}", findings[0], live_action(before, live)))
    if in_place:
        findings += _beaten(host, wanted)
    return Assessment(tuple(findings), tuple(changes), blobs)


def _wrong_now(
    fleet: Fleet, host: HostState, now: Sysctls, spec: PortRangeSpec, wanted: dict[str, str]
) -> Iterator[Finding]:
    live = now.live
    if RANGE_KEY in wanted and live[RANGE_KEY] != wanted[RANGE_KEY]:
        title = f"new sockets get ports from {live[RANGE_KEY].replace(' ', '-')}, the spec says otherwise"
        yield _finding(host, FindingKind.DRIFT, title, (f"{RANGE_KEY} = {live[RANGE_KEY]}",))
    if RESERVED_KEY not in wanted or live[RESERVED_KEY] == wanted[RESERVED_KEY]:
        return
    bounds = spec.range or _range(now)
    have = _reserved(live[RESERVED_KEY])
    in_range = [
        need for need in _fixed(fleet) if bounds and spans.meet((bounds,), ((need.low, need.high),))
    ]
    open_ = [need for need in in_range if spans.minus(((need.low, need.high),), have)]
    title = "the kernel may give ports that launchers need to outgoing connections"
    evidence = [
        f"{RANGE_KEY} = {live[RANGE_KEY]}",
        f"{RESERVED_KEY} = {live[RESERVED_KEY] or 'none'}",
    ]
    evidence += [f"needed: {need}" for need in open_]
    if not open_:
        title = "ports that the spec reserves are not reserved"
    yield _finding(host, FindingKind.DRIFT, title, tuple(evidence), label="master-port-in-use")


def _evidence(now: Sysctls, wanted: dict[str, str]) -> tuple[str, ...]:
    lines = []
    for key, value in wanted.items():
        winner = now.winner(key)
        if winner is None:
            lines.append(f"{key}: no file sets it, wanted {value}")
        elif winner.value != value:
            lines.append(f"{winner.path}:{winner.line}: {key} = {winner.value}, wanted {value}")
    return tuple(lines)


def _beaten(host: HostState, wanted: dict[str, str]) -> Iterator[Finding]:
    for key, line in sysctl.beaten_by(host, PATH, wanted):
        yield _finding(
            host,
            FindingKind.BLOCKED,
            f"{line.path} gives {key} another value at boot, after remedy's file",
            (f"{line.path}:{line.line}: {key} = {line.value}, wanted {wanted[key]}",),
            fix=f"Remove that line, or give it the value {wanted[key]}.",
        )


def _withdrawn(host: HostState) -> Assessment:
    """Return what becomes of remedy's file when nothing asks for it any more."""
    file = host.files.get(PATH)
    if file is None or isinstance(file, Unknown) or not file.exists:
        return Assessment()
    finding = _finding(host, FindingKind.DRIFT, f"nothing asks for {PATH} any more")
    stuck = blocker(file, NAME)
    if stuck is not None:
        return Assessment((finding, stuck.on(host.host, "firewall-ports")))
    before = sha256(file.content)
    action = FileAction(path=PATH, real_path=file.real_path, before=before, after=None)
    title = f"remove {PATH}; the values in force stay until the next boot"
    return Assessment((finding,), (_change(host, title, finding, action),), {before: file.content})


def _change(
    host: HostState, title: str, finding: Finding, action: FileAction | CommandAction
) -> Change:
    return Change(
        id="",
        host=host.host,
        remedy=NAME,
        title=title,
        reason=finding.title,
        label=finding.label,
        action=action,
    )


def promise(state: HostState, change: Change) -> HostState:
    """Return what the probe finds after the change: what is in force, and what the files say."""
    if not isinstance(state.sysctls, Sysctls):
        return state
    if isinstance(change.action, CommandAction):
        after = after_live(state.sysctls, change.action, keys_of(change.action))
        return state.model_copy(update={"sysctls": after})
    file = state.file(PATH)
    content = None if isinstance(file, Unknown) or not file.exists else file.content
    return state.model_copy(update={"sysctls": sysctl.persisted_with(state.sysctls, PATH, content)})


old_remedy(
    name=NAME,
    title="Ports for new sockets",
    text=__doc__,
    cures=("firewall-ports", "master-port-in-use"),
    spec=PortRangeSpec,
    assess=assess,
    order=30,
    promise=promise,
    reads=(PATH,),
)
