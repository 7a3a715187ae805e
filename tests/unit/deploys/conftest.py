"""Every finding and every change that a remedy makes in any of these tests is told in whole sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from remedy.plan import Change, Finding, remedies
from tests.unit.sentences import flaws


@pytest.fixture(autouse=True)
def _whole_sentences(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    names = {remedy.name for remedy in remedies()}
    found: dict[str, None] = {}

    def noting(kind: type[Finding | Change]) -> None:
        build = kind.__init__

        def init(self: Any, *args: Any, **values: Any) -> None:
            build(self, *args, **values)
            if self.remedy in names:
                found.update(dict.fromkeys(flaws(self)))

        monkeypatch.setattr(kind, "__init__", init)

    noting(Finding)
    noting(Change)
    yield
    assert not found, "\n".join(found)
