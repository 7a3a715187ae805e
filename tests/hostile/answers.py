"""Answers of hosts that mean harm: real ones with something done to them, and bombs."""

from __future__ import annotations

import base64
import gzip
import json
import random
import re
from collections.abc import Callable
from dataclasses import replace

from remedy.plan import Fleet
from remedy.probe import HostState
from tests.unit import build
from tests.unit.probe_data import NONCE, RECORDED, recorded, replaced, section

MIB = 1 << 20
HARM = (
    b"\x1b]52;c;ZXZpbA==\x07",
    "\u202e\u200b\u2028".encode(),
    b"\xff\xfe\x00\x80",
    b'"\\ud800"',
    b"9" * 5000,
    b"-1",
    b"1e999",
    b"[" * 1000,
    b'{"a":' * 300,
    b"'; touch /tmp/evil; '",
    b'include "/etc/nftables.d/***************************************************b"\n',
    b"../../../../etc/shadow",
    b"\n" * 50,
    b"gpu[1-999999999]",
    b"{{ 7*7 }}%s%n[bold]",
)


def mutated(body: bytes, rng: random.Random) -> bytes:
    """Return an answer with one to four things done to it."""
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(body) + 1)
        end = min(len(body), at + rng.choice((1, 3, 20, 300, 5000)))
        way = rng.randrange(8)
        if way == 0:
            body = body[:at] + rng.choice(HARM) + body[at:]
        elif way == 1:
            body = body[:at] + rng.choice(HARM) + body[end:]
        elif way == 2:
            body = body[:at] + body[end:]
        elif way == 3:
            body = body[:at] + body[at:end] * rng.choice((2, 50)) + body[end:]
        elif way == 4:
            body = body[:at] + bytes(rng.randrange(256) for _ in range(end - at)) + body[end:]
        elif way == 5:
            words = body.split(b" ")
            spot = rng.randrange(len(words))
            words[spot] = rng.choice(HARM)
            body = b" ".join(words)
        elif way == 6:
            lines = body.split(b"\n")
            spot = rng.randrange(len(lines))
            lines[spot], lines[-spot] = lines[-spot], lines[spot]
            body = b"\n".join(lines)
        else:
            body = body[:at]
    return body


def framed(body: bytes, *, nonce: str = NONCE, complete: bool = True) -> str:
    """Return what a host with gzip prints for a decoded answer."""
    packed = base64.b64encode(gzip.compress(body, 1)).decode()
    end = f"\n\nremedy-probe {nonce} end\n" if complete else ""
    return f"\nremedy-probe {nonce} gzip\n{packed}{end}"


def probe_answer(rng: random.Random) -> str:
    """Return an answer of the probe: mutated before or after it is packed, or in one of its sections."""
    body = recorded(rng.choice(RECORDED))
    way = rng.randrange(10)
    if way == 0:
        return mutated(framed(body).encode(), rng).decode("utf-8", "backslashreplace")
    if way == 1:
        return framed(body, nonce=f"{rng.getrandbits(128):032x}")
    if way < 6:
        parts = body.split(b"\n@")
        spot = rng.randrange(len(parts))
        head, newline, rest = parts[spot].partition(b"\n")
        parts[spot] = head + newline + mutated(rest, rng)
        return framed(b"\n@".join(parts))
    return framed(mutated(body, rng), complete=rng.random() < 0.9)


def line_answer(lines: list[str], nonce: str, rng: random.Random, mark: str = "") -> str:
    """Return lines of a script, some of them mutated, some of another script."""
    printed = []
    for line in lines * rng.choice((1, 1, 1, 3)):
        own = nonce if rng.random() < 0.95 else "0" * len(nonce)
        text = line if rng.random() < 0.4 else _text(line, rng)
        printed.append(f"{mark} {own} {text}".lstrip())
    return _text("\n".join(printed), rng) if rng.random() < 0.2 else "\n".join(printed)


def json_line(document: object, rng: random.Random) -> str:
    """Return a JSON document with values of other kinds in some places."""
    harm: list[object] = [
        None,
        -1,
        1e308,
        10**400,
        "\x1b[2J",
        "\ud800",
        [],
        {},
        True,
        [[]] * 9,
        _deep(rng.choice((50, 900))),
    ]

    def spoiled(value: object) -> object:
        if rng.random() < 0.08:
            return rng.choice(harm)
        if isinstance(value, dict):
            return {key: spoiled(item) for key, item in value.items() if rng.random() > 0.02}
        return [spoiled(item) for item in value] if isinstance(value, list) else value

    return json.dumps(spoiled(document))


def fleet_with(state: HostState) -> Fleet:
    """Return a fleet of a sound host and one whose answer was read, at an address of the inventory."""
    names = enumerate(("gpu01", "gpu02"), 1)
    fleet = build.fleet(*(build.host_state(name, f"10.0.0.{number}") for number, name in names))
    return replace(fleet, states={**fleet.states, "gpu01": state})


def _deep(depth: int) -> object:
    value: object = 0
    for _ in range(depth):
        value = [value]
    return value


def _text(text: str, rng: random.Random) -> str:
    return mutated(text.encode("utf-8", "surrogatepass"), rng).decode("utf-8", "backslashreplace")


_BUSY = recorded("lab-busy")
# What a host can print to fill the memory, or the time. Each is a few hundred KiB at most on the way.
BOMBS: dict[str, Callable[[], str]] = {
    "zeros": lambda: framed(section("kernel", bytes(200 * MIB))),
    "lines": lambda: framed(section("kernel", b"/a:\n" * (10 * MIB))),
    "one file of empty lines": lambda: framed(
        section("file-facts", b"81a4 0 0 4194304 /etc/hosts\n")
        + section("file-contents", b"/etc/hosts:\n" * (4 * MIB))
    ),
    "deep rules": lambda: framed(replaced(_BUSY, "nft", b"[" * 1_000_000)),
    "many rules": lambda: framed(
        replaced(_BUSY, "nft", b'{"nftables":[' + b"{}," * (3 * MIB) + b"{}]}")
    ),
    "many sections": lambda: framed(section("a") * 200_000),
    "no mark": lambda: f"remedy-probe {NONCE} " * 100_000,
    "no text": lambda: f"remedy-probe {NONCE} gzip\n" + "\u2603" * (4 * MIB // 3),
    "words": lambda: framed(replaced(_BUSY, "ip", b"a " * (2 * MIB))),
    "numbers": lambda: framed(replaced(_BUSY, "nft", b'{"nftables":[' + b"1," * 390_000 + b"1]}")),
    "a ball of zip": lambda: framed(gzip.compress(bytes(200 * MIB))),
}


def _flood(name: str, piece: bytes) -> Callable[[], str]:
    return lambda: framed(replaced(_BUSY, name, piece * (4 * MIB // len(piece))))


SECTIONS = sorted(set(re.findall(rb"\n@0{32} begin (\S+) ", _BUSY)))
PIECES = {
    "words": b"a ",
    "lines": b"a\n",
    "letters": b"a",
    "commas": b'{"a":1},',
    "paths": b"/a:b c\n",
}
BOMBS |= {
    f"{what} in {name.decode()}": _flood(name.decode(), piece)
    for name in SECTIONS
    for what, piece in PIECES.items()
}
