"""Reading YAML: plain values only, by libyaml where PyYAML was built with it (ten times as fast)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

# libyaml makes values by recursion, and a text that is nested deeply enough, such as one from a host, ends the
# process. No setting is nested as deeply as this.
DEEPEST = 100


class YamlError(ValueError):
    """A text that is no YAML, or holds more than plain values; its message fits on one line."""


# The core schema of YAML 1.2.2 (10.3.2), by what a plain word begins with: PyYAML has that of 1.1, where `no`
# is false, 0755 is 493, 1:30 is 90 and 2026-01-31 is a date.
_CORE = (
    ("bool", "true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", "[-+]?(?:0|[1-9][0-9]*)|0x[0-9a-fA-F]+", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+.0123456789",
    ),
    ("null", "~|null|Null|NULL|", ("~", "n", "N", "")),
    ("merge", "<<", "<"),
)


def parse_yaml(text: str | bytes, *, core: bool = False) -> Any:
    """Return the value that a YAML text stands for.

    Args:
        text: in UTF-8, where it is bytes.
        core: whether a plain word means what it does in YAML 1.2, as for editors and JSON Schema; else what it
            does in 1.1, as for most programs of hosts.

    Raises:
        YamlError: it cannot be read.
    """
    import yaml  # many commands read none

    # Both loaders are the safe ones: they make no objects of the text's choice.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    if core:
        loader = _core_loader(loader)
    try:
        _check(yaml, yaml.parse(text, Loader=loader))
        return yaml.load(text, Loader=loader)  # noqa: S506
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        words = " ".join(str(error.problem or error).split())
        if mark and words.endswith("cannot start any token") and _is_tab(text, mark.line):
            words = "a tab, where YAML indents with spaces"
        raise YamlError(place + words) from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        if isinstance(error, YamlError):
            raise
        raise YamlError(" ".join(str(error).split())) from error


def parse_own(text: str) -> Any:
    """Return the value of a text that is part of remedy, not looked through first as the text of others is.

    Args:
        text: what `parse_yaml` accepts; the tests see to it.
    """
    import yaml

    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506


def _core_loader(loader: Any) -> Any:
    """Return a loader whose plain words are those of YAML 1.2."""
    core: Any = type("CoreLoader", (loader,), {"yaml_implicit_resolvers": {}})
    for kind, pattern, first in _CORE:
        expression = re.compile(f"(?:{pattern})\\Z")
        core.add_implicit_resolver(f"tag:yaml.org,2002:{kind}", expression, [*first])
    return core


def _is_tab(text: str | bytes, number: int) -> bool:
    """Say whether a line of a text, from 0, is indented with a tab."""
    lines = (text.encode() if isinstance(text, str) else text).splitlines()
    if number >= len(lines):
        return False
    line = lines[number]
    return b"\t" in line[: len(line) - len(line.lstrip())]


def _check(yaml: Any, events: Iterable[Any]) -> None:
    """Refuse what is nested too deeply, and a key that is twice in a mapping: YAML's readers keep the last one.

    Raises:
        YamlError: it is so.
    """
    # For each collection that is open its keys, None for a list, and whether a key comes next.
    open_keys: list[set[str] | None] = []
    is_key: list[bool] = []
    for event in events:
        if isinstance(event, yaml.CollectionEndEvent):
            open_keys.pop()
            is_key.pop()
            continue
        node = isinstance(event, (yaml.CollectionStartEvent, yaml.ScalarEvent, yaml.AliasEvent))
        if node and is_key:
            keys = open_keys[-1]
            if keys is not None and is_key[-1] and isinstance(event, yaml.ScalarEvent):
                if event.value in keys and event.value != "<<":
                    line = event.start_mark.line + 1
                    raise YamlError(f"line {line}: the key {event.value!r} is there twice")
                keys.add(event.value)
            is_key[-1] = not is_key[-1]
        if isinstance(event, yaml.CollectionStartEvent):
            open_keys.append(set() if isinstance(event, yaml.MappingStartEvent) else None)
            is_key.append(True)
            if len(open_keys) > DEEPEST:
                raise YamlError(f"it is nested more than {DEEPEST} levels deep")
