"""Rules of nftables in words, as ``nft -s list ruleset`` prints them (nft(8)), from their JSON.

Findings quote rules, and users accept a rule by its text: it is what nft prints, without counters and
handles. What this module does not know is shown as JSON: the same rule always has the same text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Any

USUAL_BURST = 5
"""Packets, which nft does not print."""

LONGEST = 400
"""Characters of a rule; of a longer one the end is a digest, so that two of them are not mistaken."""

_UNNAMED_META = frozenset(
    {"iif", "oif", "iifname", "oifname", "iifgroup", "oifgroup", "ibrname", "obrname"}
)


@lru_cache(maxsize=65536)
def rule_text(expression: str, comment: str = "") -> str:
    """Return a rule as text.

    Args:
        expression: its statements, as JSON.
        comment: its comment; "" for none.
    """
    text = " ".join(_statement(statement) for statement in json.loads(expression))
    if comment:
        text = f'{text} comment "{comment}"'
    return shortened(text)


def shortened(text: str) -> str:
    """Return a text in one line of printable characters, of a long one its beginning and a digest of all."""
    if len(text) <= LONGEST and text.isprintable():
        return text
    shown = "".join(
        character if character.isprintable() else f"\\x{ord(character):02x}" for character in text
    )
    if len(shown) <= LONGEST:
        return shown
    return (
        f"{shown[:LONGEST]}... (sha256 {sha256(text.encode('utf-8', 'replace')).hexdigest()[:12]})"
    )


def _statement(statement: Any) -> str:
    if not isinstance(statement, dict) or len(statement) != 1:
        return _json(statement)
    ((kind, value),) = statement.items()
    writer = _STATEMENTS.get(kind)
    try:
        return writer(value) if writer is not None else _unknown(kind, value)
    except (TypeError, KeyError, ValueError, AttributeError):
        return _json(statement)


def _unknown(kind: str, value: Any) -> str:
    return str(kind) if value is None else f"{kind} {_json(value)}"


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _match(value: Mapping[str, Any]) -> str:
    left, operation, right = value["left"], value["op"], value["right"]
    name = expression_text(left)
    if _is_masked_flags(left):
        mask = expression_text(left["&"][1])
        sign = "!= " if operation == "!=" else ""
        return f"tcp flags {sign}{_plain(right)} / {mask}"
    sign = "" if operation in ("==", "in") and not _explicit(left, operation) else f"{operation} "
    return f"{name} {sign}{_value(left, right)}"


def _is_masked_flags(left: Any) -> bool:
    return (
        isinstance(left, dict)
        and "&" in left
        and left["&"][0] == {"payload": {"protocol": "tcp", "field": "flags"}}
    )


def _explicit(left: Any, operation: str) -> bool:
    """Return whether nft writes ``==`` after what is compared."""
    if operation != "==" or not isinstance(left, dict):
        return False
    return any(key in left for key in "&|^") or left == {
        "payload": {"protocol": "tcp", "field": "flags"}
    }


def _value(left: Any, right: Any) -> str:
    """Return the right side of a match."""
    if isinstance(left, dict) and "&" in left:
        left = left["&"][0]
    key = left.get("meta", left.get("ct", {})) if isinstance(left, dict) else {}
    name = key.get("key", "") if isinstance(key, dict) else ""
    if isinstance(right, bool):
        return "exists" if right else "missing"
    if name == "mark" and isinstance(right, int):
        return f"0x{right:08x}"
    if isinstance(right, str) and name in (*_UNNAMED_META, "day", "time") and right[:1] != "@":
        return f'"{right}"'
    if isinstance(right, dict) and name in _UNNAMED_META and isinstance(right.get("set"), list):
        return f"{{ {', '.join(_quoted(item) for item in right['set'])} }}"
    if isinstance(right, dict) and "range" in right and name == "hour":
        return "-".join(f'"{end}"' for end in right["range"])
    return _plain(right)


def _quoted(item: Any) -> str:
    return f'"{item}"' if isinstance(item, str) else _plain(item)


def _plain(value: Any) -> str:
    """Return a value: a number, a word, a range, a set, a concatenation, or an expression."""
    if isinstance(value, list):
        return ",".join(_plain(item) for item in value)
    if isinstance(value, dict) and len(value) == 1:
        ((kind, inner),) = value.items()
        if kind == "set":
            items = inner if isinstance(inner, list) else [inner]
            return f"{{ {', '.join(_plain(item) for item in items)} }}"
        if kind == "range":
            return "-".join(_plain(end) for end in inner)
        if kind == "prefix":
            return f"{inner['addr']}/{inner['len']}"
        if kind == "concat":
            return " . ".join(_plain(item) for item in inner)
        if kind == "elem":
            return _plain(inner["val"])
        return expression_text(value)
    return str(value)


def expression_text(value: Any) -> str:
    """Return what a match looks at, or a value that is computed."""
    if not isinstance(value, dict) or len(value) != 1:
        return _plain(value)
    ((kind, inner),) = value.items()
    writer = _EXPRESSIONS.get(kind)
    return writer(inner) if writer is not None else _json(value)


def _payload(value: Mapping[str, Any]) -> str:
    if "protocol" in value:
        return f"{value['protocol']} {value['field']}"
    return f"@{value['base']},{value['offset']},{value['len']}"


def _meta(value: Mapping[str, Any]) -> str:
    key = str(value["key"])
    return key if key in _UNNAMED_META else f"meta {key}"


def _ct(value: Mapping[str, Any]) -> str:
    way = f"{value['dir']} " if "dir" in value else ""
    return f"ct {way}{value['key']}"


def _fib(value: Mapping[str, Any]) -> str:
    flags = value.get("flags", [])
    names = [flags] if isinstance(flags, str) else flags
    return f"fib {' . '.join(names)} {value['result']}"


def _numgen(value: Mapping[str, Any]) -> str:
    return f"numgen {value['mode']} mod {value['mod']}"


def _binary(sign: str) -> Callable[[Any], str]:
    return lambda value: f" {sign} ".join(_operand(item, _json(value)) for item in value)


def _operand(item: Any, whole: str) -> str:
    is_of_mark = isinstance(item, int) and '"mark"' in whole
    return f"0x{item:08x}" if is_of_mark else expression_text(item)


_EXPRESSIONS: Mapping[str, Callable[[Any], str]] = {
    "payload": _payload,
    "meta": _meta,
    "ct": _ct,
    "fib": _fib,
    "numgen": _numgen,
    "concat": lambda value: " . ".join(expression_text(item) for item in value),
    "tcp option": lambda value: f"tcp option {value['name']} {value.get('field', '')}".rstrip(),
    "exthdr": lambda value: f"exthdr {value['name']} {value.get('field', '')}".rstrip(),
    "socket": lambda value: f"socket {value['key']}",
    "jhash": lambda value: f"jhash {expression_text(value['expr'])} mod {value['mod']}",
    **{sign: _binary(sign) for sign in ("&", "|", "^", "<<", ">>")},
}


def _verdict(verdict: Mapping[str, Any]) -> str:
    ((action, target),) = verdict.items()
    return f"{action} {target['target']}" if isinstance(target, dict) else str(action)


def _vmap(value: Mapping[str, Any]) -> str:
    key, data = expression_text(value["key"]), value["data"]
    if not isinstance(data, dict):
        return f"{key} vmap {data}"
    name = value["key"].get("meta", {}).get("key") if isinstance(value["key"], dict) else ""
    written = _quoted if name in _UNNAMED_META else _plain
    entries = ", ".join(f"{written(item)} : {_verdict(verdict)}" for item, verdict in data["set"])
    return f"{key} vmap {{ {entries} }}"


def _limit(value: Mapping[str, Any]) -> str:
    over = "over " if value.get("inv") else ""
    unit = value.get("rate_unit", "packets")
    amount = f"{value['rate']}" if unit == "packets" else f"{value['rate']} {unit}"
    burst = ""
    if value.get("burst", USUAL_BURST) != USUAL_BURST:
        burst = f" burst {value['burst']} {value.get('burst_unit', 'packets')}"
    return f"limit rate {over}{amount}/{value.get('per', 'second')}{burst}"


def _over(value: Mapping[str, Any]) -> str:
    return "over " if value.get("inv") else ""


def _set_statement(value: Mapping[str, Any]) -> str:
    inside = [_plain(value["elem"]), *(_statement(item) for item in value.get("stmt", ()))]
    return f"{value['op']} {value['set']} {{ {' '.join(inside)} }}"


def _meter(value: Mapping[str, Any]) -> str:
    size = f" size {value['size']}" if "size" in value else ""
    inside = f"{expression_text(value['key'])} {_statement(value['stmt'])}"
    return f"meter {value['name']}{size} {{ {inside} }}"


def _mangle(value: Mapping[str, Any]) -> str:
    key, target = value["key"], value["value"]
    is_mark = isinstance(target, int) and "mark" in _json(key)
    return f"{expression_text(key)} set {f'0x{target:08x}' if is_mark else _plain(target)}"


def _reject(value: Any) -> str:
    if not value or value == {"type": "icmpx", "expr": "port-unreachable"}:
        return "reject"
    kind = value["type"]
    return "reject with tcp reset" if kind == "tcp reset" else f"reject with {kind} {value['expr']}"


def _log(value: Any) -> str:
    known = value or {}
    prefix = f' prefix "{known["prefix"]}"' if "prefix" in known else ""
    group = f" group {known['group']}" if "group" in known else ""
    return f"log{prefix}{group}"


def _queue(value: Any) -> str:
    known = value or {}
    number = f" num {_plain(known['num'])}" if "num" in known else ""
    flags = known.get("flags", ())
    names = [flags] if isinstance(flags, str) else flags
    return f"queue{number}{''.join(f' {name}' for name in names)}"


def _nat(kind: str) -> Callable[[Any], str]:
    def write(value: Any) -> str:
        known = value or {}
        address = _plain(known["addr"]) if "addr" in known else ""
        port = f":{_plain(known['port'])}" if "port" in known else ""
        return f"{kind} to {address}{port}" if address or port else kind

    return write


_STATEMENTS: Mapping[str, Callable[[Any], str]] = {
    "match": _match,
    "vmap": _vmap,
    "limit": _limit,
    "set": _set_statement,
    "meter": _meter,
    "mangle": _mangle,
    "reject": _reject,
    "log": _log,
    "queue": _queue,
    "synproxy": lambda value: (
        f"synproxy mss {value['mss']} wscale {value['wscale']} {' '.join(value.get('flags', ()))}"
    ).rstrip(),
    "counter": lambda _: "counter",
    "unread": str,
    "quota": lambda value: f"quota {_over(value)}{value['val']} {value['val_unit']}",
    "ct count": lambda value: f"ct count {_over(value)}{value['val']}",
    "ct helper": lambda value: f'ct helper set "{value}"',
    **{name: _nat(name) for name in ("dnat", "snat", "redirect", "masquerade")},
    "jump": lambda value: f"jump {value['target']}",
    "goto": lambda value: f"goto {value['target']}",
}
