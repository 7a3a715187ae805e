"""Folding: what reads the same on many hosts, but for each host's own name and addresses, is shown once.

>>> words = {"gpu01": ("gpu01", "10.0.0.1"), "gpu02": ("gpu02", "10.0.0.2")}
>>> lines = {"gpu01": "127.0.1.1 gpu01", "gpu02": "127.0.1.1 gpu02"}
>>> parts = [Specimen(host, host, (), (line,)) for host, line in lines.items()]
>>> [(group.hosts, group.is_same) for group in alike(parts, words)]
[(('gpu01', 'gpu02'), False)]
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from remedy.text import fold

T = TypeVar("T")
_OF_NAMES = frozenset("_.-")
_MARK = re.compile(r"\0(e|\d+)")
Words = Mapping[str, Sequence[str]]
"""By host its own words, in one order for all hosts: its name, its addresses; "" for one that it has not."""


@dataclass(
    slots=True
)  # one that is frozen is made three times as slowly, and there are as many as changes
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

    @cached_property
    def items(self) -> tuple[T, ...]:
        """The things themselves."""
        return tuple([part.item for part in self.specimens])

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """Whose they are, each once."""
        return tuple(dict.fromkeys([part.host for part in self.specimens if part.host]))


LONGEST = 60
"""Characters of folded names or addresses that stand in the place of one; for more there is a word."""
NO_ADDRESSES: Mapping[str, Sequence[str]] = MappingProxyType({})
PLACEHOLDERS = ("HOST", "HOST", "ADDRESS")


def folded_text(group: Fold[Any], place: int, words: Words) -> str:
    """Return a text of a group as it is of all its hosts: where each has its own name, these are folded.

    Args:
        group: of ``alike``.
        place: of the text among those of its specimens.
        words: with which the group was made.
    """
    example = group.specimens[0]
    text = example.texts[place]
    if group.is_same or all(part.texts[place] == text for part in group.specimens):
        return text
    # Texts that differ have no word of their host's but at a mark.
    marked = blurred(text, words.get(example.host, ()))
    return _MARK.sub(lambda mark: _unmarked(mark[1], group.hosts, words), marked)


def _unmarked(mark: str, hosts: Sequence[str], words: Words) -> str:
    """Return what stands for the words of all hosts at a mark of ``blurred``."""
    if mark == "e":
        return "\0"
    number = int(mark)
    every = fold(own for host in hosts for own in words.get(host, ())[number : number + 1] if own)
    return every if len(every) <= LONGEST else PLACEHOLDERS[min(number, len(PLACEHOLDERS) - 1)]


def differs(group: Fold[Any], places: Iterable[int]) -> bool:
    """Say whether a text at one of these places is not the same for all hosts of a group."""
    texts = [part.texts for part in group.specimens]
    return not group.is_same and any(each[at] != texts[0][at] for at in places for each in texts)


def alike(parts: Iterable[Specimen[T]], words: Words) -> list[Fold[T]]:
    """Return parts in groups that read the same, in the order of their first ones; none is lost.

    A text that several hosts have is compared as it is: in a list of all hosts one's own name is one of many.
    """
    every = list(parts)
    kinds, numbers = _kinds(every)
    first: list[str | None] = [None] * len(kinds)
    same = [False] * len(kinds)
    for part, number in zip(every, numbers, strict=True):
        if first[number] is None:
            first[number] = part.host
        elif first[number] != part.host:
            same[number] = True
    shared = _shared(kinds, first, same)
    keys = [
        (shape, tuple(blurred(text, ()) for text in texts)) if is_same else None
        for (shape, texts), is_same in zip(kinds, same, strict=True)
    ]
    groups: dict[tuple[object, ...], list[Specimen[T]]] = {}
    # By kind, the group of what several hosts have alike.
    group_by_kind: dict[int, list[Specimen[T]]] = {}
    for part, number in zip(every, numbers, strict=True):
        group = group_by_kind.get(number)
        if group is None:
            group = groups.setdefault(keys[number] or _own_key(part, shared, words), [])
            if same[number]:
                group_by_kind[number] = group
        group.append(part)
    return [Fold(tuple(group), _are_same(group)) for group in groups.values()]


def _are_same(group: Sequence[Specimen[Any]]) -> bool:
    """Say whether all texts are equal; what many hosts have alike are mostly the same objects."""
    texts = {id(part.texts): part.texts for part in group}
    return all(each == group[0].texts for each in texts.values())


_Kind = tuple[tuple[object, ...], tuple[str, ...]]


def _kinds(every: Sequence[Specimen[Any]]) -> tuple[list[_Kind], list[int]]:
    """Return each shape with its texts once, and for each part which of them it has."""
    kinds: dict[_Kind, int] = {}
    # What many hosts have alike are mostly the same objects, which need not be compared.
    known: dict[tuple[int, int], int] = {}
    numbers = []
    for part in every:
        objects = (id(part.shape), id(part.texts))
        number = known.get(objects)
        if number is None:
            number = known[objects] = kinds.setdefault((part.shape, part.texts), len(kinds))
        numbers.append(number)
    return list(kinds), numbers


def _own_key(
    part: Specimen[Any], shared: Container[tuple[Any, ...]], words: Words
) -> tuple[object, ...]:
    """Return what is equal for what reads the same but for each host's own words."""
    own = words.get(part.host, ())
    texts = (
        blurred(text, () if (part.shape, place, text) in shared else own)
        for place, text in enumerate(part.texts)
    )
    return (part.shape, tuple(texts))


def _shared(
    kinds: Iterable[_Kind], first: Iterable[str | None], same: Iterable[bool]
) -> set[tuple[Any, ...]]:
    """Return the texts that several hosts have at a place.

    Args:
        kinds: each shape with its texts.
        first: the first host that has it; ``same``: whether several have it as a whole.
    """
    owners: dict[tuple[Any, ...], str | None] = {}
    shared = set()
    for (shape, texts), host, is_same in zip(kinds, first, same, strict=True):
        for place, text in enumerate(texts):
            key = (shape, place, text)
            if owners.setdefault(key, host) != host or is_same:
                shared.add(key)
    return shared


def by_text(
    texts: Iterable[tuple[str, str]], addresses: Mapping[str, Sequence[str]] = NO_ADDRESSES
) -> list[tuple[str, str]]:
    """Return texts about hosts, each once with its hosts folded, and their own names in it as well.

    Args:
        texts: a host and a text about it; a host may have several.
        addresses: each host's own, in the same order for all.
    """
    every = list(texts)
    specimens = (Specimen(text, host, (), (text,)) for host, text in every)
    words = own_words((host for host, _ in every), addresses)
    return [(fold(group.hosts), folded_text(group, 0, words)) for group in alike(specimens, words)]


def blurred(text: str, words: Sequence[str]) -> str:
    """Return a text with a mark in place of each of a host's own words, where they stand by themselves.

    No text that has no such word gives the same.
    """
    text = text.replace("\0", "\0e")
    places = [
        (at, number, at + len(word))
        for number, word in enumerate(words)
        if word and word in text
        for at in _places(text, word)
    ]
    if not places:
        return text
    parts, end = [], 0
    for at, number, after in sorted(places):
        if at >= end:  # of two words at one place the first counts
            parts += [text[end:at], f"\0{number}"]
            end = after
    return "".join([*parts, text[end:]])


def _places(text: str, word: str) -> Iterator[int]:
    """Yield where a word stands by itself, or is the beginning of a longer name with a dot."""
    at = text.find(word) if all(map(_is_inside, word)) else -1
    while at >= 0:
        after = text[at + len(word) : at + len(word) + 1]
        if not _is_inside(text[at - 1 : at] if at else "") and (
            after == "." or not _is_inside(after)
        ):
            yield at
        at = text.find(word, at + 1)


def _is_inside(character: str) -> bool:
    return character.isalnum() or character in _OF_NAMES


def own_words(hosts: Iterable[str], addresses: Mapping[str, Sequence[str]]) -> Words:
    """Return each host's name, the name up to its first dot, and its addresses."""
    return {host: (host, _short(host), *addresses.get(host, ())) for host in hosts}


def _short(host: str) -> str:
    short = host.partition(".")[0]
    return "" if short == host else short
