"""What a match of nftables looks at, and with what it compares: from libnftables-json(5) to conditions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, reduce
from ipaddress import ip_address
from operator import or_
from typing import Any

from remedy.firewall import spans
from remedy.firewall.packets import (
    ACK,
    ADVERTISES,
    FIN,
    PSH,
    RST,
    SOLICITS,
    SYN,
    Condition,
    Either,
    Test,
)
from remedy.firewall.spans import Spans

_FLAGS = {
    "fin": FIN,
    "syn": SYN,
    "rst": RST,
    "psh": PSH,
    "ack": ACK,
    "urg": 32,
    "ecn": 64,
    "cwr": 128,
}
_DISCOVERY = {135: SOLICITS, 136: ADVERTISES}
_ETHER = {0x0800: "ip", 0x0806: "arp", 0x86DD: "ip6"}
_OTHERS = frozenset(
    {"udp", "icmp", "icmpv6", "igmp", "sctp", "dccp", "udplite", "ah", "esp", "comp"}
)
_ADDRESSES = {"saddr", "daddr", "arp-saddr", "arp-daddr"}
_IPV6_ADDRESSES = {"saddr6", "daddr6"}
_NUMBERS = {
    "sport": spans.ALL_PORTS,
    "dport": spans.ALL_PORTS,
    "mss": spans.ALL_PORTS,
} | dict.fromkeys(_ADDRESSES, spans.ALL_ADDRESSES)
_NUMBERS |= dict.fromkeys(_IPV6_ADDRESSES, spans.ALL_IPV6_ADDRESSES)
_MARKS = {"mark", "connection-mark"}


@dataclass(frozen=True)
class Elements:
    """What a set or map holds.

    Args:
        items: its elements as JSON has them.
        fills: whether rules put packets' addresses into it, so that what is in it now says nothing of the next.
        expires: whether something in it leaves it by itself after a time.
    """

    items: tuple[Any, ...] = ()
    fills: bool = False
    expires: bool = False


@lru_cache(maxsize=4096)
def elements_of(definition: str) -> Elements:
    """Read the definition of a set or map."""
    value = json.loads(definition)
    flags = value.get("flags", ())
    items = value.get("elem", ())
    return Elements(
        tuple(items),
        "dynamic" in ([flags] if isinstance(flags, str) else flags),
        any(expires(item) for item in items),
    )


def expires(item: Any) -> bool:
    """Return whether an element, or the key of an entry of a map, leaves by itself after a time."""
    if isinstance(item, list) and item:
        return expires(item[0])
    inner = item.get("elem") if isinstance(item, dict) else None
    return isinstance(inner, dict) and ("expires" in inner or "timeout" in inner)


class OtherFormError(ValueError):
    """A value is in a form that is not read here: nobody knows what its rule asks."""


Sets = Mapping[str, str]
"""The definition of each set of a table, by name."""


def named(name: str, sets: Sets) -> Elements | None:
    """Return what a set holds that a rule names with ``@``; None where it is not known."""
    definition = sets.get(name.removeprefix("@"))
    return None if definition is None else elements_of(definition)


def field_of(expression: Any) -> tuple[str, int]:
    """Return what a match looks at, in a word of ``packets``, and the bits of it that count.

    "never": it is of another protocol than TCP; a text in words where nobody can answer it.
    """
    mask = 2**32 - 1
    if isinstance(expression, dict) and "&" in expression:
        expression, bits = expression["&"]
        mask = _bits(bits)
    ((kind, value),) = (
        expression.items()
        if isinstance(expression, dict) and len(expression) == 1
        else (("", expression),)
    )
    if kind == "payload" and isinstance(value, dict):
        return _payload(value), mask
    if kind == "meta" and isinstance(value, dict):
        key = str(value.get("key", ""))
        return _META.get(key, f"meta {key}"), mask
    if kind == "ct" and isinstance(value, dict) and "dir" not in value:
        key = str(value.get("key", ""))
        return _CT.get(key, f"ct {key}"), mask
    if kind == "fib" and isinstance(value, dict):
        return _fib(value), mask
    if kind == "tcp option" and value == {"name": "maxseg", "field": "size"}:
        return "mss", mask
    # TCP of the cluster has none of the headers that IPv6 can have in front of it.
    return "never" if kind == "exthdr" else str(kind or "something"), mask


_META = {
    "iifname": "iif",
    "iif": "iif",
    "oifname": "oif",
    "oif": "oif",
    "l4proto": "l4proto",
    "nfproto": "nfproto",
    "protocol": "ethertype",
    "mark": "mark",
    "pkttype": "packet-type",
    "ibrname": "bridge-name",
    "obrname": "bridge-name",
}
_CT = {
    "state": "state",
    "mark": "connection-mark",
    "direction": "direction",
    "status": "connection-status",
}


def _payload(value: Mapping[str, Any]) -> str:
    protocol, name = value.get("protocol", ""), str(value.get("field", ""))
    if protocol == "ip" and name in ("saddr", "daddr"):
        return name
    if protocol == "ip6" and name in ("saddr", "daddr"):
        return f"{name}6"
    if protocol in ("tcp", "th") and name in ("dport", "sport"):
        return name
    if protocol == "tcp" and name == "flags":
        return "flags"
    if protocol == "ether" and name == "type":
        return "ethertype"
    if protocol == "arp":
        known = {"saddr ip": "arp-saddr", "daddr ip": "arp-daddr", "operation": "arp-operation"}
        return known.get(name, f"arp {name}")
    if (protocol, name) == ("icmpv6", "type"):
        return "icmpv6 type"
    return "never" if protocol in _OTHERS else f"{protocol} {name}".strip()


def _fib(value: Mapping[str, Any]) -> str:
    flags = value.get("flags", ())
    names = {flags} if isinstance(flags, str) else set(flags)
    result = value.get("result")
    if result == "type" and names & {"daddr", "saddr"} and not names & {"mark", "oif"}:
        return "fib-daddr" if "daddr" in names else "fib-saddr"
    if result == "oif" and "saddr" in names and "iif" in names:
        return "reverse-path"
    return f"fib {' . '.join(sorted(names))} {result}"


def _bits(value: Any) -> int:
    """Return the bits that a number, a flag of TCP or several of them stand for.

    Raises:
        ValueError: it is a text of neither.
        TypeError: it is something else.
    """
    if isinstance(value, str):
        return _FLAGS[value] if value in _FLAGS else int(value, 0)
    if isinstance(value, dict) and "|" in value:
        value = value["|"]
    if isinstance(value, list):
        return reduce(or_, map(_bits, value), 0)
    return _number(value, "flags")


def tests_of(expression: Any, operation: str, right: Any, sets: Sets) -> tuple[Test, ...]:
    """Return the conditions of a match: one, where every value of its is readable."""
    negated = operation == "!="
    if isinstance(expression, dict) and "concat" in expression:
        return (_concatenated(expression["concat"], right, sets, negated),)
    try:
        name, mask = field_of(expression)
        return (_compared(name, mask, operation, right, sets),)
    except (ValueError, TypeError, KeyError):
        return (Condition("something", None, negated),)


def _compared(name: str, mask: int, operation: str, right: Any, sets: Sets) -> Condition:
    negated = operation == "!="
    if name == "mss" and negated:
        return Condition("tcp option", None)  # where there is none, it is neither equal nor unequal
    if name == "flags" and operation == "in":
        return Condition("flags", ((0, 0),), True, mask & _bits(right))
    if operation in ("<", ">", "<=", ">="):
        return Condition(name, _beyond(name, operation, right))
    items = _items([_bits(right)] if name == "flags" and isinstance(right, list) else right, sets)
    return Condition(name, None if items is None else values_of(name, items), negated, mask)


def _items(right: Any, sets: Sets) -> Iterable[Any] | None:
    """Return what the right side of a match names; None where it is not known."""
    if isinstance(right, str) and right.startswith("@"):
        elements = named(right, sets)
        return None if elements is None else elements.items
    if isinstance(right, dict) and "set" in right:
        inside = right["set"]
        if isinstance(inside, str):
            return _items(inside, sets)
        return inside if isinstance(inside, list) else [inside]
    return right if isinstance(right, list) else [right]


def _beyond(name: str, operation: str, right: Any) -> Spans | None:
    """Return the numbers below or above one."""
    everything = _NUMBERS.get(name)
    if everything is None:
        return None
    number = _number(right, name)
    last = everything[0][1]
    bounds = {
        "<": (0, number - 1),
        "<=": (0, number),
        ">": (number + 1, last),
        ">=": (number, last),
    }
    low, high = bounds[operation]
    return ((low, high),) if low <= high else ()


def values_of(name: str, items: Iterable[Any]) -> Spans | frozenset[str] | None:
    """Return what elements stand for in a field; None where one of them cannot be read."""
    known = [_inner(item) for item in items]
    try:
        if name in _NUMBERS or name in _MARKS:
            return spans.merge(span for item in known for span in _spans(item, name))
        if name == "flags":
            return spans.merge((bits, bits) for bits in map(_bits, known))
        if name == "reverse-path":
            # A route that is missing is false or 0; the name of an interface says more than is known here.
            return frozenset({"another"}) if all(i in (False, "0", 0) for i in known) else None
        words = frozenset(word for item in known for word in _words(item, name))
    except (ValueError, TypeError, KeyError):
        return None
    return words


def _inner(item: Any) -> Any:
    return item["elem"]["val"] if isinstance(item, dict) and "elem" in item else item


def _words(item: Any, name: str) -> tuple[str, ...]:
    if isinstance(item, list):
        return tuple(word for inner in item for word in _words(inner, name))
    if isinstance(item, dict) or item is None:
        raise OtherFormError
    if name in ("l4proto", "ip protocol", "ip6 nexthdr"):
        return ("tcp" if item == 6 else str(item),)
    if name == "ethertype":
        number = int(item, 0) if isinstance(item, str) and item.startswith("0x") else item
        return (str(_ETHER.get(number, number)),)
    if name == "direction" and item in (0, 1):
        return ("reply" if item else "original",)
    if name == "icmpv6 type":
        return (_DISCOVERY.get(item, str(item)),)
    if name == "ip6 hoplimit":
        return (str(_number(item, name)),)
    if isinstance(item, str):
        return (item.replace("unicast", "host"),) if name == "packet-type" else (item,)
    raise OtherFormError


def _spans(item: Any, name: str) -> Spans:
    if isinstance(item, dict) and "range" in item:
        low, high = item["range"]
        return ((_number(low, name), _number(high, name)),)
    if isinstance(item, dict) and "prefix" in item:
        prefix = item["prefix"]
        return spans.of_networks([f"{prefix['addr']}/{prefix['len']}"])
    number = _number(item, name)
    return ((number, number),)


def _number(item: Any, name: str) -> int:
    if isinstance(item, bool):
        raise OtherFormError
    is_address = name in _ADDRESSES | _IPV6_ADDRESSES and isinstance(item, str)
    return int(ip_address(item)) if is_address else int(item)


def _concatenated(parts: list[Any], right: Any, sets: Sets, negated: bool) -> Test:
    """Return the condition that several fields together are among concatenated values."""
    items = _items(right, sets)
    if items is None:
        return Condition("a set that is not known", None, negated)
    alternatives = [alternative_of(parts, item) for item in items]
    if None in alternatives:
        return Condition("concatenated values", None, negated)
    return Either(tuple(a for a in alternatives if a is not None), negated)


def alternative_of(parts: list[Any], item: Any) -> tuple[Condition, ...] | None:
    """Return the conditions of one element of a concatenation; None where it is not one of these fields."""
    value = _inner(item)
    values = value.get("concat") if isinstance(value, dict) else None
    if not isinstance(values, list) or len(values) != len(parts):
        return None
    try:
        fields = [field_of(part) for part in parts]
    except (ValueError, TypeError, KeyError):
        return None
    return tuple(
        Condition(name, values_of(name, [part]), False, mask)
        for (name, mask), part in zip(fields, values, strict=True)
    )


MarkChange = tuple[int, "int | None"]


def mark_change(value: Any) -> MarkChange:
    """Return which bits of the mark ``meta mark set VALUE`` keeps, and which it flips then."""
    everything = 2**32 - 1
    if isinstance(value, int) and not isinstance(value, bool):
        return 0, value
    if value == {"meta": {"key": "mark"}}:
        return everything, 0
    if isinstance(value, dict) and len(value) == 1:
        ((sign, inner),) = value.items()
        operate = _MARK_OPERATIONS.get(sign)
        if operate is not None and isinstance(inner, list) and len(inner) == 2:
            keep, flip = mark_change(inner[0])
            bits = inner[1]
            if flip is not None and isinstance(bits, int):
                return operate(keep, flip, bits)
    return 0, None


_MARK_OPERATIONS: Mapping[str, Callable[[int, int, int], MarkChange]] = {
    "&": lambda keep, flip, bits: (keep & bits, flip & bits),
    "|": lambda keep, flip, bits: (keep & ~bits & (2**32 - 1), flip & ~bits | bits),
    "^": lambda keep, flip, bits: (keep, flip ^ bits),
}
