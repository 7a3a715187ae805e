"""What makes lab hosts a Slurm cluster."""

from __future__ import annotations

from pathlib import Path

from remedy.lab import slurm
from remedy.lab.disk import Disk
from remedy.lab.paths import LabPaths
from remedy.lab.record import HostRecord, LabRecord


def test_all_hosts_share_one_cluster_and_the_first_controls_it(tmp_path: Path) -> None:
    hosts = [
        HostRecord(
            name=f"gpu0{number}",
            number=number,
            management_address=f"10.213.0.1{number}",
            cluster_address=f"10.214.0.1{number}",
            cluster_interface="eno2",
            faults=[],
        )
        for number in (1, 2)
    ]
    paths = LabPaths.of("unit", tmp_path)
    paths.key.parent.mkdir(parents=True)
    paths.key.write_text("a key")
    lab = LabRecord(
        name="unit",
        phase="up",
        prefix="gpu",
        root=str(tmp_path / "root"),
        life="slurm",
        management="10.213.0.0/24",
        cluster="10.214.0.0/24",
        key=str(paths.key),
        known_hosts="",
        python=None,
        binds=[],
        hosts=hosts,
    )
    (tmp_path / "root/etc/munge").mkdir(parents=True)
    disks = []
    for host in hosts:
        (tmp_path / host.name).mkdir()
        disk = Disk(tmp_path / host.name, tmp_path / "root")
        disk.wipe()
        slurm.furnish(disk, lab, host, paths)
        disks.append(disk)
    first, second = (disk.upper for disk in disks)
    text = (first / slurm.CONF).read_text()
    assert "SlurmctldHost=gpu01(10.213.0.11)" in text
    assert "NodeName=gpu02 NodeAddr=10.213.0.12" in text
    for shared in (slurm.CONF, "etc/munge/munge.key"):
        assert (first / shared).read_bytes() == (second / shared).read_bytes()
    assert (first / "etc/munge/munge.key").stat().st_mode & 0o777 == 0o400
    assert "a key" not in (first / "etc/munge/munge.key").read_text()
    started = [
        {link.name for link in disk.upper.glob("etc/systemd/system/*.wants/*")} for disk in disks
    ]
    assert started[0] - started[1] == {slurm.CONTROLLER}
    assert started[1] == set(slurm.STARTED)
    assert (second / "etc/default/slurmd").read_text() == "SLURMD_OPTIONS='-N gpu02'\n"
