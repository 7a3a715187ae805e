"""What the last run saw is kept beside the inventory, without the ids themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from remedy.errors import RemedyError
from remedy.plan import Fleet
from remedy.plan.identities import machine_mark
from remedy.runs.machines import NAME, Machines, load, save
from tests.unit.build import fleet, host_state


def both() -> Fleet:
    a = host_state("a", "10.0.0.1", machine_id="a" * 32)
    return fleet(a, host_state("b", "10.0.0.2", machine_id="b" * 32))


def test_what_is_kept_is_read_again_and_hosts_that_were_not_read_stay(tmp_path: Path) -> None:
    save(tmp_path, both())
    first = load(tmp_path)
    assert set(first.marks) == {"a", "b"}
    save(tmp_path, fleet(host_state("a", "10.0.0.1", machine_id="f" * 32), absent=("b",)))
    second = load(tmp_path)
    assert second.marks == {"a": machine_mark("f" * 32), "b": first.marks["b"]}
    assert "f" * 32 not in (tmp_path / NAME).read_text()
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600


def test_a_host_that_left_the_inventory_is_forgotten(tmp_path: Path) -> None:
    save(tmp_path, both())
    save(tmp_path, fleet(host_state("a", "10.0.0.1", machine_id="a" * 32)))
    assert set(load(tmp_path).marks) == {"a"}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"marks": 1, "boots": {}}', "\xff"])
def test_what_cannot_be_read_is_nothing_known(tmp_path: Path, text: str) -> None:
    (tmp_path / NAME).write_text(text, encoding="latin-1")
    assert load(tmp_path) == Machines()


def test_what_cannot_be_written_is_an_error_in_words(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file in its place")
    with pytest.raises(RemedyError, match="cannot be kept in"):
        save(tmp_path / "home", both())
