"""Values for the settings of a remedy, from the types of its settings model.

A newcomer's remedy gets its settings switched on by itself: a bool has two values, a Literal all of its
words, a number its bounds. Where a type is not enough (a str that is checked), the model gives examples:
``Field(examples=["32g"])``.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any

import annotated_types
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from remedy.spec import SpecSection

_FOUND: dict[type[SpecSection], dict[str, list[Any]]] = {}


def values_of(model: type[SpecSection]) -> dict[str, list[Any]]:
    """Return for each setting of a model the values that it accepts, other than its default.

    Raises:
        AssertionError: a setting has none.
    """
    if model in _FOUND:
        return _FOUND[model]
    hints = typing.get_type_hints(model, include_extras=True)
    found: dict[str, list[Any]] = {}
    for name, field in model.model_fields.items():
        default = field.get_default(call_default_factory=True)
        candidates = [*(field.examples or ()), *_values(hints[name], list(field.metadata))]
        accepted = [v for v in candidates if v != default and _accepts(model, name, v)]
        assert accepted, (
            f"{model.__name__}.{name}: its type tells no value that can be set; "
            "give some in the model: Field(examples=[...])"
        )
        found[name] = accepted
    _FOUND[model] = found
    return found


def untried(model: type[SpecSection]) -> set[str]:
    """Return the settings whose model says why no generated host can show what they do."""
    extras = {name: field.json_schema_extra for name, field in model.model_fields.items()}
    return {
        name for name, extra in extras.items() if isinstance(extra, dict) and extra.get("untried")
    }


def _accepts(model: type[SpecSection], name: str, value: Any) -> bool:
    try:
        model.model_validate({name: value})
    except ValidationError:
        return False
    return True


def _values(hint: Any, metadata: list[Any]) -> Iterator[Any]:
    """Yield values of a type; ``metadata`` is what stands beside it in ``Annotated`` or ``Field``."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        extra = list(args[1:])
        for item in extra:
            if isinstance(item, FieldInfo):
                yield from item.examples or ()
                metadata = [*metadata, *item.metadata]
        yield from _values(args[0], [*metadata, *extra])
    elif origin is typing.Literal:
        yield from args
    elif origin in (typing.Union, types.UnionType):
        for option in args:
            yield from _values(option, metadata)
    elif origin is tuple and args[-1] is Ellipsis:
        items = list(_values(args[0], []))
        yield ()
        yield from ((item,) for item in items)
        yield tuple(items)
    elif origin is tuple:
        yield tuple(next(_values(arg, []), None) for arg in args)
    elif origin is not None and issubclass(origin, Mapping):
        keys, items = list(_values(args[0], [])), list(_values(args[1], []))
        yield from ({key: item} for key in keys for item in items)
    else:
        yield from _plain(hint, metadata)


def _plain(hint: Any, metadata: list[Any]) -> Iterator[Any]:
    if hint is bool:
        yield from (True, False)
    elif hint is type(None):
        yield None
    elif hint in (int, float):
        bounds = list(_bounds(metadata))
        yield from bounds
        if len(bounds) == 2:
            yield hint(sum(bounds) / 2)
        yield from (hint(n) for n in (1, 10, 100, 4096, 29500, 131072))
    elif hint is str:
        yield from ("eth0", "example", "10.214.4.0/24")


def _bounds(metadata: list[Any]) -> Iterator[Any]:
    for item in metadata:
        if isinstance(item, annotated_types.Ge):
            yield item.ge
        elif isinstance(item, annotated_types.Gt):
            yield item.gt + 1  # type: ignore[operator]
        elif isinstance(item, annotated_types.Le):
            yield item.le
        elif isinstance(item, annotated_types.Lt):
            yield item.lt - 1  # type: ignore[operator]
