"""The catalogue: what programs print, and which causes that speaks for.

One YAML file a family; every entry is checked here against the schema and the closed set of labels, and by the
tests against its own examples and against texts that are made from its pattern.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from functools import cache
from importlib import resources
from typing import Annotated, Literal

from pydantic import Field, model_validator

from remedy.diagnose.catalogue.gpu_memory import held_by_others
from remedy.diagnose.lines import beginnings
from remedy.values import Record
from remedy.yaml_text import parse_own

CLEAR = 0.6
"""From this weight on a text speaks clearly for a cause."""

# What follows the name of a counter that stands at 0: "SSH not successful: 0, successful: 64".
_COUNT_OF_NONE = re.compile(r"(?<!\d)['\")\]]{0,2} {0,2}[:=] {0,2}0(?= *(?:$|[,;|}]))")
# What has a number of its own, or a code that is one.
_NUMBERED = re.compile(
    r"(?i)(?:rank|node|device|gpu|npu|core|cpu|card|port|slot|bus|id|index|code|status|errno|line|step|pid)$"
)


class Role(str, Enum):
    """What a text is to the failure that it stands beside."""

    CAUSE = "cause"  # names the cause, or one of a few
    APPLICATION = "application"  # names one that no host state has
    CONSEQUENCE = "consequence"  # printed by a rank that suffers from the failure of another
    KILLED = "killed"  # a process was killed, without a reason
    TRACE = "trace"  # a launcher reports that something failed
    SIGN = "sign"  # speaks for a cause beside other texts, and decides nothing alone
    HARMLESS = "harmless"  # looks like a failure, and is none
    GOOD = "good"  # reports that something went well


@cache
def compiled(text: str) -> re.Pattern[str]:
    """Return an expression, compiled when it is first needed: a log needs few of all that there are.

    Python's own cache keeps 512, and the catalogue has more.
    """
    return re.compile(text)


class CauseWeight(Record):
    """How much a text speaks for one cause.

    Args:
        label: the cause.
        weight: 0 to 1; from 0.85 on the text is as good as proof.
        because: why it can be this cause; shown beside the other causes.
        when: counts only where this matches the line.
        unless: does not count where this matches the line.
    """

    label: str
    weight: float = Field(gt=0, le=1)
    because: str = ""
    when: str = ""
    unless: str = ""

    def counts_on(self, line: str) -> bool:
        """Return whether it counts on this line."""
        if self.when and not compiled(self.when).search(line):
            return False
        return not (self.unless and compiled(self.unless).search(line))


class Symptom(Record):
    """One entry: a text, and what it means.

    Args:
        id: its name.
        family: the file it stands in.
        pattern: a regular expression that matches within a line; its named groups are taken out.
        literals: texts of which every match holds at least one. Logs are searched for these, and ``pattern`` is
            tried only on a line with one, so a literal should be rare in ordinary output.
        near: what has to stand within ``lines`` lines of it.
        lines: see ``near``.
        unless: what must not stand on the line.
        extract: takes out more named groups of the line.
        across: how it compares between logs: "some" (in some only), "differs" (the group ``by`` has several
            values), "repeated" (more than once).
        last: counts only where it is among the last lines of its log.
        by: the group that ``across: differs`` compares.
        within: groups that have to be the same where ``by`` differs, with commas between them.
        unless_seen: another entry that takes its meaning away when it is seen as well.
        when_seen: another entry without which it means nothing: weak texts that decide together.
        holders: who has to hold the memory of the GPU that the line is about ("itself": nobody else).
        role: what it is to the failure.
        causes: what it speaks for.
        gloo_port: the port in it is byte-swapped, as gloo prints it.
        fact: what it reports, where several entries report the same: they bear it out once.
        meaning: what it means, one sentence.
        fix: what to do about it, where that is not what the cause says.
        source: the program that prints it, or the document that describes it.
        examples: texts that must match.
        near_misses: texts that must not.
    """

    id: str
    family: str
    pattern: str
    literals: tuple[Annotated[str, Field(min_length=3)], ...] = Field(min_length=1)
    near: str = ""
    lines: int = 6
    unless: str = ""
    extract: str = ""
    across: Literal["", "some", "differs", "repeated"] = ""
    last: bool = False
    by: str = ""
    within: str = ""
    unless_seen: str = ""
    when_seen: str = ""
    holders: Literal["", "others", "itself"] = ""
    role: Role = Field(default=Role.CAUSE, strict=False)
    causes: tuple[CauseWeight, ...] = Field(min_length=1)
    gloo_port: bool = False
    fact: str = ""
    meaning: str
    fix: str = ""
    source: str
    examples: tuple[str, ...] = Field(min_length=1)
    near_misses: tuple[str, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _sound(self) -> Symptom:
        if (self.across == "differs") != bool(self.by):
            raise ValueError(f"{self.id}: `across: differs` and `by` go together")
        if any(not text.strip() or text in self.examples for text in self.near_misses):
            raise ValueError(f"{self.id}: a near miss is empty, or an example")
        return self

    @property
    def begins_its_line(self) -> bool:
        """Whether it, or what refutes it, says where a line begins: then what stands before that counts."""
        return "^" in self.pattern or "^" in self.unless

    def match(self, texts: Sequence[str], around: str = "") -> re.Match[str] | None:
        """Match one line.

        Args:
            texts: the line, and what it is without what stands before its text, each as one that it may be.
            around: the lines about it, for ``near``.
        """
        match = next(filter(None, map(compiled(self.pattern).search, texts)), None)
        if match is None or _counts_none(match):
            return None
        if self.unless and any(map(compiled(self.unless).search, texts)):
            return None
        if self.holders and held_by_others(texts[0]) != (self.holders == "others"):
            return None
        if self.near and not compiled(self.near).search(around):
            return None
        return match

    def speaks_clearly_for(self, label: str) -> bool:
        """Return whether a cause is among those that the text speaks clearly for."""
        return any(cause.label == label and cause.weight >= CLEAR for cause in self.causes)


def _counts_none(match: re.Match[str]) -> bool:
    """Return whether a text names a counter that stands at 0, and no thing that has the number 0."""
    return bool(_COUNT_OF_NONE.match(match.string, match.end())) and not _NUMBERED.search(match[0])


def readings(line: str, entries: Iterable[Symptom]) -> tuple[str, ...]:
    """Return the texts that a line may be, where one of the entries says how its text begins.

    Args:
        line: with what launchers and loggers put before its text.
        entries: that are tried on it.
    """
    return beginnings(line) if any(entry.begins_its_line for entry in entries) else (line,)


@cache
def catalogue() -> tuple[Symptom, ...]:
    """Return every entry, in the order of the files and of what stands in them.

    Raises:
        ValueError: an entry does not follow the schema, or two have one id.
    """
    entries: dict[str, Symptom] = {}
    with _no_collections():
        for entry in _entries():
            if entry.id in entries:
                raise ValueError(f"two entries are called {entry.id!r}")
            entries[entry.id] = entry
    return tuple(entries.values())


def _entries() -> Iterator[Symptom]:
    folder = resources.files(__name__)
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if not file.name.endswith(".yaml"):
            continue
        family = file.name.removesuffix(".yaml")
        for raw in parse_own(file.read_text(encoding="utf-8")):
            raw["causes"] = _weights(raw.get("causes", {}))
            for key in ("literals", "examples", "near_misses"):
                raw[key] = tuple(raw.get(key, ()))
            yield Symptom.model_validate({**raw, "family": family})


@contextmanager
def _no_collections() -> Iterator[None]:
    """Make values that stay without going through them for garbage each time they have become more (gc)."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@cache
def _facts() -> Mapping[str, str]:
    return {entry.id: entry.fact for entry in catalogue() if entry.fact}


def fact_of(symptom: str) -> str:
    """Return what an entry reports: a name that it shares with the entries that report the same.

    Args:
        symptom: the entry.
    """
    return _facts().get(symptom, symptom)


@cache
def _fixes() -> Mapping[str, str]:
    return {entry.id: entry.fix for entry in catalogue() if entry.fix}


def fix_of(symptom: str) -> str:
    """Return what to do about what an entry reports; "" where it is what the cause says.

    Args:
        symptom: the entry.
    """
    return _fixes().get(symptom, "")


@cache
def _literals() -> Mapping[str, tuple[str, ...]]:
    return {entry.id: entry.literals for entry in catalogue()}


def literals_of(symptom: str) -> tuple[str, ...]:
    """Return the texts of which every match of an entry holds at least one; none of what is no entry.

    Args:
        symptom: the entry.
    """
    return _literals().get(symptom, ())


def texts_of(label: str) -> tuple[str, ...]:
    """Return one text of each entry that speaks clearly for a cause, for ``remedy explain``."""
    return tuple(
        entry.examples[0].strip().splitlines()[0]
        for entry in catalogue()
        if entry.speaks_clearly_for(label)
    )


def _weights(raw: Mapping[str, object]) -> tuple[dict[str, object], ...]:
    """Read ``{label: weight}`` and ``{any name: {label, weight, ...}}``."""
    return tuple(
        {"label": name, **value} if isinstance(value, dict) else {"label": name, "weight": value}
        for name, value in raw.items()
    )
