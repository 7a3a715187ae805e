"""What is put onto the disks of hosts that are lived in."""

from __future__ import annotations

from pathlib import Path

import pytest

from remedy.lab.disk import Disk
from remedy.lab.life import Life, furnish
from remedy.lab.options import UpOptions


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    (tmp_path / "host").mkdir()
    (tmp_path / "root").mkdir()
    made = Disk(tmp_path / "host", tmp_path / "root")
    made.wipe()
    return made


@pytest.mark.parametrize("life", ["bare", "asleep"])
def test_nothing_is_put_onto_other_disks(disk: Disk, life: Life) -> None:
    furnish(disk, life)
    assert list(disk.upper.iterdir()) == []


def test_daemons_processes_and_rules_start_at_boot(disk: Disk) -> None:
    furnish(disk, "lived-in")
    furnish(disk, "lived-in")  # as `lab reset` does
    units = disk.upper / "etc/systemd/system"
    started = {link.name: str(link.readlink()) for link in units.glob("*.wants/*")}
    assert started["docker.socket"] == "/lib/systemd/system/docker.socket"
    assert {"docker.service", "containerd.service", "firewalld.service"} <= set(started)
    assert started["lab-work@8.service"] == "/etc/systemd/system/lab-work@.service"
    assert (units / "lab-work@.service").is_file()
    rules = (disk.upper / "etc/lab-rules.nft").read_text()
    assert sum("counter" in line for line in rules.splitlines()) == 40


def test_all_but_bare_hosts_have_docker() -> None:
    assert not UpOptions().containers
    assert UpOptions(docker=True).containers
    assert UpOptions(life="lived-in").containers
    assert UpOptions(life="asleep").containers
    assert not UpOptions(life="slurm").containers
