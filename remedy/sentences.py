"""Sentences about hosts that differ only in names, addresses and numbers, as one sentence.

>>> names = {"gpu01", "gpu02"}
>>> first = Sentence.of("gpu01", "no answer within 9.1 s from 7 hosts", names)
>>> second = Sentence.of("gpu02", "no answer within 9.7 s from 7 hosts", names)
>>> first.shape == second.shape
True
>>> as_one([first, second])
'no answer within 9.1-9.7 s from 7 hosts'
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from remedy.text import clipped, fold, folded

LONGEST = 60
"""Characters of folded names that stand in the place of one; for more there is a word."""
PLACEHOLDER = "HOST"
NAMES = 120
"""Characters of folded hosts before what is said of them."""
WIDTH = 230
"""Characters of a line, with the names of hosts in it."""
# Which ports a system gave differs from host to host, and how many of them are listed.
_LIST = r"on ports? [\d, .]*\d(?:, \.\.\.)?"
_PORTS = re.compile(rf"^{_LIST}: | {_LIST}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_TOKEN = re.compile(rf"{_TIME.pattern}|[A-Za-z0-9_](?:[\w.-]*\w)?")
_ADDRESS = re.compile(r"\d{1,3}(\.\d{1,3}){3}")
_RUN = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]+")
_KINDS = (_ADDRESS, _RUN, _TIME)
_NUMBER = re.compile(r"\d+(\.\d+)?")
# What follows a number that counts or measures, and what stands before one that is a name. Any other number,
# such as an exit code, is a word: sentences with different ones are not alike.
_UNIT = re.compile(
    r" ?(%|(s|ms|us|of|they|others?|more|times|hosts?|links?|ranks?|lines?|files?|segments?|process(es)?"
    r"|changes?|records?|facts?|names?|GPUs?|bytes|[KMG]i?B(/s)?)\b)"
)
_NUMBERED = re.compile(r"(\b(rank|process|pid|port|line|id|record) |\w:)$")


@dataclass(frozen=True)
class Sentence:
    """A sentence about a host, in pieces.

    Args:
        host: of which it is; "" for none.
        text: as it was written.
        words: what several have to have alike: the words between the values.
        values: names of hosts, addresses, runs, times and numbers, in the order of the sentence.
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
        plain = _PORTS.sub("", text)
        for match in _TOKEN.finditer(plain):
            token = match[0]
            label = token.partition(".")[0]
            if token not in names and label in names:  # a name with its domain
                token = label
            counts = _UNIT.match(plain, match.end()) or _NUMBERED.search(plain[: match.start()])
            is_number = _NUMBER.fullmatch(token) and counts
            if token in names or is_number or any(kind.fullmatch(token) for kind in _KINDS):
                words.append(plain[end : match.start()])
                values.append(token)
                end = match.start() + len(token)
        return cls(host, text, (*words, plain[end:]), tuple(values))

    @cached_property
    def shape(self) -> tuple[object, ...]:
        """What is equal for sentences that can be one."""
        kinds = (_NUMBER.fullmatch(value) is not None for value in self.values)
        return (self.words, tuple(kinds))


def as_one(sentences: Sequence[Sentence]) -> str:
    """Return sentences of one shape as one, and whose example it is where they differ in more than amounts.

    An example is of one host, and so are all names in it.
    """
    first = sentences[0]
    if all(sentence.text == first.text for sentence in sentences):
        return first.text
    columns = list(zip(*(sentence.values for sentence in sentences), strict=True))
    amounts = [_amount(first.words[n : n + 2], column) for n, column in enumerate(columns)]
    names = [_names(sentences, column) for column in columns]
    is_example = any(not (amount or name) for amount, name in zip(amounts, names, strict=True))
    shown = first.values if is_example else names
    parts = [first.words[0]]
    for amount, value, after in zip(amounts, shown, first.words[1:], strict=True):
        parts += [amount or value, after]
    return "".join(parts) + (f"  (as for {first.host})" if is_example and first.host else "")


def _amount(around: Sequence[str], column: Sequence[str]) -> str:
    """Return what stands for all values at a place; "" where they are no amounts.

    Args:
        around: the words before the place and after it.
        column: the value of each sentence.
    """
    if len(set(column)) == 1:
        return column[0]
    before, after = around
    if all(map(_NUMBER.fullmatch, column)):
        counts = _UNIT.match(after) and not _NUMBERED.search(before)
        return f"{min(column, key=float)}-{max(column, key=float)}" if counts else ""
    if all(map(_TIME.fullmatch, column)):
        return f"{min(column)} to {max(column)}"
    return ""


def _names(sentences: Sequence[Sentence], column: Sequence[str]) -> str:
    """Return the names of the sentences' own hosts, folded; "" where something else stands at the place."""
    if not _are_own(sentences, column):
        return ""
    names = fold(column)
    return names if len(names) <= LONGEST else PLACEHOLDER


def _are_own(sentences: Sequence[Sentence], column: Sequence[str]) -> bool:
    """Say whether each sentence has the name of its own host at a place."""
    return all(
        value in (sentence.host, sentence.host.partition(".")[0])
        for sentence, value in zip(sentences, column, strict=True)
    )


def differ(sentences: Sequence[Sentence]) -> bool:
    """Say whether sentences of one shape differ in more than the names of their hosts."""
    columns = zip(*(sentence.values for sentence in sentences), strict=True)
    return any(len(set(column)) > 1 and not _are_own(sentences, column) for column in columns)


def in_groups(sentences: Iterable[Sentence]) -> list[list[Sentence]]:
    """Return sentences by shape, in the order of the first of each."""
    groups: dict[tuple[object, ...], list[Sentence]] = {}
    for sentence in sentences:
        groups.setdefault(sentence.shape, []).append(sentence)
    return list(groups.values())


def host_names(hosts: Iterable[str]) -> frozenset[str]:
    """Return what hosts are called in sentences: their names, and those without a domain."""
    every = frozenset(hosts)
    return every | {host.partition(".")[0] for host in every}


def by_sentence(texts: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return texts about hosts, those that differ only in names and amounts once, with their hosts folded.

    Args:
        texts: a host and a text about it; a host may have several.
    """
    every = list(texts)
    names = host_names(host for host, _ in every)
    groups = in_groups(Sentence.of(host, text, names) for host, text in every)
    return [(folded((s.host for s in group), NAMES), as_one(group)) for group in groups]


def in_a_line(names: str, text: str) -> str:
    """Return a sentence after the hosts that it is about, "" for none, in as many characters as people read."""
    room = max(WIDTH // 2, WIDTH - len(names))
    return f"{names}: {clipped(text, room)}" if names else clipped(text, WIDTH)


def notes_folded(notes: Iterable[str]) -> list[str]:
    """Return notes, those that begin with their host and differ only in names and amounts as one."""
    parts = {note: note.partition(": ") for note in notes}
    names = host_names(head for head, _, rest in parts.values() if rest and _TOKEN.fullmatch(head))
    sentences = (
        Sentence.of(head, rest, names) if head in names else Sentence("", note, (note,), ())
        for note, (head, _, rest) in parts.items()
    )
    return [
        f"{fold(s.host for s in group)}: {as_one(group)}" if group[0].host else group[0].text
        for group in in_groups(sentences)
    ]


def without_host(name: str, text: str) -> str:
    """Return a sentence about a host without its name and address in front."""
    return re.sub(rf"^{re.escape(name)}(?: \([^()]*\))?: ", "", text)
