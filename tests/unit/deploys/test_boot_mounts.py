"""Lines of /etc/fstab by which a boot ends in emergency mode."""

from __future__ import annotations

import pytest

from remedy.probe import BootMounts, File
from remedy.values import Unknown
from tests.unit.deploys.boot_bench import found, host

THERE = BootMounts(there=frozenset({"UUID=1", "/dev/sda2"}))


def said(*lines: str, known: object = THERE) -> list[tuple[str, str]]:
    content = "".join(f"{line}\n" for line in lines).encode()
    file = File(path="/etc/fstab", real_path="/etc/fstab", exists=True, content=content)
    state = host()
    state = state.model_copy(
        update={"files": {**state.files, file.path: file}, "boot_mounts": known}
    )
    return [(f.kind.value, f.title) for f in found(state)]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("UUID=1 / ext4 defaults 0 1", None),
        ("/dev/sda2 /data xfs defaults 0 2", None),
        ("UUID=2 /data ext4 defaults 0 2", "blocked"),
        ("/dev/sdz1 /data ext4 defaults", "blocked"),
        ("LABEL=x /data ext4", "blocked"),
        ("UUID=2 /data ext4 defaults,nofail 0 2", None),
        ("UUID=2 /data ext4 noauto 0 0", None),
        ("UUID=2 /data ext4 x-systemd.automount 0 0", None),
        ("UUID=2 /data ext4 x-systemd.device-timeout=5s 0 0", "blocked"),
        ("UUID=2 none swap sw 0 0", "report"),
        ("/swapfile none swap sw 0 0", None),
        ("server:/export /data nfs defaults 0 0", None),
        ("UUID=2 /data ext4 _netdev 0 0", None),
        ("# UUID=2 /data ext4 defaults 0 2", None),
        ("tmpfs /dev/shm tmpfs size=8g 0 0", None),
        ("tank/data /data zfs defaults 0 0", None),
        ("UUID=2", None),
        ("", None),
    ],
)
def test_a_line_ends_the_boot_where_its_device_is_not_there(line: str, kind: str | None) -> None:
    findings = said("proc /proc proc defaults 0 0", line)
    assert [found_kind for found_kind, _ in findings] == ([kind] if kind else [])


def test_devices_that_were_not_read_are_unknown() -> None:
    unread = Unknown(reason="the probe was cut off")
    assert [kind for kind, _ in said("UUID=1 / ext4", known=unread)] == ["unknown"]
    assert said(known=unread) == []
