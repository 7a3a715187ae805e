"""The tour is what its script types: no step is missing or made up, and its pictures are there and small."""

from __future__ import annotations

import re
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tour.md"
MOST = 600_000
"""Bytes of all pictures."""


@pytest.fixture
def tour(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, not run."""
    loader = SourceFileLoader("tour", str(ROOT / "scripts" / "tour"))
    spec = spec_from_loader("tour", loader)
    assert spec is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "tour", module)  # its data classes are looked up there
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader.exec_module(module)
    return module


def typed() -> list[str]:
    """Return the commands of the page, in order."""
    blocks = re.findall(r"(?ms)^```text\n(.*?)^```", PAGE.read_text(encoding="utf-8"))
    return [line[2:] for block in blocks for line in block.splitlines()[:1]]


def test_the_page_has_every_step_of_the_script_and_no_other(tour: ModuleType) -> None:
    assert typed() == [step.command for step in tour.STEPS]
    text = PAGE.read_text(encoding="utf-8")
    headings = [step.heading for step in tour.STEPS if step.heading]
    assert re.findall(r"(?m)^## (.*)$", text) == [*headings, "The job"]
    assert len(headings) >= 8
    words = " ".join(text.split())
    for step in tour.STEPS:
        assert " ".join(step.words.split()) in words
    codes = [step.code for step in tour.STEPS if step.code]
    assert re.findall(r"(?m)^Exit code (\d+)\.$", text) == list(map(str, codes))


def test_the_pictures_are_there_and_small(tour: ModuleType) -> None:
    named = [picture.name for step in tour.STEPS for picture in step.pictures]
    assert re.findall(r"\]\(tour/(\w+)\.png\)", PAGE.read_text(encoding="utf-8")) == named
    files = {path.stem: path.stat().st_size for path in (ROOT / "docs" / "tour").glob("*")}
    assert sorted(files) == sorted(named)
    assert sum(files.values()) < MOST


def test_the_page_says_nothing_of_the_machine_that_made_it() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for private in (str(ROOT), "/tmp/", "Traceback", "\x1b"):
        assert private not in text
    assert set(re.findall(r"\w+@\w+", text)) == {"ann@ops"}


def test_what_a_page_has_no_room_for_is_marked(tour: ModuleType, tmp_path: Path) -> None:
    long = "\n".join(["reading 8 hosts ...", f"in {tmp_path}", "w" * 500, *map(str, range(200))])
    lines = tour.shown(long, tmp_path).splitlines()
    assert lines[:2] == ["in .", "w" * tour.WIDEST + " [...]"]
    assert len(lines) == tour.LONGEST + 1
    assert (lines.count("[...]"), lines[-1]) == (1, "199")
    few = tour.shown(long, tmp_path, (3, 1)).splitlines()
    assert few == [*lines[:3], "[...]", "199"]
