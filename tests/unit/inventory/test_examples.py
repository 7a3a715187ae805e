"""The example inventories: each loads as it is, and means what it says."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from remedy.inventory import Inventory
from remedy.transport.reader import load_inventory

EXAMPLES = Path(__file__).parents[3] / "inventory"


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own, outside of any Slurm job."""
    monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)
    return tmp_path


def load(folder: Path, name: str) -> Inventory:
    return load_inventory(Path(shutil.copy(EXAMPLES / name, folder)))


def test_two_nodes_are_two_hosts_reached_as_root(example: Path) -> None:
    inventory = load(example, "two_nodes.py")
    assert inventory.names == ("gpu01", "gpu02")
    assert [node.ssh_address for node in inventory.nodes] == ["192.0.2.11", "192.0.2.12"]
    assert {node.data["ssh_user"] for node in inventory.nodes} == {"root"}


def test_slurm_has_a_list_of_its_own_where_no_other_is_given(example: Path) -> None:
    assert load(example, "slurm.py").names == ("gpu001", "gpu002", "gpu003", "gpu004")


def test_no_example_takes_a_jobs_allocation_for_the_cluster(
    example: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_JOB_NODELIST", "gpu[002-003]")
    inventory = load(example, "slurm.py")
    assert inventory.names == ("gpu001", "gpu002", "gpu003", "gpu004")
    assert inventory.select(["slurm"]) == inventory.names
    assert inventory.select(["gpu[002-003]"]) == ("gpu002", "gpu003")
    assert inventory.node("gpu001").data["ssh_user"] == "root"


def test_slurm_reads_the_lists_of_a_file_before_anything_else(
    example: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_JOB_NODELIST", "other[1-2]")
    (example / "nodes.txt").write_text("# of sinfo\ngpu[1-3]  # the old ones\n\nbig1,big[3-4]\n")
    assert set(load(example, "slurm.py").names) == {"gpu1", "gpu2", "gpu3", "big1", "big3", "big4"}
