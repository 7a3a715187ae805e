"""Remedies and causes in words, for ``remedy explain`` and docs/remedies.md."""

from __future__ import annotations

import inspect
import json
import textwrap
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any, NamedTuple

from remedy.causes import NO_HOST_FIX, Cause
from remedy.errors import UsageError
from remedy.plan import Remedy, all_causes, remedies, section_models
from remedy.plan.registry import built_in
from remedy.spec import SECTIONS, SpecSection
from remedy.spec.words import allowed, introduction, meanings

WIDTH = 100
INDENT = 18


def overview() -> str:
    """Return every name: the remedies with their first line, the causes by group."""
    changing = [remedy for remedy in remedies() if not remedy.only_reports]
    reporting = [remedy for remedy in remedies() if remedy.only_reports]
    return "\n".join(
        (
            "Remedies, which change hosts:",
            *_listed(changing),
            "",
            "Reports, which change nothing and name the fix:",
            *_listed(reporting),
            "",
            "Settings that belong to no remedy (remedy.yaml):",
            *(_row(name, introduction(model)) for name, model in SECTIONS.items()),
            "",
            "Causes:",
            *(_row(group, ", ".join(names)) for group, names in by_group().items()),
            "",
            "Details: remedy explain NAME",
        )
    )


def explain(name: str) -> str:
    """Return a remedy or a cause in words.

    Args:
        name: a remedy's name, a section of remedy.yaml, or a label.

    Raises:
        UsageError: there is none of that name; the nearest is named.
    """
    # Nearly all are remedy's own, and one module is read sooner than all.
    if (remedy := built_in(name)) is not None:
        return remedy_text(remedy)
    for remedy in remedies():
        if remedy.name == name:
            return remedy_text(remedy)
    if name in SECTIONS:
        return section_text(name)
    if name in all_causes():
        return cause_text(all_causes()[name])
    names = [*(remedy.name for remedy in remedies()), *SECTIONS, *all_causes()]
    of = [section for section, model in section_models().items() if name in model.model_fields]
    if of:
        raise UsageError(
            f"{name!r} is a setting, and explained with its section",
            next_step=" or ".join(f"remedy explain {section}" for section in of[:3]),
        )
    near = get_close_matches(name, names, n=3)
    raise UsageError(
        f"no remedy, section of settings or cause is called {name!r}",
        next_step=f"Did you mean {' or '.join(near)}?" if near else "All names: remedy explain",
    )


def remedy_text(remedy: Remedy[Any]) -> str:
    """Return a remedy in words: what it does, what it cures, and its settings."""
    parts = [remedy.name, plain(remedy.text)]
    parts += [
        f"{words}: {', '.join(labels)}" for words, labels in labels_of(remedy).items() if labels
    ]
    parts.append(
        "\n".join(
            (
                f"Settings, section `{remedy.name}` of remedy.yaml:",
                *(f"  {key}: {default}" for key, default in settings(remedy)),
            )
        )
    )
    parts.append(textwrap.fill(" ".join(plain(settings_text(remedy)).split()), WIDTH))
    return "\n\n".join(part for part in parts if part)


def section_text(name: str) -> str:
    """Return a section of settings that belongs to no remedy in words: each with its default and meaning."""
    model = SECTIONS[name]
    lines = [f"{name}: {introduction(model)}", "", f"Settings, section `{name}` of remedy.yaml:"]
    for setting in section_settings(model):
        lines += [f"  {setting.name}: {setting.default}", *_wrapped(setting.meaning)]
        lines += [*_wrapped(f"May be {setting.allowed}."), ""]
    return "\n".join(lines).rstrip()


class SettingWords(NamedTuple):
    """A setting in words; ``default`` is as YAML has it."""

    name: str
    default: str
    allowed: str
    meaning: str


def section_settings(model: type[SpecSection]) -> Iterator[SettingWords]:
    """Yield each setting of a section."""
    texts = meanings(model)
    properties = model.model_json_schema(mode="validation").get("properties", {})
    for name, value in model().model_dump(mode="json").items():
        words = allowed(properties[name])
        yield SettingWords(name, json.dumps(value), words, texts.get(name, ""))


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent="      ", subsequent_indent="      ", break_long_words=False
    )


def cause_text(cause: Cause) -> str:
    """Return a cause in words, with the remedies that end it and the texts that programs print."""
    lines = [f"{cause.name} ({cause.group})", "", _row("Cause", cause.cause)]
    lines += [
        _row(word, text) for word, text in (("Confirm", cause.confirm), ("Fix", cause.fix)) if text
    ]
    lines += ["", answer(cause)]
    from remedy.diagnose.catalogue import texts_of  # only causes have texts

    texts = texts_of(cause.name)
    if texts:
        lines += ["", "Programs then print, among others:"]
        lines += [f"  {_cut(text, WIDTH - 2)}" for text in texts]
        lines += ["", "Find it in your logs: remedy diagnose LOG..."]
    return "\n".join(lines)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 4]} ..."


def answer(cause: Cause) -> str:
    """Return which remedy cures or reports a cause, in one sentence."""
    if cause.group == NO_HOST_FIX:
        return "Not a host-state problem: no remedy can end it."
    cured = [remedy.name for remedy in remedies() if cause.name in remedy.cures]
    reported = [remedy.name for remedy in remedies() if cause.name in remedy.finds]
    if cured and reported:
        return f"Cured by {_and(cured)}; reported by {_and(reported)}."
    if cured:
        return f"Cured by {_and(cured)}."
    if reported:
        return f"Reported by {_and(reported)}, which changes nothing: repair it by hand."
    return "No remedy checks for it: repair it by hand."


def labels_of(remedy: Remedy[Any]) -> dict[str, tuple[str, ...]]:
    """Return the causes that a remedy cures, and those that it only names."""
    return {"Causes it cures": remedy.cures, "Causes it reports": remedy.finds}


def settings(remedy: Remedy[Any]) -> Iterator[tuple[str, str]]:
    """Yield each setting of a remedy with its default, as YAML would have it."""
    for key, value in remedy.settings().model_dump(mode="json").items():
        yield key, json.dumps(value)


def settings_text(remedy: Remedy[Any]) -> str:
    """Return what a remedy's settings mean."""
    return inspect.cleandoc(remedy.settings.__doc__ or "")


def plain(text: str) -> str:
    """Return a docstring without its marks for code being doubled."""
    return text.strip().replace("``", "`")


def by_group() -> dict[str, list[str]]:
    """Return the labels of all causes by their groups."""
    groups: dict[str, list[str]] = {}
    for cause in all_causes().values():
        groups.setdefault(cause.group, []).append(cause.name)
    return groups


def summary(remedy: Remedy[Any]) -> str:
    """Return the first line of a remedy's text, without the name that it begins with."""
    first = remedy.text.strip().splitlines()[0]
    return plain(first.partition(": ")[2] or first)


def _listed(remedies: Iterable[Remedy[Any]]) -> Iterator[str]:
    return (_row(remedy.name, summary(remedy)) for remedy in remedies)


def _row(head: str, text: str) -> str:
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=f"  {head:<{INDENT}}",
        subsequent_indent=" " * (INDENT + 2),
        break_on_hyphens=False,
        break_long_words=False,
    )


def _and(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
