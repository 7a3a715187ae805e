"""Traffic control: nothing on the cluster interface drops, delays or damages packets between peers.

Cures: connections between two hosts that time out, hang in the middle or are slow, though no firewall is in the
way: netem, with which somebody tried a bad network (loss, delay, corruption), and the discipline blackhole.
They are removed under guard; taking it back brings them with the same words.

Finds: a rate of less than 1 Gbit/s (tbf), filters that drop packets between peers (flower, u32, matchall,
policers). Filters that are eBPF programs or send packets elsewhere, eBPF programs of the driver (XDP), and
shapers whose
classes are not read (htb, hfsc, cake, ...) are UNKNOWN, with their text. What is right is accepted by that
text.

How it is judged: `tc qdisc show`, and `tc filter show` where there is anything that can have filters, on the
interfaces that are in the cluster's network, the members of a bond or bridge, and loopback, by which the ranks
of one host meet. Where tc is not installed, only the discipline of each interface is known. Programs that are
attached by tcx or to control groups are shown by neither tool and not looked for: `bpftool net`, `bpftool
cgroup tree`.

Sources: tc(8), tc-netem(8), tc-tbf(8), tc-u32(8), tc-flower(8), ip-link(8).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pydantic import Field

from remedy.deploys._peers import Place, place_of
from remedy.firewall import spans
from remedy.plan import Change, CommandAction, Risk, Workbench, command, remedy
from remedy.probe import Discipline, HostState, Queueing, TrafficFilter
from remedy.spec import SpecSection
from remedy.values import Unknown

HARMLESS = frozenset(
    (
        *(
            "noqueue",
            "noop",
            "pfifo_fast",
            "pfifo",
            "bfifo",
            "mq",
            "mqprio",
            "fq",
            "fq_codel",
            "codel",
        ),
        *("fq_pie", "pie", "sfq", "prio", "multiq", "ingress", "clsact"),
    )
)
"""Disciplines that lose nothing but what the card itself cannot send."""

LOSSY = ("netem", "blackhole")
LOOPBACK = "lo"
"""By which processes of one host reach each other, also where they take its cluster address."""
SLOW = 10**9
"""Bits a second below which a rate on the cluster interface is named."""

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_LIMITS = re.compile(r"\b(limit|flow_limit|memory_limit) (\d+)([KMG]?b|p|)(?= |$)")
_HIGHEST_RATE = re.compile(r"\bmaxrate (\d+)([KMGTkmgt]?)bit\b")
LINK_HEADER = 18
"""Bytes of an Ethernet frame before what the MTU counts, a VLAN's tag among them."""
FEWEST_PACKETS = 8
"""Packets that a queue must have room for: a host sends that many at once."""
_RATE = re.compile(r"\brate (\d+)([KMGTkmgt]?)bit\b")


class TrafficControlSpec(SpecSection):
    """``repair``: whether netem and blackhole are removed; ``accept``: disciplines, filters and programs, as
    findings show them, that are right as they are.
    """

    repair: bool = True
    accept: tuple[str, ...] = Field((), examples=[["qdisc blackhole 8010: dev enp194s0f1 root"]])


Bench = Workbench[TrafficControlSpec]


@remedy("Traffic control", TrafficControlSpec, cures=("traffic-control",), order=39)
def traffic_control(bench: Bench) -> None:
    """Decide what on the way out of and into a host's cluster interface loses packets."""
    place = place_of(bench.fleet, bench.host)
    if place is None:
        return
    names = interfaces_of(place) | {LOOPBACK}
    for interface in place.network.interfaces:
        if interface.name in names and interface.xdp:
            text = f"xdp {interface.xdp} on {interface.name}"
            _doubt(
                bench, f"an eBPF program decides about each packet that {interface.name} gets", text
            )
    queueing = bench.host.queueing
    if isinstance(queueing, Unknown):
        _without_tc(bench, place, queueing)
        return
    for discipline in queueing.disciplines:
        if discipline.interface in names:
            device = place.network.interface(discipline.interface) or place.carrier
            _judge(bench, discipline, queueing, device.mtu)
    own = spans.of_networks([place.address])
    for rule in queueing.filters:
        if rule.interface in names:
            here = replace(place, on_link=own, beyond=()) if rule.interface == LOOPBACK else place
            _judge_filter(bench, rule, here)


def interfaces_of(place: Place) -> frozenset[str]:
    """Return the interfaces that packets between peers pass: those in the network, and their members."""
    return place.rails | {i.name for i in place.network.interfaces if i.master in place.rails}


def _without_tc(bench: Bench, place: Place, reason: Unknown) -> None:
    """Judge what `ip` shows of the interfaces where tc says nothing."""
    shown = {
        i.name: i.discipline for i in place.network.interfaces if i.name in interfaces_of(place)
    }
    if not all(shown.values()):
        bench.unknown("could not read what queues packets on the cluster interface", reason.reason)
        return
    odd = {name: kind for name, kind in shown.items() if kind not in HARMLESS}
    evidence = (reason.reason, *(f"qdisc {kind} on {name}" for name, kind in odd.items()))
    if odd:
        title = f"{' and '.join(odd)} shape{'s' * (len(odd) == 1)} what is sent, and what it drops is not known"
        bench.unknown(
            title, evidence, "Install tc (iproute2 or iproute-tc), and run the command again."
        )
    else:
        title = "filters of traffic control were not read"
        bench.report(title, evidence, "Install tc (iproute2 or iproute-tc) to have them judged.")


def _doubt(bench: Bench, title: str, text: str) -> None:
    if text not in bench.settings.accept:
        bench.unknown(title, text, f"If that is right, {_accept(text)}")


def _accept(text: str) -> str:
    return f'add to traffic_control.accept in remedy.yaml: "{text}"'


def _judge(bench: Bench, discipline: Discipline, queueing: Queueing, mtu: int) -> None:
    """Judge a discipline that can lose packets."""
    name, kind, text = discipline.interface, discipline.kind, discipline.text
    if text in bench.settings.accept:
        return
    if kind in HARMLESS:
        _judge_limits(bench, discipline, mtu)
        return
    accept = f"if it is right, {_accept(text)}"
    if kind in LOSSY:
        title = f"{kind} loses, delays or damages what leaves by {name}"
        alone = sum(
            d.interface == name for d in queueing.disciplines if d.kind not in ("ingress", "clsact")
        )
        if discipline.place == "root" and alone == 1 and bench.settings.repair:
            _remove(bench, discipline, title)
        else:
            note = bench.blocked if bench.settings.repair else bench.report
            note(title, text, f"Remove it: {_delete(name)}; {accept}")
        return
    rate = rate_of(text)
    if rate is not None and rate < SLOW:
        title = f"{kind} holds what leaves by {name} to {rate / 10**6:g} Mbit/s"
        bench.blocked(title, text, f"Remove it: {_delete(name)}; {accept}")
    elif rate is None:
        _doubt(bench, f"{kind} shapes what leaves by {name}, and what it drops is not known", text)


def _judge_limits(bench: Bench, discipline: Discipline, mtu: int) -> None:
    """Judge the room and the rate of a discipline that loses nothing where both are as usual."""
    name, kind, text = discipline.interface, discipline.kind, discipline.text
    remove = f"Remove it: {_delete(name)}; if it is right, {_accept(text)}"
    highest = _HIGHEST_RATE.search(text)
    rate = SLOW if highest is None else int(highest[1]) * _UNITS[highest[2].lower()]
    if rate < SLOW:
        title = f"{kind} holds each connection by {name} to {rate / 10**6:g} Mbit/s"
        bench.blocked(title, text, remove)
    for limit in _LIMITS.finditer(text):
        # What a queue holds is whole packets with the header of the link.
        room = int(limit[2]) * _UNITS[limit[3].lower().strip("bp")]
        least = mtu + LINK_HEADER if limit[3].endswith("b") else 1
        shown = limit[0]
        if room < least:
            bench.blocked(f"{kind} drops packets that leave by {name}: {shown}", text, remove)
        elif room < least * FEWEST_PACKETS:
            title = f"{kind} holds few packets that leave by {name} ({shown}), and drops the others"
            _doubt(bench, title, text)


def rate_of(text: str) -> int | None:
    """Return the rate that tc shows, in bits a second; None where it shows none."""
    match = _RATE.search(text)
    return int(match[1]) * _UNITS[match[2].lower()] if match else None


def _remove(bench: Bench, discipline: Discipline, title: str) -> None:
    name = discipline.interface
    bench.run(
        f"remove {discipline.kind} from {name}",
        because=bench.drift(title, discipline.text),
        risk=Risk.MEDIUM,
        guarded=True,
        observe=f"{command(['tc', 'qdisc', 'show', 'dev', name])} | "
        f"sed -n 's/^qdisc \\({LOSSY[0]}\\|{LOSSY[1]}\\) .*/\\1/p'",
        before=discipline.kind,
        after="",
        do=_delete(name),
        undo=_add(discipline),
    )


def _delete(name: str) -> str:
    return command(["tc", "qdisc", "del", "dev", name, "root"])


def _add(discipline: Discipline) -> str:
    """Return the command that brings a discipline back, from the line in which tc shows it."""
    words = discipline.text.split()
    handle, options = words[2], words[words.index("root") + 1 :]
    place = ["dev", discipline.interface, "root", "handle", handle]
    return command(["tc", "qdisc", "replace", *place, discipline.kind, *options])


# --- filters -----------------------------------------------------------------------------------------------

_U32 = re.compile(r"match ([0-9a-f]{8})/([0-9a-f]{8}) at (\d+)")
_FIRST = re.compile(r"protocol (\S+) pref (\d+) (\S+)")


def _judge_filter(bench: Bench, rule: TrafficFilter, place: Place) -> None:
    """Judge a filter by what it does and for which packets."""
    text = " ".join(rule.text)
    shown = f"{rule.interface} {rule.direction}: {text}"
    acts = _drops(text)
    if acts is None or shown in bench.settings.accept:
        return
    matches = _is_for_peers(rule, place)
    if matches is False:
        return
    if not (acts and matches):
        _doubt(
            bench,
            f"a filter of traffic control on {rule.interface} may drop packets of peers",
            shown,
        )
        return
    first = _FIRST.search(text)
    what = ["protocol", first[1], "pref", first[2]] if first else []
    place_words = [rule.direction] if "parent" not in rule.text[0] else ["root"]
    remove = command(["tc", "filter", "del", "dev", rule.interface, *place_words, *what])
    bench.blocked(
        f"a filter of traffic control on {rule.interface} drops packets of peers ({rule.direction})",
        shown,
        f"If nothing needs it: {remove}; if it is right, {_accept(shown)}",
    )


def _drops(text: str) -> bool | None:
    """Return whether a filter drops what it matches; False: not known; None: it lets it pass."""
    first = _FIRST.search(text)
    if first and first[3] == "bpf":
        return False
    if re.search(r"gact action (?:drop|shot)", text):
        return True
    if "police" in text:
        rate = rate_of(text)
        return rate is not None and rate < SLOW
    if re.search(r"action order \d+:\s+(?!gact action pass|skbedit)", text):
        return False
    if re.search(r"random type \w+ (?:drop|shot)|ptype (?!host)", text):
        return False  # some of them, or a kind of packet that the host takes for another's
    return None


def _is_for_peers(rule: TrafficFilter, place: Place) -> bool | None:
    """Return whether a filter matches packets between this host and peers; None: some, or not known."""
    first = _FIRST.search(rule.text[0])
    if first is None:
        return None
    if first[1] not in ("ip", "all", "arp"):
        return False
    if first[3] == "matchall":
        return True
    conditions = list(_conditions(rule.text[1:], first[3]))
    local = spans.of_networks([place.address])
    theirs, ours = ("src", "dst") if rule.direction == "ingress" else ("dst", "src")
    certain = True
    for key, value in conditions:
        if key in ("src", "dst"):
            named = spans.of_networks([value])
            if (key == theirs and not spans.meet(named, place.peers)) or (
                key == ours and not spans.meet(named, local)
            ):
                return False
        elif key == "protocol":
            if value not in ("tcp", "6"):
                return False
        else:
            certain = False
    return True if certain and first[3] in ("u32", "flower") else None


def _conditions(lines: Sequence[str], kind: str) -> Iterator[tuple[str, str]]:
    """Yield what a packet must have: ("src", network), ("dst", network), ("protocol", name) or ("", text)."""
    for line in lines:
        if line.startswith("action "):
            return
        if kind == "flower":
            key, _, value = line.partition(" ")
            names = {"src_ip": "src", "dst_ip": "dst", "ip_proto": "protocol"}
            if key in names:
                yield names[key], value
            elif (key, value) != ("eth_type", "ipv4") and key not in (
                "not_in_hw",
                "in_hw",
                "skip_hw",
            ):
                yield "", line
        elif match := _U32.search(line):
            yield from _u32(int(match[1], 16), int(match[2], 16), int(match[3]))


def _u32(value: int, mask: int, offset: int) -> Iterator[tuple[str, str]]:
    """Yield what a match of u32 looks at: bytes 12 and 16 of an IPv4 header are its addresses (RFC 791)."""
    if mask == 0:
        return
    ones = mask.bit_count()
    is_prefix = mask == (2**32 - 1) << (32 - ones) & (2**32 - 1)
    if offset in (12, 16) and is_prefix:
        text = ".".join(str(value >> shift & 255) for shift in (24, 16, 8, 0))
        yield ("src" if offset == 12 else "dst"), f"{text}/{ones}"
    elif offset == 8 and mask == 0x00FF0000:
        yield "protocol", str(value >> 16)
    else:
        yield "", f"{value:08x}/{mask:08x} at {offset}"


@traffic_control.promises
def promise(state: HostState, change: Change) -> HostState:
    """Return what the probe finds after ``change``: the discipline gone, or there again."""
    assert isinstance(change.action, CommandAction)
    assert isinstance(state.queueing, Queueing)
    words = shlex.split(change.action.do)
    name = words[4]
    others = tuple(
        d for d in state.queueing.disciplines if (d.interface, d.place) != (name, "root")
    )
    if words[2] == "replace":
        text = " ".join(["qdisc", words[8], words[7], "dev", name, "root", *words[9:]])
        discipline = Discipline(interface=name, kind=words[8], place="root", text=text)
        others = (*others, discipline)
    queueing = state.queueing.model_copy(update={"disciplines": others})
    return state.model_copy(update={"queueing": queueing})


@traffic_control.observes
def observation(state: HostState, change: Change) -> str:
    """Return the discipline that loses packets, "" where there is none."""
    assert isinstance(change.action, CommandAction)
    assert isinstance(state.queueing, Queueing)
    name = shlex.split(change.action.do)[4]
    kinds = (d.kind for d in state.queueing.disciplines if d.interface == name)
    return "\n".join(kind for kind in kinds if kind in LOSSY)
