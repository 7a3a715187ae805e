"""Values with a given text in every field that takes text, made from the type alone: no field is forgotten."""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from collections.abc import Mapping, Sequence, Set
from typing import Any

from pydantic import BaseModel

from remedy.diagnose.diagnosis import Explanation
from remedy.errors import RemedyError, UnreachableError
from remedy.verify.look.compare import HostView
from remedy.verify.verdict import Verdict

BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
HIDDEN = (
    "\u00ad\u034f\u115f\u180e\u200b\u200c\u200d\u2028\u2029\u2060\u3164\ufe0f\ufeff\U000e0041\ud800"
)
DEPTH = 12
# What modules import for the type checker alone.
NAMES = {kind.__name__: kind for kind in (Explanation, HostView, Verdict)}


def filled(hint: Any, text: str, depth: int = DEPTH, **given: Any) -> Any:
    """Return a value of a type with ``text`` for each text in it.

    Args:
        hint: a type as annotations have it.
        text: what each text is.
        depth: how deep a type may hold itself.
        given: fields that have other values.
    """
    origin, parts = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin is typing.Annotated:
        return filled(parts[0], text, depth)
    if origin in (typing.Union, types.UnionType):
        kinds = [part for part in parts if part is not type(None)]
        return filled(kinds[0], text, depth)
    if origin is typing.Literal:
        return parts[0]
    if isinstance(origin, type) and issubclass(origin, RemedyError):
        return UnreachableError(text, next_step=text)
    is_model = isinstance(origin, type) and issubclass(origin, BaseModel)
    if is_model or dataclasses.is_dataclass(origin):
        return _record(origin, text, depth, given)
    return _plain(origin, parts, text, depth)


def _record(kind: Any, text: str, depth: int, given: Mapping[str, Any]) -> Any:
    hints = typing.get_type_hints(kind, localns=NAMES)
    if issubclass(kind, BaseModel):
        names = list(kind.model_fields)
        values = {
            name: given[name] if name in given else filled(hints[name], text, depth - 1)
            for name in names
        }
        return kind.model_construct(**values)
    names = [field.name for field in dataclasses.fields(kind) if field.init]
    return kind(**{n: given[n] if n in given else filled(hints[n], text, depth - 1) for n in names})


def _plain(origin: Any, parts: tuple[Any, ...], text: str, depth: int) -> Any:
    if depth <= 0:
        return ()
    if origin in (str, Any):
        return text
    if isinstance(origin, type) and issubclass(origin, enum.Enum):
        return next(iter(origin))
    if origin in (bool, int, float, bytes):
        return origin(text.encode("utf-8", "surrogatepass") if origin is bytes else 1)
    if origin is tuple and parts and parts[-1] is not Ellipsis:
        return tuple(filled(part, text, depth - 1) for part in parts)
    inner = [filled(part, text, depth - 1) for part in parts if part is not Ellipsis]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return dict([tuple(inner)])
    if isinstance(origin, type) and issubclass(origin, Set):
        return frozenset(inner)
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return tuple(inner)
    raise TypeError(f"no example of {origin!r}")


def shows(text: str) -> bool:
    """Say whether nothing in a text but the ends of its lines is a character that does not show."""
    lines = text.split("\n")
    return all(line.isprintable() and not set(line) & set(BIDI + HIDDEN) for line in lines)
