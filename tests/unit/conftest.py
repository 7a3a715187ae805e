"""Fixtures that several rooms of unit tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

from remedy.apply import script as script_module

from .host_bench import SHELLS, Bench, shell_of


@pytest.fixture(params=SHELLS)
def bench(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    shell = shell_of(request.param)
    monkeypatch.setattr(script_module, "ROOT", str(tmp_path / "var"))
    monkeypatch.setattr(script_module, "LOG", str(tmp_path / "log.jsonl"))
    (tmp_path / "etc").mkdir()
    return Bench(tmp_path / "etc", shell)
