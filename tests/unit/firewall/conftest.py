"""Every note, finding and change about a firewall in any of these tests is told in whole sentences."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from remedy.firewall.step import Note
from remedy.plan import Change, Finding
from tests.unit.sentences import note_flaws


@pytest.fixture(autouse=True)
def _whole_sentences(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    found: dict[str, None] = {}
    note_flaws(Note, bool, found, monkeypatch)
    for kind in (Finding, Change):
        note_flaws(kind, lambda said: said.remedy == "firewall", found, monkeypatch)
    yield
    assert not found, "\n".join(found)
