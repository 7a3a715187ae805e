"""Folding: what reads the same on many hosts, but for each host's own name and addresses, is shown once.

>>> words = {"gpu01": ("gpu01", "10.0.0.1"), "gpu02": ("gpu02", "10.0.0.2")}
>>> lines = {"gpu01": "127.0.1.1 gpu01", "gpu02": "127.0.1.1 gpu02"}
>>> parts = [Specimen(host, host, (), (line,)) for host, line in lines.items()]
>>> [(group.hosts, group.is_same) for group in alike(parts, words)]
[(('gpu01', 'gpu02'), False)]
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from remedy.text import fold

T = TypeVar("T")
_TOKEN = re.compile(r"[\w.-]+")
Words = Mapping[str, Sequence[str]]
"""By host its own words, in one order for all hosts: its name, its addresses; "" for one that it has not."""


@dataclass(frozen=True)
class Specimen(Generic[T]):
    """Something of one host, as it is compared with the same of others.

    Args:
        item: what it is.
        host: whose; "" for the fleet as a whole.
        shape: what has to be equal.
        texts: what has to be equal but for the host's own words.
    """

    item: T
    host: str
    shape: tuple[object, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Fold(Generic[T]):
    """What is shown once.

    Args:
        specimens: all of it, in the order in which it came; the first is the example.
        is_same: whether all texts are equal; otherwise the others have their own words in the example's place.
    """

    specimens: tuple[Specimen[T], ...]
    is_same: bool

    @property
    def items(self) -> tuple[T, ...]:
        """The things themselves."""
        return tuple(part.item for part in self.specimens)

    @property
    def hosts(self) -> tuple[str, ...]:
        """Whose they are, each once."""
        return tuple(dict.fromkeys(part.host for part in self.specimens if part.host))


def alike(parts: Iterable[Specimen[T]], words: Words) -> list[Fold[T]]:
    """Return parts in groups that read the same, in the order of their first ones; none is lost.

    A text that several hosts have is compared as it is: in a list of all hosts one's own name is one of many.
    """
    every = list(parts)
    first: dict[tuple[object, ...], str] = {}
    same: dict[tuple[object, ...], tuple[str, ...]] = {}
    for part in every:
        whole = (part.shape, part.texts)
        if first.setdefault(whole, part.host) != part.host and whole not in same:
            same[whole] = tuple(blurred(text, ()) for text in part.texts)
    shared = _shared(first, same)
    groups: dict[tuple[object, ...], list[Specimen[T]]] = {}
    for part in every:
        texts = same.get((part.shape, part.texts)) or tuple(
            blurred(text, () if (part.shape, place, text) in shared else words.get(part.host, ()))
            for place, text in enumerate(part.texts)
        )
        groups.setdefault((part.shape, texts), []).append(part)
    return [
        Fold(tuple(group), all(part.texts == group[0].texts for part in group))
        for group in groups.values()
    ]


def _shared(
    first: Mapping[tuple[Any, ...], str], same: Container[tuple[Any, ...]]
) -> set[tuple[Any, ...]]:
    """Return the texts that several hosts have at a place.

    Args:
        first: of each shape with its texts, the first host that has it.
        same: those that several hosts have as a whole.
    """
    owners: dict[tuple[Any, ...], str] = {}
    shared = set()
    for whole, host in first.items():
        shape, texts = whole
        for place, text in enumerate(texts):
            key = (shape, place, text)
            if owners.setdefault(key, host) != host or whole in same:
                shared.add(key)
    return shared


def by_text(texts: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return texts about hosts, each once with its hosts folded, in the words of the first.

    Args:
        texts: a host and a text about it; a host may have several.
    """
    every = list(texts)
    specimens = (Specimen(text, host, (), (text,)) for host, text in every)
    folds = alike(specimens, own_words((host for host, _ in every), {}))
    return [(fold(group.hosts), group.items[0]) for group in folds]


def blurred(text: str, words: Sequence[str]) -> str:
    """Return a text with a mark in place of each of a host's own words, where they stand by themselves.

    No text that has no such word gives the same.
    """
    text = text.replace("\0", "\0e")
    if not any(word and word in text for word in words):
        return text
    return _TOKEN.sub(lambda match: _marked(match[0], words), text)


def _marked(token: str, words: Sequence[str]) -> str:
    for number, word in enumerate(words):
        rest = token[len(word) :]
        if word and token.startswith(word) and (not rest or rest[0] == "."):
            return f"\0{number}{rest}"
    return token


def own_words(hosts: Iterable[str], addresses: Mapping[str, Sequence[str]]) -> Words:
    """Return each host's name, the name up to its first dot, and its addresses."""
    return {host: (host, _short(host), *addresses.get(host, ())) for host in hosts}


def _short(host: str) -> str:
    short = host.partition(".")[0]
    return "" if short == host else short
