"""What stands in files of systemd, the network and the boot loader, each name tried."""

from __future__ import annotations

import pytest

from remedy.deploys import _systemd, _units
from remedy.deploys.clock import time_service
from remedy.deploys.unit_network import _addresses
from remedy.firewall import spans
from remedy.plan import FindingKind
from remedy.probe import (
    File,
    HostState,
    Mention,
    Unit,
)
from tests.unit.build import host_state, record
from tests.unit.deploys import (
    boot_bench,
    units_bench,
)

# ---- systemd


@pytest.mark.parametrize(
    ("word", "version", "network"),
    [
        ("any", 4, "0.0.0.0/0"), ("any", 6, "::/0"), ("localhost", 4, "127.0.0.0/8"),
        ("localhost", 6, "::1/128"), ("link-local", 4, "169.254.0.0/16"), ("link-local", 6, "fe80::/64"),
        ("multicast", 4, "224.0.0.0/4"), ("multicast", 6, "ff00::/8"), ("10.0.0.0/8", 4, "10.0.0.0/8"),
        ("fd00::1", 6, "fd00::1/128"),
    ],
)  # fmt: skip
def test_words_for_addresses(word: str, version: int, network: str) -> None:
    line = _units.UnitLine("x.slice", "IPAddressDeny", f"{word} nonsense", "/p", 1)
    assert _addresses(line, version) == spans.of_networks([network])
    if "." in word or ":" in word:
        assert _addresses(line, 10 - version) == ()


@pytest.mark.parametrize(
    "name",
    [
        "slurmd.service", "kubelet.service", "containerd.service", "docker.service", "ssh.service",
        "sshd.service",
    ],
)  # fmt: skip
def test_services_whose_jobs_talk_to_peers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units_bench, "SERVICES", (name,))
    line = (f"/etc/systemd/system/{name}.d/x.conf", "IPAddressDeny=any")
    (finding,) = units_bench.said(line)
    assert finding.title == f"systemd keeps {name} from b,c"


@pytest.mark.parametrize(
    "key",
    ["IPIngressFilterPath", "IPEgressFilterPath", "SocketBindDeny", "NetworkNamespacePath"],
)
def test_settings_of_which_it_is_not_known_what_they_let_through(key: str) -> None:
    line = ("/etc/systemd/system/system.slice.d/x.conf", f"{key}=x")
    (finding,) = units_bench.said(line)
    assert finding.kind is FindingKind.UNKNOWN
    assert finding.title == f"what {key} of system.slice lets through is not known"
    assert finding.evidence == (f"{line[0]}:1: {key}=x",)
    assert finding.fix.startswith(
        "If it lets the cluster's hosts through, add to unit_network.accept"
    )


UNITS = (
    "/etc/systemd/system.control", "/run/systemd/system.control", "/etc/systemd/system", "/run/systemd/system",
    "/usr/local/lib/systemd/system", "/usr/lib/systemd/system",
)  # fmt: skip


@pytest.mark.parametrize("at", range(len(UNITS)))
def test_of_two_files_of_a_unit_the_earlier_directory_counts(at: int) -> None:
    for name in ("a.service", "a.service.d/x.conf", "service.d/x.conf"):
        mentions = [
            Mention(path=f"{folder}/{name}", line=1, text=f"Slice={number}.slice")
            for number, folder in enumerate(UNITS)
        ]
        (line,) = _units.lines_of(reversed(mentions[at:]), "a.service")
        assert line.value == f"{at}.slice"


CONFIGURATION = ("/etc/systemd", "/run/systemd", "/usr/local/lib/systemd", "/usr/lib/systemd")


@pytest.mark.parametrize("at", range(len(CONFIGURATION)))
def test_of_two_files_of_systemd_itself_the_earlier_directory_counts(at: int) -> None:
    for name in ("logind.conf", "logind.conf.d/x.conf"):
        paths = [f"{folder}/{name}" for folder in CONFIGURATION]
        files = {
            path: File(path=path, real_path=path, exists=True, content=f"RemoveIPC={path}".encode())
            for path in paths[at:]
        }
        state = record(HostState, host="a").model_copy(update={"files": files})
        line = _systemd.deciding(state, "logind.conf", "RemoveIPC")
        assert line is not None
        assert line.value == paths[at]


def disabled(name: str) -> Unit:
    return Unit(name=name, load="loaded", active="active", enabled="disabled")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((f"{name}.service", FindingKind.BLOCKED) for name in (
            "ssh", "sshd", "slurmd", "kubelet", "openibd", "nvidia-fabricmanager", "nvidia-imex",
        )),
        *((f"{name}.service", FindingKind.REPORT) for name in (
            "chrony", "chronyd", "systemd-timesyncd", "ntp", "docker",
        )),
    ],
)  # fmt: skip
def test_services_that_the_next_boot_has_to_start(name: str, kind: FindingKind) -> None:
    (finding,) = boot_bench.found(boot_bench.host(units=(disabled(name),)))
    assert finding.kind is kind
    assert finding.title.startswith(f"after the next boot, {name} does not run")
    assert finding.fix == f"Have it started: systemctl --no-reload enable {name}"


@pytest.mark.parametrize(
    "name",
    ["chrony.service", "chronyd.service", "systemd-timesyncd.service", "ntp.service"],
)
def test_services_that_keep_the_time(name: str) -> None:
    state = host_state("a", "10.0.0.1")
    running = state.model_copy(update={"units": {name: disabled(name)}})
    assert name.removesuffix(".service") in time_service(running)
    assert time_service(running) != time_service(state.model_copy(update={"units": {}}))


@pytest.mark.parametrize(
    "path",
    [
        "/etc/netplan/x.yaml", "/etc/network/interfaces.d/x", "/etc/systemd/network/x.network",
        "/etc/NetworkManager/system-connections/x", "/etc/sysconfig/network-scripts/route-eth0",
        "/etc/networkd-dispatcher/routable.d/x", "/etc/rc.local",
    ],
)  # fmt: skip
@pytest.mark.parametrize("loss", ["unreachable", "blackhole", "prohibit"])
def test_files_of_the_network_that_lose_a_peer_at_boot(path: str, loss: str) -> None:
    lines = ((path, f"ip route add {loss} 10.0.0.2/32"),)
    (finding,) = boot_bench.found(boot_bench.host(*lines))
    assert finding.title == "after the next boot, this host drops what it sends to b"
    shaped = boot_bench.found(boot_bench.host((path, "tc qdisc add dev eth0 root netem loss 1%")))
    assert [f.title for f in shaped] == [
        "after the next boot, traffic control loses or delays packets"
    ]


@pytest.mark.parametrize(
    ("path", "when"),
    [
        ("/boot/grub/grub.cfg", "after the next boot"),
        ("/boot/grub2/grub.cfg", "after the next boot"),
        ("/boot/loader/entries/a.conf", "after the next boot"),
        ("/etc/default/grub", "after the next update-grub and boot"),
        ("/etc/default/grub.d/a.cfg", "after the next update-grub and boot"),
        ("/boot/other", ""),
    ],
)
def test_files_of_the_boot_loader(path: str, when: str) -> None:
    state = boot_bench.host((path, 'GRUB_CMDLINE_LINUX="quiet ipv6.disable=1"'))
    titles = [finding.title for finding in boot_bench.found(state)]
    assert titles == ([f"{when}, the kernel has no IPv6 (ipv6.disable=1)"] if when else [])


@pytest.mark.parametrize(
    ("path", "is_read"),
    [
        ("/etc/network/interfaces", True),
        ("/etc/sysconfig/network-scripts/ifcfg-eth0", True),
        ("/etc/netplan/x.yaml", False),
    ],
)
def test_an_address_without_a_prefix_counts_where_the_prefix_stands_elsewhere(
    path: str, is_read: bool
) -> None:
    lines = ((path, "eth0:" if "netplan" in path else "iface eth0"), (path, "address 10.0.0.9"))
    assert bool(boot_bench.found(boot_bench.host(*lines))) is is_read
