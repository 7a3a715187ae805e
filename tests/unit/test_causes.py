"""The causes that findings are labelled with, told whole."""

from __future__ import annotations

import re
from importlib import resources

import pytest

from remedy.causes import NO_HOST_FIX, Cause, causes
from remedy.plan import all_causes, remedies
from remedy.yaml_text import parse_yaml
from tests.unit.sentences import flaws_of_text

GROUPS = parse_yaml(resources.files("remedy").joinpath("causes.yaml").read_text(encoding="utf-8"))
OWN = [cause for remedy in remedies() for cause in remedy.causes if cause.name not in causes()]


@pytest.mark.parametrize("cause", all_causes().values(), ids=str)
def test_a_cause_is_told_in_whole_sentences(cause: Cause) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", cause.name)
    assert cause.group in {*GROUPS, NO_HOST_FIX}
    for text in (cause.cause, cause.confirm, cause.fix):
        assert not text or text.endswith((".", ".)")), text
        assert not text or len(text.split()) >= 3, text
        assert text.count("`") % 2 == 0
        assert "  " not in text
    assert not cause.silent or cause.silent[0].islower()
    assert not cause.silent or not flaws_of_text(cause.silent)


@pytest.mark.parametrize("cause", OWN, ids=str)
def test_a_remedys_own_cause_leaves_nothing_out(cause: Cause) -> None:
    """No text of a program speaks for it, so each field is needed."""
    for text in (cause.name, cause.group, cause.cause, cause.confirm, cause.fix, cause.silent):
        assert text
    assert "`" in cause.confirm
    assert len(cause.silent.split()) >= 4


def test_a_cause_of_a_remedy_keeps_the_name_that_reports_use() -> None:
    assert {(cause.name, cause.group) for cause in OWN} >= {
        ("arp-flux", "Network path"),
        ("unit-keeps-from-peers", "Network path"),
        ("kernel-setting", "Network path"),
        ("kernel-limit", "Limits and memory"),
        ("change-scheduled", "Launch"),
        ("boot-differs", "Launch"),
    }
