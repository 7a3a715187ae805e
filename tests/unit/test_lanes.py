"""The lanes of scripts/test: every test runs in one of them, and in no other."""

from __future__ import annotations

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_each_file_of_tests_is_in_one_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    loader = SourceFileLoader("lanes", "scripts/lanes")
    spec = spec_from_loader("lanes", loader)
    assert spec is not None
    lanes = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "lanes", lanes)
    loader.exec_module(lanes)
    places: dict[Path, list[str]] = {path: [] for path in Path("tests").rglob("test_*.py")}
    assert len(places) > 200
    for lane in lanes.lanes(full=False):
        words = [word for command in lane.commands if command[0] == "pytest" for word in command]
        left_out = [Path(w.partition("=")[2]) for w in words if w.startswith("--ignore=")]
        named = [Path(word) for word in words[1:] if not word.startswith("-")] or [Path("tests")]
        for path, inside in places.items():
            if any(_holds(n, path) for n in named) and not any(_holds(o, path) for o in left_out):
                inside.append(lane.name)
    assert {path: inside for path, inside in places.items() if len(inside) != 1} == {}


def _holds(folder: Path, path: Path) -> bool:
    return folder == path or folder in path.parents
