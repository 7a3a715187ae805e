"""What a close look at a host printed, as lines by section. Pure."""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Iterable, Mapping
from functools import cached_property
from importlib import resources

from remedy.answers import read_answer
from remedy.text import is_number
from remedy.transport import Output
from remedy.values import Record
from remedy.verify.scripts import why_silent

LONGEST = 240  # characters of a line
# Interpreters that hang are given up after 6 s, and an import of torch after 25.
SECONDS = 150.0
# Values of settings with such a name are not shown: nobody asked for them.
_SECRET = re.compile(
    r"(?i)([\w.-]*(?:KEY|TOKEN|SECRET|PASSW|CREDENTIAL)[\w.-]*\s*[=:]\s*)\S+|(://[^\s/:@]*:)[^\s/@]+(?=@)"
)
_COUNTS = re.compile(r"\bcounter packets (\d+) bytes \d+")
_SAVED = re.compile(r"^\[(\d+):\d+\] (.*)$")
_POLICY = re.compile(r"^:(\S+ (?:DROP|REJECT)) \[(\d+):\d+\]$")
_DROPPED = re.compile(r"\(?\b(?:dropped|overlimits) (\d+)")


class Look(Record):
    """One look at a host.

    Args:
        host: its name.
        lines: by section.
        failure: why there is no look, or no whole one.
    """

    host: str
    lines: Mapping[str, tuple[str, ...]] = {}
    failure: str = ""

    @cached_property
    def counts(self) -> dict[str, int]:
        """Everything that counts packets: numbers of the kernel, rules with a counter, queues."""
        counts: dict[str, int] = {}
        for line in self.lines.get("count", ()):
            name, _, number = line.rpartition(" ")
            counts[name] = int(number) if is_number(number) else 0
        for section in ("iptables", "ip6tables"):
            counts |= _saved(section, self.lines.get(section, ()))
        counts |= _nft(self.lines.get("nft", ()))
        counts |= _queues("queue", self.lines.get("queue", ()))
        return counts | _queues("filter", self.lines.get("filter", ()))


def script(nonce: str, address: str, peers: Iterable[str], python: str, *, again: bool) -> str:
    """Render the POSIX sh text of one look.

    Args:
        nonce: new for each look.
        address: the host's own.
        peers: the addresses of the others.
        python: an interpreter that the inventory names, or "".
        again: whether this is the second look of a run, which reads only what moves.
    """
    values = {
        "nonce": nonce,
        "address": address,
        "peers": " ".join(peers),
        "python": python,
        "again": "again" if again else "",
    }
    head = "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items())
    text = resources.files("remedy.verify.look").joinpath("host.sh").read_text("utf-8")
    # Read as a whole before it runs: what it starts must not read the rest of it.
    return f"{head}{{\n{text}}} </dev/null\n"


def new_nonce() -> str:
    """Return 16 hexadecimal digits."""
    return secrets.token_hex(8)


def read(host: str, nonce: str, output: Output | None) -> Look:
    """Read what a look printed; hostile text in it is bounded, and stays text.

    Args:
        host: the host's name.
        nonce: of the look.
        output: what came back.
    """
    answer = read_answer(output.stdout if output else "", nonce)
    lines: dict[str, list[str]] = {}
    for line in answer.lines:
        section, _, text = line.partition(" ")
        shown = "".join(c if c.isprintable() else " " for c in text).strip()[:LONGEST]
        if shown:
            lines.setdefault(section, []).append(_SECRET.sub(r"\1\2***", shown))
    whole = bool(lines.pop("end", None))
    failure = "" if whole else answer.fault or why_silent(output)
    return Look(host=host, lines={k: tuple(v) for k, v in lines.items()}, failure=failure)


def _saved(section: str, lines: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    table = ""
    for line in lines:
        if line.startswith("*"):
            table = line[1:]
        elif (rule := _SAVED.match(line)) and not line.endswith("-j ACCEPT"):
            counts[f"{section} {table}: {rule[2]}"] = int(rule[1])
        elif policy := _POLICY.match(line):
            counts[f"{section} {table}: policy of {policy[1]}"] = int(policy[2])
    return counts


def _nft(lines: Iterable[str]) -> dict[str, int]:
    """The rules of nftables that count and do not accept, each with its table and chain."""
    counts: dict[str, int] = {}
    table = chain = ""
    for line in lines:
        if line.startswith("table "):
            table = line.removeprefix("table ").rstrip(" {")
        elif line.startswith("chain "):
            chain = line.removeprefix("chain ").rstrip(" {")
        elif (count := _COUNTS.search(line)) and not line.endswith(" accept"):
            counts[f"nft {table} {chain}: {_COUNTS.sub('counter', line)}"] = int(count[1])
    return counts


def _queues(section: str, lines: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    name = section
    for line in lines:
        if line.startswith("qdisc ") or " protocol " in line:
            name = f"{section} {line}"
        elif dropped := _DROPPED.search(line):
            counts[f"{name}: dropped"] = counts.get(f"{name}: dropped", 0) + int(dropped[1])
    return counts
