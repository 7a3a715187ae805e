"""What many hosts of a plan have alike, said once: in the file of a large plan, and to whoever looks at all.

>>> from remedy.plan.change import Finding, FindingKind
>>> of = dict(remedy="x", kind=FindingKind.REPORT, label="", title="old")
>>> every = {name: (Finding(host=name, **of),) for name in ("a", "b")}
>>> [(shared.item.title, shared.hosts) for shared in shared_items(every)]
[('old', ('a', 'b'))]
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Generic, TypeVar

from remedy.plan.change import Change, Finding

OfHost = TypeVar("OfHost", Change, Finding)
FORMAT = 1
"""Of a plan file in which each change has its host, and stands by itself."""
LARGE_FORMAT = 2
"""Of one in which what several hosts have alike stands once, with ``hosts``; ``order`` is that of the hosts."""
LARGE = 64
"""Hosts of the largest plan that has each change by itself, as people read it with other tools."""

_ALL_BUT_HOST: Mapping[type, Callable[[Any], tuple[Any, ...]]] = {
    kind: attrgetter(*(name for name in kind.model_fields if name != "host"))
    for kind in (Change, Finding)
}


@dataclass(frozen=True)
class Shared(Generic[OfHost]):
    """What is the same on some hosts, at the same place among what they have.

    Args:
        item: as the first of them has it.
        hosts: all of them; None stands for the fleet as a whole.
        place: of it among what each of them has, from 0.
    """

    item: OfHost
    hosts: tuple[str | None, ...]
    place: int


def format_for(hosts: int) -> int:
    """Return the format of the file of a plan that is about so many hosts."""
    return LARGE_FORMAT if hosts > LARGE else FORMAT


def all_but_host(item: Change | Finding) -> tuple[Any, ...]:
    """Return what is equal for two changes, or findings, that differ in nothing but their hosts."""
    more = json.dumps(item.model_extra, sort_keys=True) if item.model_extra else ""
    return (more, *_ALL_BUT_HOST[type(item)](item))


def shared_items(by_host: Mapping[Any, Sequence[OfHost]]) -> tuple[Shared[OfHost], ...]:
    """Return what hosts have, each once: in the order of their places, so that each host's own order stays.

    Args:
        by_host: what each host has, in order.
    """
    texts: dict[tuple[int, bool, int], tuple[OfHost, list[str | None]]] = {}
    numbers: dict[tuple[Any, ...], int] = {}
    # What was copied for a host has the very parts of the first one, which is seen without comparing them.
    known: dict[tuple[int, ...], int] = {}
    for host, items in by_host.items():
        for place, item in enumerate(items):
            parts = _parts_of(item)
            number = known.get(parts)
            if number is None:
                number = known[parts] = numbers.setdefault(all_but_host(item), len(numbers))
            texts.setdefault((place, host is None, number), (item, []))[1].append(host)
    every = sorted(texts.items(), key=lambda pair: pair[0][0])
    return tuple(Shared(item, tuple(hosts), key[0]) for key, (item, hosts) in every)


def kinds_of(
    shared: Iterable[Shared[OfHost]], by_host: Mapping[Any, Sequence[OfHost]]
) -> dict[int, int]:
    """Return which of what is shared each item is, by its identity: what is said of it is worked out once.

    Args:
        shared: of the items of ``by_host``.
        by_host: what each host has, in order.
    """
    return {
        id(by_host[host][part.place]): number
        for number, part in enumerate(shared)
        for host in part.hosts
    }


def _parts_of(item: Change | Finding) -> tuple[int, ...]:
    """Return which objects an item is made of, its host apart."""
    more = item.model_extra
    return (id(more) if more else 0, *map(id, _ALL_BUT_HOST[type(item)](item)))


class Pool(Generic[OfHost]):
    """What hosts have, made of the same objects where they have it alike: thousands take memory once."""

    def __init__(self) -> None:
        self.items: list[OfHost] = []
        self._first: dict[tuple[Any, ...], OfHost] = {}

    @property
    def hosts(self) -> set[str | None]:
        """Whose they are; None stands for the fleet as a whole."""
        return {item.host for item in self.items}

    def take(self, items: Iterable[OfHost]) -> None:
        """Add items, each made of the objects of an equal one that came before."""
        for item in items:
            first = self._first.setdefault(all_but_host(item), item)
            self.items.append(item if first is item else _of(item.host, first))


def folded(shared: Iterable[Shared[Any]], writer: Callable[[Any], dict[str, Any]]) -> list[Any]:
    """Return what several hosts have as the file of a large plan holds it.

    Args:
        shared: what it is.
        writer: returns one item as JSON has it.
    """
    return [
        {**writer(part.item), **({"hosts": list(part.hosts)} if len(part.hosts) > 1 else {})}
        for part in shared
    ]


def unfolded(items: Sequence[OfHost], order: Sequence[str]) -> tuple[OfHost, ...]:
    """Return what each host has, host after host, of items as the file of a large plan holds them.

    Args:
        items: of which those of several hosts have ``hosts`` beside their fields.
        order: of the hosts; what is of the fleet as a whole comes before.

    Raises:
        ValueError: they are not as such a file holds them.
    """
    by_host: dict[Any, list[OfHost]] = {None: [], **{host: [] for host in order}}
    for item in items:
        extra = dict(item.model_extra or {})
        if "hosts" not in extra:
            by_host[item.host].append(item)
            continue
        hosts = extra.pop("hosts")
        if not isinstance(hosts, list) or not hosts or hosts[0] != item.host:
            raise ValueError("hosts")
        plain = type(item).model_construct(
            **{name: getattr(item, name) for name in type(item).model_fields}, **extra
        )
        for host in hosts:
            if host not in by_host or not isinstance(host, str | None):
                raise ValueError(str(host))
            by_host[host].append(plain if host == item.host else _of(host, plain))
    return tuple(item for known in by_host.values() for item in known)


_set = object.__setattr__


def _of(host: str | None, item: OfHost) -> OfHost:
    """Return an item as another host has it; what ``model_copy`` copies besides takes ten times as long."""
    copy = type(item).__new__(type(item))
    _set(copy, "__dict__", {**item.__dict__, "host": host})
    _set(copy, "__pydantic_fields_set__", item.__pydantic_fields_set__)
    _set(copy, "__pydantic_extra__", item.__pydantic_extra__)
    _set(copy, "__pydantic_private__", item.__pydantic_private__)
    return copy


def laid_out(document: Mapping[str, Any]) -> str:
    """Return the JSON of a plan file with a line for each change, finding and content."""
    plan = ",\n".join(f"{json.dumps(k)}: {_lines(v)}" for k, v in sorted(document["plan"].items()))
    return f'{{"digest": {json.dumps(document["digest"])}, "plan": {{\n{plan}\n}}}}\n'


def _lines(value: Any) -> str:
    if isinstance(value, dict) and value:
        parts = (
            f"{json.dumps(k)}: {json.dumps(v, sort_keys=True)}" for k, v in sorted(value.items())
        )
        return "{\n" + ",\n".join(parts) + "\n}"
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(json.dumps(part, sort_keys=True) for part in value) + "\n]"
    return json.dumps(value, sort_keys=True)
