"""The causes of failed distributed training that remedy knows by name: the labels of its findings.

Most are in causes.yaml; a remedy may bring causes of its own (``remedy.plan.all_causes`` has both).
"""

from __future__ import annotations

from functools import cache
from importlib import resources

from remedy.values import Record
from remedy.yaml_text import parse_own

NO_HOST_FIX = "No host fix"
"""The group of the causes that are not in the state of any host."""


class Cause(Record):
    """A cause, in words.

    Args:
        name: its label.
        group: what it belongs to.
        cause: what is wrong.
        confirm: how it is seen by hand, "" where there is no one way.
        fix: what ends it, "" where nothing on a host does.
        silent: why no program prints a text that speaks for it; "" where the catalogue has such a text.
    """

    name: str
    group: str
    cause: str
    confirm: str = ""
    fix: str = ""
    silent: str = ""

    def __str__(self) -> str:
        return self.name


@cache
def causes() -> dict[str, Cause]:
    """Return the causes of causes.yaml by their labels, in the order of their groups."""
    text = resources.files("remedy").joinpath("causes.yaml").read_text(encoding="utf-8")
    return {
        name: Cause(name=name, group=group, **words)
        for group, members in parse_own(text).items()
        for name, words in members.items()
    }
