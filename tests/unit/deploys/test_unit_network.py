"""What systemd's files let jobs do in the network."""

from __future__ import annotations

import pytest

from remedy.plan import FindingKind
from tests.unit.deploys.units_bench import ETC, USR, said

DENY = "IPAddressDeny=any"


@pytest.mark.parametrize(
    ("lines", "title"),
    [
        ([(f"{ETC}/system.slice.d/x.conf", DENY)], "systemd keeps containers and services from b,c"),
        ([(f"{ETC}/slurmd.service.d/x.conf", DENY)], "systemd keeps slurmd.service from b,c"),
        ([(f"{USR}/kubelet.service", "IPAddressDeny = 10.0.0.3")], "systemd keeps kubelet.service from c"),
        ([(f"{ETC}/service.d/x.conf", DENY)], "from b,c"),
        ([(f"{ETC}/user-.slice.d/x.conf", DENY)], "systemd keeps sessions of users from b,c"),
        ([(f"{ETC}.control/user-1001.slice.d/x.conf", "IPAddressDeny=10.0.0.2")], "sessions of users from b"),
        ([(f"{ETC}/session-.scope.d/x.conf", DENY)], "sessions of users"),
        ([(f"{USR}/user@.service.d/x.conf", DENY)], "services of users"),
        ([(f"{ETC}/-.slice.d/x.conf", DENY)], "from b,c"),
        # The slice that a service is put into, and those above that one.
        ([(f"{ETC}/slurmd.service.d/s.conf", "Slice=jobs-gpu.slice"), (f"{ETC}/jobs.slice", DENY)], "slurmd"),
        ([(f"{ETC}/user.slice.d/x.conf", "RestrictNetworkInterfaces=lo ib0")], "sessions of users from eth0"),
        ([(f"{ETC}/user.slice.d/x.conf", "RestrictNetworkInterfaces=~eth0")], "sessions of users from eth0"),
        ([(f"{ETC}/slurmd.service.d/x.conf", "PrivateNetwork=yes")], "a network of its own"),
        ([(f"{ETC}/slurmd.service.d/x.conf", "RestrictAddressFamilies=AF_UNIX AF_INET6")], "no IPv4"),
    ],
)  # fmt: skip
def test_what_keeps_jobs_from_peers_is_named(lines: list[tuple[str, str]], title: str) -> None:
    known = said(*lines)
    assert known
    assert any(title in finding.title for finding in known), known
    assert {finding.kind for finding in known} == {FindingKind.BLOCKED}
    assert any(lines[-1][0] in text for finding in known for text in finding.evidence)


@pytest.mark.parametrize(
    "lines",
    [
        [(f"{USR}/systemd-udevd.service", DENY)],  # no jobs run there
        [(f"{ETC}/system.slice.d/x.conf", "IPAddressDeny=192.168.0.0/16 link-local")],
        [(f"{ETC}/user.slice.d/x.conf", DENY), (f"{ETC}/user-.slice.d/x.conf", "IPAddressAllow=10.0.0.0/24")],
        [(f"{ETC}/user.slice.d/x.conf", DENY), (f"{ETC}/-.slice.d/y.conf", "IPAddressAllow=10.0.0.0/24")],
        [(f"{ETC}/user.slice.d/x.conf", DENY), (f"{ETC}/user.slice.d/y.conf", "IPAddressDeny=")],
        # Of two files with one name the earlier directory counts.
        [(f"{USR}/user.slice.d/x.conf", DENY), (f"{ETC}/user.slice.d/x.conf", "IPAddressDeny=192.0.2.1")],
        [(f"{ETC}/slurmd.service.d/x.conf", "PrivateNetwork=no")],
        [(f"{ETC}/slurmd.service.d/x.conf", "RestrictAddressFamilies=AF_INET AF_UNIX")],
        [(f"{ETC}/user.slice.d/x.conf", "RestrictNetworkInterfaces=eth0")],
        [(f"{ETC}/docker.service.d/x.conf", DENY)],  # which is not there
    ],
)  # fmt: skip
def test_what_lets_them_through_is_not_mentioned(lines: list[tuple[str, str]]) -> None:
    assert said(*lines) == []


def test_what_a_program_decides_is_unknown() -> None:
    line = (f"{ETC}/system.slice.d/x.conf", "IPEgressFilterPath=/sys/fs/bpf/egress")
    (finding,) = said(line)
    assert finding.kind is FindingKind.UNKNOWN
    assert said(line, accept=(f"{line[0]}: {line[1]}",)) == []


def test_a_line_is_accepted_by_its_text() -> None:
    path = f"{ETC}/user.slice.d/x.conf"
    assert said((path, DENY), accept=(f"{path}: {DENY}",)) == []
    assert said((path, "IPAddressDeny=10.0.0.0/8"), accept=(f"{path}: {DENY}",))


@pytest.mark.parametrize(
    ("path", "text", "words"),
    [
        ("user-.slice.d/x.conf", "MemoryMax=100M", "sessions of users have 100.0 MiB of memory together"),
        ("user.slice.d/x.conf", "MemoryHigh=10%", "sessions of users have 10% of the memory together"),
        ("user-.slice.d/x.conf", "TasksMax=12", "have 12 processes and threads together"),
        ("system.slice.d/x.conf", "CPUQuota=20%", "containers and services use 20% of a CPU together"),
        ("slurmd.service.d/x.conf", "RuntimeMaxSec=1h", "slurmd.service run for 1h, and ends them then"),
        ("user-.slice.d/x.conf", "MemoryMax=90%", ""),
        ("user-.slice.d/x.conf", "MemoryMax=infinity", ""),
        ("user-.slice.d/x.conf", "MemoryMax=60G", ""),
        ("user-.slice.d/10-defaults.conf", "TasksMax=33%", ""),
        ("user-.slice.d/x.conf", "TasksMax=infinity", ""),
        ("user-.slice.d/x.conf", "CPUQuota=800%", ""),
        ("user-.slice.d/x.conf", "DevicePolicy=closed", ""),  # the host has no GPU
        ("slurmd.service.d/x.conf", "RuntimeMaxSec=infinity", ""),
    ],
)  # fmt: skip
def test_what_leaves_jobs_too_little_is_named(path: str, text: str, words: str) -> None:
    place = f"{ETC}/{path}"
    found = said((place, text), memory=64 << 30)
    assert len(found) == bool(words)
    for finding in found:
        assert finding.kind is FindingKind.BLOCKED
        assert finding.label == "session-limit"
        assert words in finding.title
        assert finding.evidence == (f"{place}:1: {text}",)
        assert said((place, text), memory=64 << 30, accept=(f"{place}: {text}",)) == []
