"""What is said of the host's own name."""

from __future__ import annotations

import pytest

from remedy.probe import File, HostState, Kernel, Sysctls, SysctlSetting
from tests.unit.build import host_state, record
from tests.unit.deploys.words_bench import Run, Said, Write, planned, run, said, written

KEEP = "running programs keep the name that they read at their start"
SET = "if command -v hostname >/dev/null; then hostname {0}; else hostnamectl --transient set-hostname {0}; fi"


@pytest.mark.parametrize(
    ("state", "titles"),
    [
        (host_state("a", "10.0.0.1", running="old"),
         ["the running host name is 'old', the inventory says 'a'"]),
        (host_state("a", "10.0.0.1", static="old"), ["the static host name is 'old', the inventory says 'a'"]),
        (host_state("a", "10.0.0.1", static=""),
         ["there is no static host name, so it is lost at the next boot"]),
        (host_state("a", "10.0.0.1", running="B.x"),
         ["the running host name 'B.x' is used by 1 other host too"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("manage", [True, False])
def test_what_a_host_is_called(state: HostState, titles: list[str], manage: bool) -> None:
    found = planned("hostname", state, host_state("b", "10.0.0.2"), manage=manage)
    assert said(found) == [Said("drift" if manage else "report", title, (), "") for title in titles]
    assert bool(found.changes) is manage


def test_what_sets_a_name_right() -> None:
    found = planned("hostname", host_state("a", "10.0.0.1", running="old", static="x"))
    assert run(found) == [
        Run(
            "set the running host name to 'a'", "low", True, KEEP, "uname -n", "old", "a",
            SET.format("a"), SET.format("old"),
        )
    ]  # fmt: skip
    assert written(found) == [
        Write("write 'a' into /etc/hostname", "low", True, "", "/etc/hostname", b"a\n")
    ]


def test_what_sets_the_name_at_boot() -> None:
    path = "/etc/cloud/cloud.cfg"
    cloud = File(path=path, real_path=path, exists=True, content=b"x: 1\n")
    found = planned("hostname", host_state("a", "10.0.0.1", files={path: cloud}))
    assert [(f.kind, f.title, f.fix) for f in said(found)] == [
        ("drift", "cloud-init sets the host name back at boot", "")
    ]
    drop_in = "/etc/cloud/cloud.cfg.d/99-remedy-hostname.cfg"
    assert written(found) == [
        Write(
            f"write {drop_in}: cloud-init leaves the host name alone", "low", True, "", drop_in,
            b"# Written by remedy: the host name comes from /etc/hostname.\npreserve_hostname: true\n",
        )
    ]  # fmt: skip
    setting = SysctlSetting(key="kernel.hostname", value="n1", path="/etc/sysctl.d/9.conf", line=3)
    state = host_state("a", "10.0.0.1").model_copy(
        update={
            "kernel": record(Kernel, command_line="quiet systemd.hostname=n2 systemd.hostname= x=n3"),
            "sysctls": Sysctls(live={}, persisted=(setting,), unread=()),
        }
    )  # fmt: skip
    fix = "Take the name out of there: /etc/hostname is where it belongs."
    assert said(planned("hostname", state)) == [
        Said("blocked", "after the next boot, the host name is 'n2'",
        ("kernel command line: systemd.hostname=n2",), fix),
        Said("blocked", "after the next boot, the host name is 'n1'",
        ("/etc/sysctl.d/9.conf:3: kernel.hostname = n1",), fix),
    ]  # fmt: skip


def test_names_that_collide() -> None:
    states = [
        host_state("n.x", "10.0.0.1", machine_id="1"), host_state("N.y", "10.0.0.2", machine_id="1"),
        host_state("gpu", "10.0.0.3", machine_id="2"), host_state("GPU-1-a", "10.0.0.4"), host_state("gpu2",
        "10.0.0.5"),
        host_state("gpu-1", "10.0.0.6"),
    ]  # fmt: skip
    begins = "Some libraries compare only as many characters as the shorter name has: rename one."
    assert said(planned("hostname", *states), None) == [
        Said(
            "report", "2 hosts of the inventory have the short name 'n'", ("n.x", "N.y"),
            "Launchers that cut a name at its first dot take them for one host: rename all but one.",
        ),
        Said("report", "the name 'gpu' is the beginning of 'GPU-1-a'", ("gpu", "GPU-1-a"), begins),
        Said("report", "the name 'gpu-1' is the beginning of 'GPU-1-a'", ("gpu-1", "GPU-1-a"), begins),
        Said("report", "the name 'gpu' is the beginning of 'gpu-1'", ("gpu", "gpu-1"), begins),
        Said(
            "report", "2 hosts have one machine-id, as cloned images do", ("n.x", "N.y"),
            "On all but one: rm /etc/machine-id && systemd-machine-id-setup, then reboot (machine-id(5)).",
        ),
    ]  # fmt: skip


def test_hosts_that_are_containers_of_one_machine_are_told() -> None:
    states = [
        host_state("gpu01", "10.0.0.1", machine_id="1", boot_id="b"),
        host_state("gpu02", "10.0.0.2", machine_id="2", boot_id="b"),
        host_state("gpu03", "10.0.0.3", machine_id="3", boot_id="c"),
        host_state("gpu04", "10.0.0.4", machine_id="4", boot_id=""),
        host_state("gpu05", "10.0.0.5", machine_id="5", boot_id=""),
    ]
    assert said(planned("hostname", *states), None) == [
        Said(
            "report",
            "gpu[01-02] run on one machine: they have one boot-id, as its containers do",
            ("gpu01", "gpu02"),
            "No test between them says anything of a network, so nothing is proved by them: give the "
            "inventory one host of each machine.",
        )
    ]
