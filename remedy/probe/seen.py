"""Asking a host whether anything answers at the addresses that its peers say are their own."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from functools import lru_cache
from importlib import resources

from remedy.answers import read_block

MARK = "remedy-seen"
# An address where nobody is takes four seconds, and all are asked at the same time.
SEEN_SECONDS = 15
# Where something that is no peer may listen or not: the answer alone counts.
PORT = 22
ANSWERS = frozenset(("reply", "connection", "refusal", "neighbour"))


def render_seen(addresses: Sequence[str], nonce: str) -> str:
    """Return the sh text that asks at addresses; it writes nothing on its host."""
    values = (("nonce", nonce), ("mark", MARK), ("port", str(PORT)))
    head = [f"{name}={shlex.quote(value)}" for name, value in values]
    return "\n".join([*head, _text(), shlex.join(["seen", *addresses]), ""])


def parse_seen(stdout: str, nonce: str, addresses: Collection[str]) -> frozenset[str]:
    """Return the addresses from which any answer came; none where the host did not print all of its own."""
    block = read_block(stdout, nonce, MARK, ("begin",))
    if block is None or not block.complete:
        return frozenset()
    words = [line.split() for line in block.text.splitlines()]
    pairs = {(line[0], line[1]) for line in words if len(line) == 2}
    return frozenset(address for address, answer in pairs if answer in ANSWERS) & frozenset(
        addresses
    )


@lru_cache(maxsize=1)
def _text() -> str:
    return (resources.files("remedy.probe") / "host" / "seen.sh").read_text(encoding="utf-8")
