"""Settings in words: what each means and may be, and what is wrong with a value."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from remedy.spec.section import SpecSection
from remedy.text import clipped, visible

LONGEST = 80
WORDS = 200
"""Characters of what a validator says, which may hold the value."""
# Where the text of a setting begins in a docstring: a line of ``Args:``, or a sentence.
ARGUMENT = re.compile(r"^ {4}(\w+): ", re.M)
SENTENCE = re.compile(r"(?:^|(?<=\s))``(\w+)``: ", re.M)
_NAMES = {
    "boolean": "true or false",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}


def introduction(model: type[SpecSection]) -> str:
    """Return what a section is about, without its settings."""
    text = inspect.cleandoc(model.__doc__ or "").partition("\nArgs:")[0]
    return SENTENCE.split(text)[0].strip()


def meanings(model: type[SpecSection]) -> dict[str, str]:
    """Return what each setting of a section means, as far as the docstring of its model says it.

    That is Google's ``Args:``, or sentences that each begin with the setting's name in double backquotes and a
    colon.
    """
    text = inspect.cleandoc(model.__doc__ or "")
    _, heading, arguments = text.partition("\nArgs:\n")
    parts = ARGUMENT.split(arguments) if heading else SENTENCE.split(text)
    pairs = zip(parts[1::2], parts[2::2], strict=True)
    known = {name: " ".join(words.split()).replace("``", "`") for name, words in pairs}
    return {name: words for name, words in known.items() if name in model.model_fields}


def allowed(schema: Mapping[str, Any]) -> str:
    """Return what a value may be by its JSON Schema, in words: "a whole number from 1 to 65535, or null"."""
    if "description" in schema:
        return str(schema["description"])
    options = schema.get("anyOf") or schema.get("oneOf")
    if options:
        return ", or ".join(dict.fromkeys(map(allowed, options)))
    if "const" in schema:
        return str(json.dumps(schema["const"]))
    if "enum" in schema:
        return "one of " + ", ".join(map(str, schema["enum"]))
    kind = schema.get("type")
    if kind == "array" and isinstance(schema.get("items"), dict):
        some = ", not empty" if schema.get("minItems") else ""
        return f"a list{some}, each {allowed(schema['items'])}"
    if kind == "string" and not schema.keys().isdisjoint(("minLength", "maxLength")):
        most = f" of at most {schema['maxLength']} characters" if "maxLength" in schema else ""
        return f"text{most}{', not empty' if schema.get('minLength') else ''}{_limits(schema)}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"a mapping, each value {allowed(schema['additionalProperties'])}"
    return _NAMES.get(str(kind), "another value") + _limits(schema)


def _limits(schema: Mapping[str, Any]) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if low is not None and high is not None:
        return f" from {_number(low)} to {_number(high)}"
    words = (("at least", low), ("at most", high), ("above", above), ("below", below))
    limits = [f", {word} {_number(bound)}" for word, bound in words if bound is not None]
    if "pattern" in schema:
        limits.append(f" that matches {schema['pattern']}")
    return "".join(limits)


def _number(value: float) -> str:
    return f"{value:g}" if abs(value) < 1e6 else f"{int(value)}"


def complaints(
    section: str, model: type[SpecSection], value: object, errors: Iterable[Mapping[str, Any]]
) -> list[str]:
    """Return what is wrong with a section, in words: where, what it is, and what it may be.

    Args:
        section: its name.
        model: of the section.
        value: what the file has for it.
        errors: of pydantic (``ValidationError.errors``); none of a key that does not exist.
    """
    every = [(_place(value, error["loc"]), error) for error in errors]
    # Where several kinds of values may stand, each has its own error. The innermost is about what was meant.
    inner = {place[:end] for place, _ in every for end in range(1, len(place))}
    kept = [(place, error) for place, error in every if place not in inner]
    return list(dict.fromkeys(_complaint(section, model, place, error) for place, error in kept))


def _place(value: object, location: Sequence[str | int]) -> tuple[str | int, ...]:
    """Return where an error is, without the names that pydantic gives to kinds of values."""
    place: list[Any] = []
    for part in location:
        if isinstance(value, Mapping):
            # As the file has it: pydantic makes text of a key that is none.
            keys = [key for key in value if part in (key, str(key))]
            if not keys and place:
                continue
            place.append(keys[0] if keys else part)
            value = value.get(place[-1])
        elif isinstance(value, Sequence) and isinstance(part, int) and part < len(value):
            place.append(part)
            value = value[part]
    return tuple(place)


def _complaint(
    section: str,
    model: type[SpecSection],
    place: Sequence[str | int],
    error: Mapping[str, Any],
) -> str:
    outer = schema = _schema(model)
    for part in place:
        outer, schema = schema, _inner(schema, part) or {}
    is_key = error["loc"][-1:] == ("[key]",)
    at = clipped(visible(_path(section, place[:-1] if is_key else place)), LONGEST)
    if error["type"] == "value_error":  # a validator's own words
        words = visible(str(error["ctx"]["error"]))
        if words:  # one without any has no more to say than what the value may be
            return f"{at}: {clipped(words, WORDS)}"
    if is_key:
        return f"{at} has the key {_shown(error['input'])}, needs {_key(outer)}"
    if not place:
        names = list(model.model_fields)
        return f"{section} is {_shown(error['input'])}, needs settings such as `{names[0]}:`"
    return f"{at} is {_shown(error['input'])}, needs {allowed(schema)}"


def _key(schema: Mapping[str, Any]) -> str:
    """Return what a key of a mapping may be."""
    options = (schema, *schema.get("anyOf", ()))
    names = (option["propertyNames"] for option in options if "propertyNames" in option)
    return allowed({"type": "string", **next(names, {})})


def _schema(model: type[SpecSection]) -> Mapping[str, Any]:
    return model.model_json_schema(mode="validation")


def _inner(schema: Mapping[str, Any], part: str | int) -> Mapping[str, Any] | None:
    """Return the schema of an element or a value of a mapping; None where there is none of that name."""
    for option in (schema, *schema.get("anyOf", ())):
        if isinstance(part, int) and isinstance(option.get("items"), dict):
            return dict(option["items"])
        if part in option.get("properties", {}):
            return dict(option["properties"][part])
        if isinstance(option.get("additionalProperties"), dict):
            return dict(option["additionalProperties"])
    return None


def _path(section: str, place: Sequence[object]) -> str:
    return ".".join([section, *(part if isinstance(part, str) else _shown(part) for part in place)])


def _shown(value: object) -> str:
    """Return a value as a settings file has it."""
    try:
        return clipped(json.dumps(value, ensure_ascii=False), LONGEST)
    except (TypeError, ValueError):  # a date, say
        return clipped(str(value), LONGEST)
