"""Settings in words: what each means and may be, and what is wrong with a value."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from remedy.spec.section import SpecSection
from remedy.text import clipped

LONGEST = 80
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


def complaint(section: str, model: type[SpecSection], error: Mapping[str, Any]) -> str:
    """Return what is wrong with a value, in words: where, what it is, and what it may be.

    Args:
        section: its name.
        model: of the section.
        error: of pydantic (``ValidationError.errors``); not of a key that does not exist.
    """
    if error["type"] == "value_error":  # a validator's own words
        return f"{_path(section, error['loc'])}: {error['ctx']['error']}"
    if not error["loc"]:
        names = list(model.model_fields)
        return f"{section} is {_shown(error['input'])}, needs settings such as `{names[0]}:`"
    place, schema = [], _schema(model)
    for part in error["loc"]:
        inner = _inner(schema, part)
        if inner is None:
            continue  # the name of a choice of types, of which the schema has all
        place.append(part)
        schema = inner
    value = f"{_path(section, place)} is {_shown(error['input'])}"
    return f"{value}, needs {allowed(schema)}"


def _schema(model: type[SpecSection]) -> Mapping[str, Any]:
    return model.model_json_schema(mode="validation")


def _inner(schema: Mapping[str, Any], part: str | int) -> Mapping[str, Any] | None:
    """Return the schema of an element or a value of a mapping; None where there is none of that name."""
    for option in (schema, *schema.get("anyOf", ())):
        if isinstance(part, int) and isinstance(option.get("items"), dict):
            return dict(option["items"])
        if not isinstance(part, str):
            continue
        if part in option.get("properties", {}):
            return dict(option["properties"][part])
        if isinstance(option.get("additionalProperties"), dict):
            return dict(option["additionalProperties"])
    return None


def _path(section: str, place: Sequence[object]) -> str:
    return ".".join([section, *(str(part) for part in place)])


def _shown(value: object) -> str:
    """Return a value as a settings file has it."""
    try:
        return clipped(json.dumps(value, ensure_ascii=False), LONGEST)
    except (TypeError, ValueError):  # a date, say
        return clipped(str(value), LONGEST)
