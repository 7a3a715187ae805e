"""How what remedies say is written: titles, reasons and steps that read as the sentences they are meant to be.

A part that got lost on the way into a sentence (a name, a verb, the end of it) shows in its form: a space too
many, a bracket or a quote without its other half, a word at the end that leads to another.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from remedy.firewall.step import Note
from remedy.plan import Change, Finding, FindingKind

# No sentence ends with a word that leads to another, and none begins with one that follows another.
LEADING = {"the", "an", "to", "from", "and", "or", "than", "because", "but", "if", "its", "which"}
FOLLOWING = {
    "and",
    "or",
    "is",
    "are",
    "has",
    "of",
    "to",
    "by",
    "than",
    "which",
    "because",
    "but",
    "too",
}
# A command is shown as it is typed, after a colon or in quotes; a setting as it is written.
STEP_END = re.compile(r"[.\"})*]$|: .*\S$|`$")

# What docs/words.md has other words for; "told apart" and "tell apart" are what they say.
AVOIDED = re.compile(
    r"\btold\b(?! apart)|\btells? (?:of|us)\b|\bshall\b|\banother one\b|\bother ones\b|\blook(?:s|ed)? at\b"
    r"|\bhave a look\b|\bwhat became of\b|\bto blame\b|\bneeds? no hands\b|\bknows nothing\b|\bnobody knows\b"
    r"|\bgoes on with(?:out)?\b|\banew\b|\bmeans? harm\b|\bnot as it should be\b|\bplease\b|\bsimply\b"
    r"|\bin vain\b|\bthe own\b|\b(?:host|change|run|rank|finding)\(s\)"
    r"|(?<![\d.,])1 (?:hosts|changes|runs|ranks|findings|processes|files|ports|peers|waves|devices|GPUs)\b",
    re.I,
)


def flaws_of_text(text: str) -> list[str]:
    """Return what cannot be in any sentence."""
    prose = re.sub(r"\"[^\"]*\"|'[^']*'", "'quoted'", text)
    words = re.findall(r"[^\W\d_][\w'-]*", prose)
    found = {
        "begins or ends with a space": text != text.strip(),
        "has two spaces": "  " in prose,
        "has several lines": "\n" in text,
        "has a space before a mark": re.search(r"\w [,;.](?:\s|$)", prose),
        "has marks side by side": re.search(r"[,;:][,;.]|: ?$|, ?$|; ?$|\.\.(?!\.)(?:\s|$)", prose),
        "has empty brackets or quotes": re.search(r"\(\)|\[ ?\]|''|\"\"(?!\")|\( | \)", text),
        "has a bracket without its half": prose.count("(") != prose.count(")"),
        "has a quote without its half": text.replace('\\"', "").count('"') % 2,
        "ends with a word that leads to another": words
        and words[-1].lower() in LEADING
        and prose.rstrip(".").endswith(words[-1]),
        "begins with a word that follows another": words
        and words[0].lower() in FOLLOWING
        and prose.startswith(words[0]),
        "has one word only": len(prose.split()) < 2,
        "has a word that docs/words.md avoids, or one of many": AVOIDED.search(prose),
    }
    return [f"{text!r} {flaw}" for flaw, there in found.items() if there]


def flaws_of_line(text: str) -> list[str]:
    """Return what is wrong with a title or a reason: one line that goes on in another, without a full stop."""
    found = flaws_of_text(text)
    if text.endswith((".", "!", "?", ":")):
        found.append(f"{text!r} ends with a mark")
    if text.startswith(("(", ",", ";", ":", ".")):
        found.append(f"{text!r} begins with a mark")
    return found


def flaws_of_step(text: str) -> list[str]:
    """Return what is wrong with a next step: whole sentences, of which the last may end with a command."""
    found = flaws_of_text(text)
    if not text[:1].isupper():
        found.append(f"{text!r} does not begin like a sentence")
    if not STEP_END.search(text):
        found.append(f"{text!r} does not end like a sentence")
    return found


def flaws(said: Finding | Change | Note) -> list[str]:
    """Return what is wrong with how a finding, a change or a note is told."""
    found = flaws_of_line(said.title)
    if not isinstance(said, Change):
        found += [f"{said.title!r} is too short"] if len(said.title.split()) < 3 else []
        found += flaws_of_step(said.fix) if said.fix else []
        found += [f"{line!r} is no evidence" for line in said.evidence if not line.strip()]
        if said.kind is FindingKind.BLOCKED and not (said.fix or said.evidence):
            found.append(f"{said.title!r} leads nowhere")
    else:
        found += flaws_of_line(said.reason)
        found += flaws_of_line(said.disrupts) if said.disrupts else []
    return found


def note_flaws(
    kind: type[Any],
    matters: Callable[[Any], bool],
    found: dict[str, None],
    patch: pytest.MonkeyPatch,
) -> None:
    """Have what is wrong with each new object of a kind that matters put into ``found``."""
    build = kind.__init__

    def init(self: Any, *args: Any, **values: Any) -> None:
        build(self, *args, **values)
        if matters(self):
            found.update(dict.fromkeys(flaws(self)))

    patch.setattr(kind, "__init__", init)
