"""Every finding and every change that a remedy makes in any of these tests is told in whole sentences."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from remedy.plan import Change, Finding, remedies
from tests.unit.sentences import note_flaws


@pytest.fixture(autouse=True)
def _whole_sentences(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    names = {remedy.name for remedy in remedies()}
    found: dict[str, None] = {}
    for kind in (Finding, Change):
        note_flaws(kind, lambda said: said.remedy in names, found, monkeypatch)
    yield
    assert not found, "\n".join(found)
