"""What the next boot needs, as the host's own tools say it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from remedy.probe import BootMounts, HostState, ProbeRequest, Sshd, parse_probe, render_probe
from remedy.values import Unknown
from tests.unit.probe_data import SHELLS, parse, recorded, replaced

ANSWER = """\
port 22
permitrootlogin yes
listenaddress 0.0.0.0:22
allowusers root
allowusers operator
authorizedkeysfile .ssh/authorized_keys .ssh/authorized_keys2
"""


def sshd(text: str, status: str = "ok") -> object:
    return parse(replaced(recorded("lab-idle"), "sshd", text, status, "detail")).sshd


def test_what_sshd_prints_is_read_by_keyword() -> None:
    head = "connection me 192.0.2.9 50000 10.0.0.1 22\n"
    found = sshd(f"{head}ended 0\n{ANSWER}keys /home/me/.ssh/authorized_keys\n")
    assert isinstance(found, Sshd)
    assert found.options["allowusers"] == ("root", "operator")
    assert found.options["permitrootlogin"] == ("yes",)
    assert (found.user, found.client, found.address, found.port) == (
        "me",
        "192.0.2.9",
        "10.0.0.1",
        22,
    )
    assert found.keys == ("/home/me/.ssh/authorized_keys",)
    assert found.errors == ()


def test_an_error_of_sshd_is_told_without_what_it_passes_over() -> None:
    lines = (
        "/etc/ssh/a: line 2: Deprecated option X\n/etc/ssh/a: line 3: Bad configuration option: Y\n"
    )
    found = sshd(f"connection root\nended 255\n{lines}")
    assert isinstance(found, Sshd)
    assert found.errors == ("/etc/ssh/a: line 3: Bad configuration option: Y",)
    assert found.options == {}


def test_an_sshd_that_has_read_its_files_says_nothing() -> None:
    assert sshd("") == Sshd()
    assert sshd("", "none") is None
    assert isinstance(sshd("connection root\nended 137\n"), Unknown)
    assert isinstance(sshd("", "failed:1"), Unknown)


def test_mounts_of_the_next_boot() -> None:
    text = "there UUID=1\nthere /dev/sda1\n"
    state = parse(replaced(recorded("lab-idle"), "boot-mounts", text))
    assert state.boot_mounts == BootMounts(there=frozenset({"UUID=1", "/dev/sda1"}))


def run(folder: Path, shell: str) -> HostState:
    """Run the probe here with its files of sshd and its fstab in a folder."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    request = ProbeRequest()
    text, count = re.subn(r"(?m)^asks sshd \|\| return$", ":", render_probe(request))
    assert count == 1
    for path in (
        "/etc/ssh",
        "/run/sshd.pid",
        "/etc/fstab",
        "/dev/disk",
    ):
        assert path in text
        text = text.replace(path, f"{folder}{path}")
    for part in (folder / "etc/ssh/sshd_config.d", folder / "run", folder / "dev/disk/by-uuid"):
        part.mkdir(parents=True, exist_ok=True)
    (folder / "bin").mkdir(exist_ok=True)
    done = subprocess.run(
        [shell, *(["sh"] if shell == "busybox" else []), "-s"],
        input=text,
        capture_output=True,
        text=True,
        env={
            "PATH": f"{folder}/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": "/root",
            "USER": "root",
            "SSH_CONNECTION": "192.0.2.9 50000 10.0.0.1 22",
        },
        timeout=120,
        check=True,
    )
    return parse_probe("here", done.stdout, request)


@pytest.mark.parametrize("shell", SHELLS)
def test_sshd_is_asked_where_a_file_is_younger_than_its_pid_file(
    tmp_path: Path, shell: str
) -> None:
    binary, asked = tmp_path / "bin/sshd", tmp_path / "asked"
    binary.parent.mkdir()
    binary.write_text(f'#!/bin/sh\necho "$*" >>{asked}\nprintf "port 22\\nallowusers root\\n"\n')
    binary.chmod(0o755)
    config = tmp_path / "etc/ssh/sshd_config"
    config.parent.mkdir(parents=True)
    config.write_text("Port 22\n")
    run(tmp_path, shell)  # makes the folders
    asked.unlink(missing_ok=True)
    pid = tmp_path / "run/sshd.pid"
    pid.write_text("1\n")
    state = run(tmp_path, shell)
    assert not asked.exists()
    assert state.sshd == Sshd()

    os.utime(config, (pid.stat().st_mtime + 5,) * 2)
    state = run(tmp_path, shell)
    if os.geteuid() != 0:
        assert isinstance(state.sshd, Unknown)
        return
    assert isinstance(state.sshd, Sshd)
    assert state.sshd.options["allowusers"] == ("root",)
    assert (state.sshd.user, state.sshd.port) == ("root", 22)
    assert asked.read_text().startswith("-T ")
    assert "user=root,host=192.0.2.9,addr=192.0.2.9,laddr=10.0.0.1,lport=22" in asked.read_text()


@pytest.mark.parametrize("shell", SHELLS)
def test_devices_of_fstab_are_looked_for_below_dev_alone(tmp_path: Path, shell: str) -> None:
    fstab = tmp_path / "etc/fstab"
    fstab.parent.mkdir(parents=True)
    disk = tmp_path / "dev/disk/by-uuid"
    disk.mkdir(parents=True)
    (disk / "1").touch()
    fstab.write_text(
        "# UUID=9 / ext4\nUUID=1 / ext4 defaults\nUUID=2 /a ext4\n/dev/null /b proc x\n"
        "/etc /c none bind\ntmp /d overlay\nx /e no-such-type"
    )
    state = run(tmp_path, shell)
    assert isinstance(state.boot_mounts, BootMounts)
    assert state.boot_mounts.there == frozenset({"UUID=1", "/dev/null"})
