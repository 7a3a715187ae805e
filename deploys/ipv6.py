"""IPv6: kept as it is, switched off or switched on, on all hosts or on single interfaces.

Cures: programs that prefer IPv6 where only some hosts, or only link-local addresses, have it, so that they try
an address which no peer answers.

It is left alone unless the spec says otherwise. The warning of c10d that "The IPv6 network addresses of (host,
port) cannot be retrieved" is no reason to switch it off: it says that a name does not resolve; IPv6 is only
what is tried first. The remedy `hosts_file` cures that. "Address family not supported by protocol" (errno 97)
alone says that IPv6 is off, and is harmless. Where the ssh connection itself runs over IPv6, switching it off
is refused.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Literal

from remedy.deploys._sysctl import after_live, keys_of, live_action
from remedy.edit import sysctl
from remedy.plan import (
    Assessment,
    Change,
    CommandAction,
    FileAction,
    Finder,
    Finding,
    FindingKind,
    Fleet,
    Risk,
    sha256,
)
from remedy.plan.change import command
from remedy.plan.files import blocker
from remedy.plan.legacy import old_remedy
from remedy.probe import HostState, Kernel, Network, Sysctls
from remedy.spec import SpecSection
from remedy.values import Unknown

NAME = "ipv6"
LABEL = "ipv6-issue"
_finding = Finder(NAME, LABEL)
PATH = "/etc/sysctl.d/90-remedy-ipv6.conf"
WHY = "where IPv6 is on and where it is off"
START, END = "net.ipv6.conf.", ".disable_ipv6"
WORDS = {"0": "on", "1": "off"}
NO_CURE = (
    "It does not cure c10d's warning about IPv6 network addresses: there a name does not resolve."
)
# Interfaces of containers come and go, and belong to whoever makes them.
OF_CONTAINERS = ("veth", "docker", "br-", "cni", "cali", "flannel", "lxc", "podman")

Toggle = Literal["keep", "disable", "enable"]
VALUES: Mapping[Toggle, str] = {"disable": "1", "enable": "0"}


class Ipv6Spec(SpecSection):
    """``mode``: for all interfaces of all hosts; ``interfaces``: by name, instead of the mode."""

    mode: Toggle = "keep"
    interfaces: Mapping[str, Toggle] = {}


def key_of(name: str) -> str:
    """Return the setting of an interface, in sysctl's way of writing a dot inside a name."""
    return f"{START}{name.replace('.', '/')}{END}"


def wanted_now(live: Mapping[str, str], spec: Ipv6Spec) -> dict[str, str]:
    """Return what each setting shall be in force, in the order in which they have to be written.

    ``all`` comes first: writing it writes every interface (Documentation/networking/ip-sysctl.rst).
    """
    found: dict[str, str] = {}
    if spec.mode != "keep":
        rest = [
            key
            for key in live
            if key.startswith(START)
            and key.endswith(END)
            and not key.startswith(OF_CONTAINERS, len(START))
        ]
        first = [key_of("all"), key_of("default")]
        found = dict.fromkeys([*first, *(k for k in rest if k not in first)], VALUES[spec.mode])
    for name, toggle in spec.interfaces.items():
        key = key_of(name)
        if key in live and (toggle != "keep" or key in found):
            found[key] = VALUES.get(toggle, live[key])
    return found


def wanted_at_boot(now: Mapping[str, str], spec: Ipv6Spec) -> dict[str, str]:
    """Return what the files shall say: the mode, and the interfaces that are named."""
    named = {key_of(name) for name in spec.interfaces}
    return {k: v for k, v in now.items() if k in named or k in (key_of("all"), key_of("default"))}


def assess(fleet: Fleet, host: HostState, spec: Ipv6Spec) -> Assessment:
    """Decide where IPv6 of a host shall be on or off, and whether that is safe."""
    if spec.mode == "keep" and all(toggle == "keep" for toggle in spec.interfaces.values()):
        return _withdrawn(host)
    if not isinstance(host.sysctls, Sysctls):
        reason = (host.sysctls.reason,)
        return Assessment(
            (_finding(host, FindingKind.UNKNOWN, "the state of IPv6 is not known", reason),)
        )
    live = host.sysctls.live
    if key_of("all") not in live:
        return Assessment(tuple(_absent(host, spec)))
    now = wanted_now(live, spec)
    boot = wanted_at_boot(now, spec)
    wrong = {key: value for key, value in now.items() if live[key] != value}
    file = host.file(PATH)
    content = sysctl.render(boot, WHY)
    written = not isinstance(file, Unknown) and file.exists
    same = not isinstance(file, Unknown) and file.content == content
    lasts = same if written else _lasts(host.sysctls, boot)
    if not wrong and lasts:
        return Assessment(tuple(_beaten(host, boot)) if written else ())
    finding = _drift(host, live, wrong, boot)
    refused = _refusal(fleet, host, wrong)
    if refused is not None:
        return Assessment((finding, refused))
    changes: list[Change] = []
    blobs: dict[str, bytes] = {}
    findings = [finding]
    if not lasts:
        if isinstance(file, Unknown):
            title = f"{PATH} could not be read"
            return Assessment((finding, _finding(host, FindingKind.UNKNOWN, title, (file.reason,))))
        stuck = blocker(file, NAME)
        if stuck is not None:
            return Assessment((finding, stuck.on(host.host, LABEL)))
        action = FileAction(
            path=PATH,
            real_path=file.real_path,
            before=sha256(file.content) if file.exists else None,
            after=sha256(content),
        )
        blobs = {sha256(data): data for data in (file.content, content)}
        changes.append(_change(host, f"write {PATH}, for the next boot", finding, action))
    if not lasts or written:
        findings += _beaten(host, boot)
    if wrong:
        changes.append(_live(host, live, wrong, now, finding))
    return Assessment(tuple(findings), tuple(changes), blobs)


def _lasts(sysctls: Sysctls, boot: Mapping[str, str]) -> bool:
    """Return whether the files give the settings these values at boot; without a word, IPv6 is on."""
    winners = {key: sysctls.winner(key) for key in boot}
    return all((w.value if w is not None else "0") == boot[key] for key, w in winners.items())


def _absent(host: HostState, spec: Ipv6Spec) -> Iterator[Finding]:
    """Yield what there is to say of a kernel without IPv6."""
    if spec.mode != "enable" and "enable" not in spec.interfaces.values():
        return
    line = host.kernel.command_line if isinstance(host.kernel, Kernel) else ""
    yield _finding(
        host,
        FindingKind.BLOCKED,
        "the kernel has no IPv6 that could be switched on",
        tuple(word for word in line.split() if word.startswith("ipv6.")),
        fix="Take ipv6.disable=1 from the kernel's command line and reboot.",
    )


def _drift(
    host: HostState, live: Mapping[str, str], wrong: Mapping[str, str], boot: Mapping[str, str]
) -> Finding:
    evidence = [f"{key} = {live[key]}, wanted {value}" for key, value in wrong.items()]
    if not wrong:
        evidence = [f"at boot: {key} = {value} is wanted" for key, value in boot.items()]
        return _finding(
            host,
            FindingKind.DRIFT,
            "IPv6 would not be as the spec says after a reboot",
            tuple(evidence),
        )
    what = " and ".join(sorted({WORDS.get(live[key], live[key]) for key in wrong}))
    return _finding(
        host,
        FindingKind.DRIFT,
        f"IPv6 is {what}, the spec says otherwise",
        tuple(evidence),
        fix=NO_CURE if "1" in wrong.values() else "",
    )


def _refusal(fleet: Fleet, host: HostState, wrong: Mapping[str, str]) -> Finding | None:
    """Return why IPv6 is not switched off: the ssh connection would go with it, or that is not known."""
    off = {key for key, value in wrong.items() if value == "1"}
    if not off:
        return None
    server, told = _ssh_server(fleet, host)
    if server is None:
        return _finding(
            host,
            FindingKind.UNKNOWN,
            "whether ssh itself runs over IPv6 is not known, so IPv6 is not switched off",
            (told,),
            fix="Give ssh_hostname in the inventory as an IPv4 address.",
        )
    if server.version == 4:
        return None
    carrier = host.network.carrier_of(str(server)) if isinstance(host.network, Network) else None
    if carrier is not None and key_of(carrier.name) not in off:
        return None
    return _finding(
        host,
        FindingKind.BLOCKED,
        "the ssh connection itself runs over IPv6, so it is not switched off",
        (told,),
        fix="Give ssh_hostname in the inventory as an IPv4 address.",
    )


def _ssh_server(
    fleet: Fleet, host: HostState
) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address | None, str]:
    """Return the address of the host that ssh has connected to, and how that is known."""
    told = (
        "" if isinstance(host.environment, Unknown) else host.environment.get("SSH_CONNECTION", "")
    )
    words = told.split()
    for text, how in (
        (words[2] if len(words) == 4 else "", f"SSH_CONNECTION={told}"),
        (
            fleet.inventory.node(host.host).ssh_address,
            f"ssh_hostname of {host.host} in the inventory",
        ),
    ):
        try:
            address = ipaddress.ip_address(text.partition("%")[0])
        except ValueError:
            continue
        mapped = getattr(address, "ipv4_mapped", None)
        return (mapped or address), how
    return None, "there is no SSH_CONNECTION, and the inventory has a name"


def _live(
    host: HostState, live: Mapping[str, str], wrong: Mapping[str, str], now: Mapping[str, str], finding: Finding
) -> Change:  # fmt: skip
    # Writing `all` writes every interface, so all of them are watched and written.
    keys = now if key_of("all") in wrong else wrong
    after = {key: now[key] for key in keys}
    before = {key: live[key] for key in keys}
    off = [key for key in wrong if wrong[key] == "1"]
    lost = list(_lost_addresses(host, off))
    action = live_action(before, after, " && ".join(command(words) for words in lost))
    what = "off" if off else "on"
    names = [key.removeprefix(START).removesuffix(END) for key in wrong]
    where = "everywhere" if key_of("all") in keys else f"on {', '.join(names)}"
    change = _change(host, f"switch IPv6 {what} {where}", finding, action)
    if not lost:
        return change
    told = f"{len(lost)} IPv6 addresses and routes of the host go; connections over them end"
    return change.model_copy(update={"disrupts": told, "risk": Risk.HIGH})


def _lost_addresses(host: HostState, off: list[str]) -> Iterator[list[str]]:
    """Yield the commands that bring back what goes with IPv6 and does not come back by itself."""
    if not isinstance(host.network, Network):
        return
    for interface in host.network.interfaces:
        if key_of(interface.name) not in off:
            continue
        for address in interface.addresses:
            if address.version == 6 and address.scope == "global":
                where = f"{address.address}/{address.prefix}"
                yield ["ip", "-6", "address", "replace", where, "dev", interface.name]
    for route in host.network.routes:
        if ":" in route.gateway and key_of(route.interface) in off:
            yield [
                *("ip", "-6", "route", "replace", route.destination, "via", route.gateway),
                *("dev", route.interface, "metric", str(route.metric)),
            ]


def _beaten(host: HostState, boot: Mapping[str, str]) -> Iterator[Finding]:
    for key, line in sysctl.beaten_by(host, PATH, boot):
        yield _finding(
            host,
            FindingKind.BLOCKED,
            f"{line.path} gives {key} another value at boot, after remedy's file",
            (f"{line.path}:{line.line}: {key} = {line.value}, wanted {boot[key]}",),
            fix=f"Remove that line, or give it the value {boot[key]}.",
        )


def _withdrawn(host: HostState) -> Assessment:
    """Return what becomes of remedy's file when nothing asks for it any more."""
    file = host.files.get(PATH)
    if file is None or isinstance(file, Unknown) or not file.exists:
        return Assessment()
    finding = _finding(host, FindingKind.DRIFT, f"nothing asks for {PATH} any more")
    stuck = blocker(file, NAME)
    if stuck is not None:
        return Assessment((finding, stuck.on(host.host, LABEL)))
    before = sha256(file.content)
    action = FileAction(path=PATH, real_path=file.real_path, before=before, after=None)
    title = f"remove {PATH}; IPv6 stays as it is until the next boot"
    return Assessment((finding,), (_change(host, title, finding, action),), {before: file.content})


def assess_fleet(fleet: Fleet, spec: Ipv6Spec) -> tuple[Finding, ...]:
    """Find interfaces that the spec names and no host has."""
    known: set[str] = set()
    for state in fleet.states.values():
        if not isinstance(state.network, Network):
            return ()
        known |= {interface.name for interface in state.network.interfaces}
    return tuple(
        Finding(
            host=None,
            remedy=NAME,
            kind=FindingKind.REPORT,
            label=LABEL,
            title=f"no host has an interface {name!r}, which ipv6.interfaces names",
            evidence=(f"there are: {', '.join(sorted(known))}",),
            fix="Correct the name in remedy.yaml.",
        )
        for name in spec.interfaces
        if fleet.states and name not in known
    )


def _change(
    host: HostState, title: str, finding: Finding, action: FileAction | CommandAction
) -> Change:
    return Change(
        id="",
        host=host.host,
        remedy=NAME,
        title=title,
        reason=finding.title,
        label=LABEL,
        risk=Risk.MEDIUM,
        guarded=True,
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
    after = sysctl.persisted_with(state.sysctls, PATH, content)
    return state.model_copy(update={"sysctls": after})


old_remedy(
    name=NAME,
    title="IPv6",
    text=__doc__,
    cures=(LABEL,),
    spec=Ipv6Spec,
    assess=assess,
    assess_fleet=assess_fleet,
    order=35,
    promise=promise,
    reads=(PATH,),
)
