"""Where a packet to a peer goes, and what holds it back on the way: routes, rules, neighbours, IPsec, queues.

Sources: ip-route(8), ip-rule(8), ip-neighbour(8), ip-xfrm(8), tc(8). ``text`` is always the thing in the words
of its own tool, so that it can be shown, accepted in the spec by its text, and typed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from remedy.probe.frames import NoAnswerError, Sections
from remedy.text import is_number
from remedy.values import Fact, Record, Unknown, shared

MOST = 1_000_000
"""Bytes of each section; a router with the routes of the internet has more, and is not known then."""

_ROUTE_WORDS = frozenset(
    (
        *("type", "dst", "gateway", "dev", "table", "protocol", "scope", "prefsrc", "metric"),
        *("flags", "pref"),
    )
)
_NOT_ASKED = Unknown(
    reason="whether the kernel has xfrm_user is not known, and asking could load it"
)
_SELECTORS = ("fwmark", "iif", "oif", "tos", "ipproto", "sport", "dport", "l3mdev", "tun_id")
_RULE_WORDS = frozenset(
    ("priority", "src", "srclen", "dst", "dstlen", "table", "action", "protocol")
)


class FibRoute(Record):
    """A route of any table; of those that the kernel makes for its own addresses only ``local`` ones.

    Args:
        kind: "unicast", "unreachable", "blackhole", "prohibit", "throw", "local", ...
        destination: a network or an address; "default" for all of IPv4, "::/0" for all of IPv6.
        gateway: "" where the destination is on the link, or there are several.
        interface: "" where there is none, or several.
        table: by the name that iproute2 has for it.
        protocol: who made it: "kernel", "boot" (by hand), "static", "dhcp", "bird", ...
        metric: the smaller is taken; 0 where none is shown.
        source: the address that packets get which have none yet, "" where the kernel chooses.
        plain: whether ``text`` is all of it.
        text: as it is typed after `ip route add`.
    """

    kind: str
    destination: str
    gateway: str
    interface: str
    table: str
    protocol: str
    metric: int
    source: str
    plain: bool
    text: str


class PolicyRule(Record):
    """A rule of policy routing, IPv4 or IPv6, in the order of priority.

    Args:
        priority: the smaller is tried first.
        source: "all", or a network or address.
        destination: the same.
        inverted: whether it is for what does not match.
        conditions: what else a packet must be, in words; () where nothing else.
        action: "lookup", "goto", "unreachable", "blackhole", "prohibit", ...
        table: that is looked up, "" for none.
        suppress: prefixes of at most this length in that table do not count; -1 for none.
        plain: whether ``text`` is all of it.
        text: as it is typed after `ip rule add`.
    """

    priority: int
    source: str
    destination: str
    inverted: bool
    conditions: tuple[str, ...]
    action: str
    table: str
    suppress: int
    plain: bool
    text: str


class Neighbour(Record):
    """An entry of the neighbour table that the kernel does not renew by itself, or that has failed.

    ``state`` is "PERMANENT", "NOARP" or "FAILED"; ``mac`` is "" where none is known.
    """

    address: str
    mac: str
    interface: str
    state: str


class IpsecPolicy(Record):
    """A policy of IPsec: ``action`` is "block", "allow" or "ipsec" (through a security association).

    ``direction`` is "in", "out" or "fwd"; ``plain`` whether ``text`` is all of it.
    """

    source: str
    destination: str
    direction: str
    action: str
    plain: bool
    text: str


class Routing(Record):
    """What decides where a packet to a peer goes.

    ``routes``, ``rules`` and ``neighbours`` are those of IPv4, ``ipv6`` those of IPv6; its rules are () where
    the host has no address of IPv6 beyond its links.
    """

    routes: tuple[FibRoute, ...]
    rules: tuple[PolicyRule, ...]
    neighbours: tuple[Neighbour, ...]
    ipsec: Fact[tuple[IpsecPolicy, ...]]
    ipv6: Routing | None = None


class Discipline(Record):
    """A queueing discipline; ``place`` is "root", "parent 1:2", "ingress" or "clsact"."""

    interface: str
    kind: str
    place: str
    text: str


class TrafficFilter(Record):
    """A filter of traffic control; ``direction`` is "ingress" or "egress", ``text`` all its lines."""

    interface: str
    direction: str
    text: tuple[str, ...]


class Queueing(Record):
    """What traffic control does with packets."""

    disciplines: tuple[Discipline, ...]
    filters: tuple[TrafficFilter, ...]


# --- ip ----------------------------------------------------------------------------------------------------


_fib_route = shared(FibRoute)
_policy_rule = shared(PolicyRule)
_discipline = shared(Discipline)


def parse_routing(sections: Sections) -> Routing:
    """Read section ``routing``: three arrays in JSON, then the policies of IPsec in ip's own words."""
    body, marked, known = sections.text("routing").rpartition("\nipsec ")
    if len(body) >= MOST or not marked:
        raise NoAnswerError("there is more than 1 MB of routes, rules and neighbours")
    arrays = [value for value in sections.json_lines(body) if isinstance(value, list)]
    if len(arrays) not in (3, 4):
        raise NoAnswerError(
            f"ip printed no JSON (iproute2 4.13 and later can): {body.strip()[:80]}"
        )
    policies = body[max(body.rfind("]\n"), 0) :].removeprefix("]\n")
    routes, rules, neighbours = arrays[-3:]
    return Routing(
        routes=_routes(routes, version=4),
        rules=tuple(_rule(entry) for entry in rules),
        neighbours=_neighbours(neighbours, version=4),
        ipsec=_NOT_ASKED if known.strip() == "unknown" else tuple(_policies(policies)),
        ipv6=Routing(
            routes=_routes(routes, version=6),
            rules=tuple(_rule(entry) for entry in arrays[0]) if len(arrays) == 4 else (),
            neighbours=_neighbours(neighbours, version=6),
            ipsec=(),
        ),
    )


TO_MANY = ("broadcast", "multicast", "anycast")
"""Types of routes to addresses that many hosts have: no TCP connection goes there."""

_ALL_OF_IPV6 = {"dst": "::/0"}


def _routes(entries: Iterable[dict[str, Any]], *, version: int) -> tuple[FibRoute, ...]:
    return in_text_order(
        _route(entry | _ALL_OF_IPV6 if version == 6 and entry["dst"] == "default" else entry)
        for entry in entries
        if "dst" in entry and _version(entry) == version and not _of_the_kernel(entry)
    )


def _of_the_kernel(entry: Mapping[str, Any]) -> bool:
    """Return whether a route is one of those that the kernel has for addresses of many hosts."""
    return entry.get("type") in TO_MANY and entry.get("protocol", "kernel") == "kernel"


def _version(entry: Mapping[str, Any]) -> int:
    """Return 4 or 6: of a default route only IPv6 has a preference among routers (RFC 4191)."""
    return 6 if ":" in entry["dst"] or "pref" in entry else 4


def _neighbours(entries: Iterable[Mapping[str, Any]], *, version: int) -> tuple[Neighbour, ...]:
    return tuple(
        Neighbour(
            address=entry["dst"],
            mac=entry.get("lladdr", ""),
            interface=entry.get("dev", ""),
            state=(entry.get("state") or [""])[0],
        )
        for entry in entries
        if "dst" in entry and _version(entry) == version
    )


def in_text_order(routes: Iterable[FibRoute]) -> tuple[FibRoute, ...]:
    """Return routes in the order of their text: which is tried first is a matter of prefix and metric."""
    return tuple(sorted(routes, key=lambda route: route.text))


def _route(entry: Mapping[str, Any]) -> FibRoute:
    kind = entry.get("type", "unicast")
    words = [] if kind == "unicast" else [kind]
    words += [entry["dst"]]
    hops = entry.get("nexthops") or []
    for key, word in (("gateway", "via"), ("dev", "dev")):
        if key in entry:
            words += [word, str(entry[key])]
    table = str(entry.get("table", "main"))
    words += [] if table == "main" else ["table", table]
    for key, word in (("protocol", "proto"), ("scope", "scope"), ("prefsrc", "src")):
        if key in entry and (key, entry[key]) != ("scope", "global"):
            words += [word, str(entry[key])]
    if entry.get("metric"):
        words += ["metric", str(entry["metric"])]
    for hop in hops:
        words += ["nexthop", *(("via", str(hop["gateway"])) if hop.get("gateway") else ())]
        words += ["dev", str(hop.get("dev", ""))]
    words += ["encap", str(entry["encap"])] if "encap" in entry else []
    for metric in entry.get("metrics", ()):
        words += [word for key, value in metric.items() for word in (str(key), str(value))]
    words += [str(flag) for flag in entry.get("flags", ())]
    return _fib_route(
        kind=kind,
        destination=entry["dst"],
        gateway=entry.get("gateway", ""),
        interface=entry.get("dev", ""),
        table=table,
        protocol=str(entry.get("protocol", "")),
        metric=int(entry.get("metric", 0)),
        source=entry.get("prefsrc", ""),
        plain=entry.keys() <= _ROUTE_WORDS and not entry.get("flags"),
        text=" ".join(words),
    )


def _rule(entry: Mapping[str, Any]) -> PolicyRule:
    source, destination = _network(entry, "src"), _network(entry, "dst")
    inverted = "not" in entry
    conditions = list(_conditions(entry))
    table, action = str(entry.get("table", "")), str(entry.get("action", ""))
    words = ["not"] if inverted else []
    words += ["from", source] + ([] if destination == "all" else ["to", destination])
    words += [*conditions, *(["lookup", table] if table else [])]
    words += ["goto", str(entry["goto"])] if "goto" in entry else []
    words += [action] if action and action != "to_tbl" else []
    suppress = entry.get("suppress_prefixlen", entry.get("suppress_prefixlength", -1))
    words += [] if suppress == -1 else ["suppress_prefixlength", str(suppress)]
    words += ["priority", str(entry.get("priority", 0))]
    return _policy_rule(
        priority=int(entry.get("priority", 0)),
        source=source,
        destination=destination,
        inverted=inverted,
        conditions=tuple(conditions),
        action="goto" if "goto" in entry else action if action and not table else "lookup",
        table=table,
        suppress=int(suppress),
        plain=entry.keys() <= _RULE_WORDS,
        text=" ".join(words),
    )


def _conditions(entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield what else a packet must be, as it is typed."""
    for key in _SELECTORS:
        if key in entry:
            mask = f"/{entry['fwmask']}" if key == "fwmark" and "fwmask" in entry else ""
            yield key if entry[key] is None else f"{key} {entry[key]}{mask}"
        elif f"{key}_start" in entry:
            yield f"{key} {entry[f'{key}_start']}-{entry.get(f'{key}_end', '')}"
    if "uid_start" in entry:
        yield f"uidrange {entry['uid_start']}-{entry.get('uid_end', '')}"


def _network(entry: Mapping[str, Any], side: str) -> str:
    address, length = str(entry.get(side, "all")), entry.get(f"{side}len")
    return address if length is None else f"{address}/{length}"


_SELECTOR = re.compile(r"src (\S+) dst (\S+)(.*)")


def _policies(text: str) -> Sequence[IpsecPolicy]:
    """Read what `ip xfrm policy` prints: a line with the selector, then indented lines."""
    blocks: list[list[str]] = []
    for line in text.splitlines():
        if line.startswith("src "):
            blocks.append([line])
        elif line[:1] in ("\t", " ") and blocks:
            blocks[-1].append(line)
    return [policy for block in blocks if (policy := _policy(block)) is not None]


def _policy(block: Sequence[str]) -> IpsecPolicy | None:
    selector = _SELECTOR.match(block[0])
    words = " ".join(block[1:]).split()
    if selector is None or ":" in selector[1] or words[:1] == ["socket"]:
        return None
    direction = words[words.index("dir") + 1] if "dir" in words[:-1] else ""
    action = "ipsec" if "tmpl" in words else "block" if "block" in words else "allow"
    known = {"dir", "action", "priority", "ptype", direction, action, "block", "main"}
    unread = [word for word in words if word not in known and not is_number(word)]
    plain = not selector[3].strip() and not unread and "index" not in words
    return IpsecPolicy(
        source=selector[1],
        destination=selector[2],
        direction=direction,
        action=action,
        plain=plain,
        text=" ".join([block[0].strip(), *words]),
    )


# --- tc ----------------------------------------------------------------------------------------------------

_DISCIPLINE = re.compile(r"qdisc (\S+) (\S+) dev (\S+) (root|parent \S+|ingress|clsact)?(.*)")
# What changes with each load or each packet, and is not what the filter does.
_PASSING = re.compile(r" (?:id \d+|tag [0-9a-f]+|jited|ref \d+|bind \d+|refcnt \d+)(?= |$)")


def parse_queueing(sections: Sections) -> Queueing:
    """Read section ``queueing``: what `tc qdisc show` prints, then the filters of some devices."""
    text = sections.text("queueing")
    if len(text) >= MOST:
        raise NoAnswerError("tc prints more than 1 MB of text")
    disciplines: list[Discipline] = []
    filters: list[TrafficFilter] = []
    interface = direction = ""
    for line in text.splitlines():
        words = line.split()
        if match := _DISCIPLINE.match(line):
            shown = " ".join(_PASSING.sub("", line).split())
            place = match[1] if match[1] in ("ingress", "clsact") else (match[4] or "")
            disciplines.append(
                _discipline(interface=match[3], kind=match[1], place=place, text=shown)
            )
        elif words[:1] == ["filters"] and len(words) == 3:
            interface, direction = words[1], "egress" if words[2] == "root" else words[2]
        elif words[:1] == ["filter"]:
            filters.append(
                TrafficFilter(interface=interface, direction=direction, text=(_shown(line),))
            )
        elif line[:1] in ("\t", " ") and filters and words:
            longer = (*filters[-1].text, _shown(line))
            filters[-1] = filters[-1].model_copy(update={"text": longer})
    return Queueing(disciplines=tuple(disciplines), filters=_whole(filters))


def _shown(line: str) -> str:
    return " ".join(_PASSING.sub("", line).split())


def _whole(filters: Sequence[TrafficFilter]) -> tuple[TrafficFilter, ...]:
    """Return the filters without the lines that only announce a chain of filters, each once."""
    announced = re.compile(r"filter .*\bpref \d+ \S+(?: chain \d+)?(?: fh \S+: ht divisor \d+)?$")
    real = [f for f in filters if len(f.text) > 1 or not announced.match(f.text[0])]
    return tuple(dict.fromkeys(real))
