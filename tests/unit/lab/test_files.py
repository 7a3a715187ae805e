"""The lab's files: their names, its state, the inventory, and removing a tree."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from remedy.errors import LabError, UsageError
from remedy.lab import machine, net, record
from remedy.lab.cluster import INVENTORY
from remedy.lab.disk import Disk
from remedy.lab.paths import DIR_VARIABLE, NAME_VARIABLE, LabPaths
from remedy.lab.record import LabRecord


def _lab(paths: LabPaths, python: str | None = "/venv/bin/python") -> LabRecord:
    subnets = ("10.213.0.0/24", "10.214.0.0/24")
    return LabRecord(
        name=paths.name,
        phase="up",
        prefix="gpu",
        root="/root-x",
        management=subnets[0],
        cluster=subnets[1],
        key=str(paths.key),
        known_hosts=str(paths.known_hosts),
        python=python,
        binds=[],
        hosts=[net.make_host("gpu01", 1, *subnets), net.make_host("gpu02", 2, *subnets)],
    )


@pytest.fixture
def paths(tmp_path: Path) -> LabPaths:
    found = LabPaths.of("some", tmp_path)
    found.folder.mkdir(parents=True)
    return found


def test_the_environment_chooses_the_lab(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(NAME_VARIABLE, "mine")
    monkeypatch.setenv(DIR_VARIABLE, str(tmp_path))
    assert LabPaths.of().folder == tmp_path / "labs/mine"
    assert LabPaths.of("other").folder == tmp_path / "labs/other"


def test_names_of_kernel_objects_fit_and_differ_between_labs(tmp_path: Path) -> None:
    one, two = LabPaths.of("a", tmp_path), LabPaths.of("a", tmp_path / "x")
    assert one.tag != two.tag
    assert len(one.uplink) <= 15
    assert len(one.machine("g" * 24)) <= 64


@pytest.mark.parametrize("name", ["A", "-a", "a/b", "..", "a b", "a" * 32])
def test_a_name_that_could_lead_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        LabPaths.of(name)


@pytest.mark.parametrize("base", ["/tmp/a:b", "/tmp/a,b", "/tmp/a b"])
def test_a_folder_that_mount_options_cannot_carry_is_refused(base: str) -> None:
    with pytest.raises(UsageError):
        LabPaths.of("a", Path(base))


def test_the_state_survives_the_file(paths: LabPaths) -> None:
    assert record.read(paths) is None
    lab = _lab(paths)
    record.write(paths, lab)
    assert record.read(paths) == lab
    assert paths.state.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": "remedy.lab/2"}', '{"schema": 1'])
def test_another_file_in_its_place_is_an_error_with_a_next_step(paths: LabPaths, text: str) -> None:
    paths.state.write_text(text, encoding="utf-8")
    with pytest.raises(LabError) as caught:
        record.read(paths)
    assert "remedy lab down" in caught.value.next_step


def test_an_unknown_host_is_told_with_the_known_ones(paths: LabPaths) -> None:
    with pytest.raises(UsageError, match=r"gpu\[01-02\]"):
        _lab(paths).host("gpu03")


def test_the_inventory_reads_the_state_beside_it(paths: LabPaths) -> None:
    lab = _lab(paths)
    record.write(paths, lab)
    paths.inventory.write_bytes(INVENTORY.read_bytes())
    gpus = runpy.run_path(str(paths.inventory))["gpus"]
    assert gpus[1] == (
        "gpu02",
        {
            "ssh_hostname": "10.213.0.12",
            "ssh_user": "root",
            "ssh_key": lab.key,
            "ssh_known_hosts_file": lab.known_hosts,
            "cluster_address": "10.214.0.12",
            "python": "/venv/bin/python",
        },
    )
    record.write(paths, _lab(paths, python=None))
    assert "python" not in runpy.run_path(str(paths.inventory))["gpus"][0][1]


def test_the_inventory_says_when_no_lab_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(DIR_VARIABLE, str(tmp_path))
    with pytest.raises(RuntimeError, match="remedy lab up"):
        runpy.run_path(str(INVENTORY))


def test_the_inventory_is_the_one_that_users_find() -> None:
    example = Path(__file__).parents[3] / "inventory/lab.py"
    assert example.read_bytes() == INVENTORY.read_bytes()


def test_a_folder_on_the_disk_is_like_the_one_it_covers(tmp_path: Path) -> None:
    root, folder = tmp_path / "root", tmp_path / "host"
    (root / "etc/ssh").mkdir(parents=True)
    (root / "etc/ssh").chmod(0o751)
    folder.mkdir()
    disk = Disk(folder, root)
    disk.wipe()
    disk.put("etc/ssh/key", "secret\n", mode=0o600)
    assert (disk.upper / "etc/ssh").stat().st_mode & 0o777 == 0o751
    assert (disk.upper / "etc/ssh/key").stat().st_mode & 0o777 == 0o600
    disk.wipe()
    assert list(disk.upper.iterdir()) == []


def test_a_tree_with_a_mount_in_it_is_not_removed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tree = tmp_path / "tree"
    (tree / "below").mkdir(parents=True)
    monkeypatch.setattr(machine, "mounts_below", lambda folder: [folder / "below"])
    monkeypatch.setattr(machine, "tool", lambda *_, **__: None)
    with pytest.raises(LabError, match="still mounted"):
        machine.remove_tree(tree)
    assert (tree / "below").exists()
    monkeypatch.undo()
    machine.remove_tree(tree)
    machine.remove_tree(tree)
    assert not tree.exists()


def test_only_mounts_below_the_folder_count() -> None:
    assert Path("/proc") in machine.mounts_below(Path("/proc"))
    assert machine.mounts_below(Path("/pro")) == []


def test_kernel_settings_are_put_back_unless_somebody_changed_them(tmp_path: Path) -> None:
    setting, large = tmp_path / "proc" / "low", tmp_path / "proc" / "high"
    limits = {setting: 8192, large: 100, tmp_path / "proc" / "not_there": 1}
    (tmp_path / "proc").mkdir()
    setting.write_text("128\n", encoding="ascii")
    large.write_text("500\n", encoding="ascii")
    machine.raise_limits(tmp_path, limits)
    machine.raise_limits(tmp_path, limits)
    assert setting.read_text("ascii") == "8192\n"
    assert large.read_text("ascii") == "500\n"
    machine.restore_limits(tmp_path, limits)
    assert setting.read_text("ascii") == "128\n"
    machine.raise_limits(tmp_path, limits)
    setting.write_text("600\n", encoding="ascii")
    machine.restore_limits(tmp_path, limits)
    assert setting.read_text("ascii") == "600\n"
    assert [path.name for path in tmp_path.iterdir()] == ["proc"]
