"""Sentences about hosts that differ only in names, addresses and numbers, as one sentence.

>>> names = {"gpu01", "gpu02"}
>>> first = Sentence.of("gpu01", "no answer within 9.1 s from 7 hosts", names)
>>> second = Sentence.of("gpu02", "no answer within 9.7 s from 7 hosts", names)
>>> first.shape == second.shape
True
>>> as_one([first, second])
'no answer within 9.1 to 9.7 s from 7 hosts'
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from remedy.text import fold

LONGEST = 60
"""Characters of folded names that stand in the place of one."""
# Which ports a system gave differs from host to host, and how many of them are listed.
_PORTS = re.compile(r"(?:^| )on ports? [\d, .]*\d(, \.\.\.)?")
_TOKEN = re.compile(r"[A-Za-z0-9_](?:[\w.-]*\w)?")
_ADDRESS = re.compile(r"\d{1,3}(\.\d{1,3}){3}")
_NUMBER = re.compile(r"\d+(\.\d+)?")
# What follows a number that counts or measures, and what stands before one that is a name. Any other number,
# such as an exit code, is a word: sentences with different ones are not alike.
_UNIT = re.compile(r" ?(%|(s|ms|us|hosts?|of|others?|more|times|links?|ranks?|[KMG]i?B(/s)?)\b)")
_NUMBERED = re.compile(r"\b(rank|process|pid|port|line|id) $")


@dataclass(frozen=True)
class Sentence:
    """A sentence about a host, in pieces.

    Args:
        host: of which it is; "" for none.
        text: as it was written.
        words: what several have to have alike: the words between the values.
        values: names of hosts, addresses and numbers, in the order of the sentence.
    """

    host: str
    text: str
    words: tuple[str, ...]
    values: tuple[str, ...]

    @classmethod
    def of(cls, host: str, text: str, names: Container[str]) -> Sentence:
        """Take a sentence to pieces.

        Args:
            host: of which it is.
            text: the sentence.
            names: of the hosts that it may name.
        """
        words, values, end = [], [], 0
        plain = _PORTS.sub("", text).removeprefix(": ")
        for match in _TOKEN.finditer(plain):
            token = match[0]
            counts = _UNIT.match(plain, match.end()) or _NUMBERED.search(plain[: match.start()])
            is_number = _NUMBER.fullmatch(token) and counts
            if token in names or _ADDRESS.fullmatch(token) or is_number:
                words.append(plain[end : match.start()])
                values.append(token)
                end = match.end()
        return cls(host, text, (*words, plain[end:]), tuple(values))

    @cached_property
    def shape(self) -> tuple[object, ...]:
        """What is equal for sentences that can be one."""
        kinds = (_NUMBER.fullmatch(value) is not None for value in self.values)
        return (self.words, tuple(kinds))


def as_one(sentences: Sequence[Sentence]) -> str:
    """Return sentences of one shape as one, and whose example it is where they differ in more than amounts."""
    first = sentences[0]
    if all(sentence.text == first.text for sentence in sentences):
        return first.text
    parts, is_example = [first.words[0]], False
    columns = zip(*(sentence.values for sentence in sentences), strict=True)
    for place, column in enumerate(columns):
        after = first.words[place + 1]
        shown = _together(sentences, column, after)
        is_example |= not shown
        parts += [shown or column[0], after]
    return "".join(parts) + (f"  (as for {first.host})" if is_example and first.host else "")


def _together(sentences: Sequence[Sentence], column: Sequence[str], after: str) -> str:
    """Return what stands for all values at a place; "" where only an example can."""
    if len(set(column)) == 1:
        return column[0]
    if all(map(_NUMBER.fullmatch, column)):
        least, most = min(column, key=float), max(column, key=float)
        return f"{least} to {most}" if _UNIT.match(after) else ""
    own = all(s.host == value for s, value in zip(sentences, column, strict=True))
    names = fold(column) if own else ""
    return names if len(names) <= LONGEST else ""


def in_groups(sentences: Iterable[Sentence]) -> list[list[Sentence]]:
    """Return sentences by shape, in the order of the first of each."""
    groups: dict[tuple[object, ...], list[Sentence]] = {}
    for sentence in sentences:
        groups.setdefault(sentence.shape, []).append(sentence)
    return list(groups.values())
