"""The two building blocks of every record: a frozen, strict model, and the value *unknown*."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Literal, ParamSpec, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict

T = TypeVar("T")
P = ParamSpec("P")

MOST_SHARED = 4096
"""Values of one kind that are kept for hosts that have the same."""

MOST_ALIKE = 64
"""Answers of one function that ``once_alike`` keeps."""


class Record(BaseModel):
    """A value that is compared, stored and sent: frozen, and closed to keys it does not know."""

    # The validator of a model is made when it is first used: a command uses some of some hundred.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


def shared(make: Callable[..., T]) -> Callable[..., T]:
    """Have equal values be one object: what most hosts of a fleet have takes memory and work once.

    >>> class Size(Record):
    ...     mib: int
    >>> size = shared(Size)
    >>> size(mib=4) is size(mib=4)
    True
    """
    return lru_cache(maxsize=MOST_SHARED, typed=True)(make)


def once_alike(decide: Callable[P, T]) -> Callable[P, T]:
    """Have a pure function work once for the same objects, which many hosts share.

    What is the same object is seen at once, where comparing tables of all hosts of a fleet would take as long
    as working. The objects must not change; they are kept with the answer, so that no other has their place.
    """
    kept: dict[tuple[int, ...], tuple[object, T]] = {}

    @wraps(decide)
    def ask(*objects: P.args, **named: P.kwargs) -> T:
        key = tuple(map(id, (*objects, *named.values())))
        if key not in kept:
            if len(kept) >= MOST_ALIKE:
                del kept[next(iter(kept))]
            kept[key] = ((objects, named), decide(*objects, **named))
        return kept[key][1]

    return ask


class Document(BaseModel):
    """A value that is written to a file and read by other versions.

    Fields that this version does not know are kept and ignored, so that a digest over the whole still holds.
    """

    model_config = ConfigDict(frozen=True, extra="allow", strict=True, defer_build=True)


class Headed(Document):
    """A document that a command prints with ``--json``.

    Args:
        tool_version: the remedy that printed it.
        began: when the command began; ``ended``: when it printed this; RFC 3339 in UTC.
        run: the id of the run that it is about; None where none is on record.
        inventory: the inventory file, from the root and with links followed, so that two files of one name are
            told apart; of a plan file that is shown its name, which is all that it has; None for a command
            without one.
    """

    model_config = ConfigDict(populate_by_name=True)

    tool_version: str
    began: str
    ended: str
    run: str | None
    inventory: str | None


class Unknown(Record):
    """What is not known, and why.

    It is a value of its own: neither "absent" nor "fine". Code that reads a ``Fact`` has to say what it
    does with an ``Unknown``, because the type checker asks.
    """

    kind: Literal["unknown"] = "unknown"
    reason: str


Fact: TypeAlias = T | Unknown
