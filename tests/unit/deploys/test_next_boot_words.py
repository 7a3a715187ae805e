"""What is said of the next boot."""

from __future__ import annotations

from typing import Any

import pytest

from remedy.probe import Firewalls, HostState, Kernel, NftChain, NftRule, NftRuleset, Unit
from remedy.values import Unknown
from tests.unit.build import host_state, record
from tests.unit.deploys.boot_bench import host
from tests.unit.deploys.words_bench import Said, planned, said


def found(state: HostState, **settings: Any) -> list[Said]:
    return said(planned("next_boot", state, host_state("b", "10.0.0.2"), **settings))


def service(
    name: str, enabled: str = "disabled", active: str = "active", load: str = "loaded"
) -> Unit:
    return Unit(name=f"{name}.service", load=load, active=active, enabled=enabled)


def off(kind: str, name: str) -> Said:
    return Said(
        kind,
        f"after the next boot, {name}.service does not run: it runs now, and is not started at boot",
        (f"{name}.service: active, not enabled",),
        f"Have it started: systemctl --no-reload enable {name}.service",
    )


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *(("blocked", name) for name in (
            "ssh", "sshd", "slurmd", "kubelet", "openibd", "nvidia-fabricmanager", "nvidia-imex",
        )),
        *(("report", name) for name in ("chrony", "chronyd", "systemd-timesyncd", "ntp", "docker")),
    ],
)  # fmt: skip
def test_a_service_that_nothing_starts(kind: str, name: str) -> None:
    assert found(host(units=(service(name),))) == [off(kind, name)]
    socket = f"/etc/systemd/system/sockets.target.wants/{name}.socket"
    assert found(host(units=(service(name),), present=(socket,))) == []
    for fine in (
        service(name, "enabled"), service(name, "static"), service(name, active="inactive"),
        *(() if name.startswith("ssh") else (service(name, load="not-found"),)),
    ):  # fmt: skip
        assert found(host(units=(fine,))) == []


def test_of_services_that_do_the_same_one_is_enough() -> None:
    assert found(host(units=(service("chronyd"), service("ntp", "enabled", "inactive")))) == []
    both = host(units=(service("chrony"), service("ntp")))
    assert found(both) == [off("report", "chrony")]
    assert found(host(units=(service("nfsd"),))) == []


def test_settings_that_nothing_applies() -> None:
    masked = service("systemd-sysctl", "masked", "inactive", "masked")
    assert found(host(units=(masked,))) == [
        Said(
            "blocked", "after the next boot, no setting of /etc/sysctl.d is in force: systemd-sysctl is masked",
            ("systemd-sysctl.service: masked",),
            "Unmask it: systemctl --no-reload unmask systemd-sysctl.service",
        )
    ]  # fmt: skip
    assert found(host(units=(service("systemd-sysctl", "static", "active"),))) == []


IPV6 = "net.ipv6.conf.{}.disable_ipv6"


@pytest.mark.parametrize(
    ("name", "stored", "live", "word"),
    [
        ("all", "1", "0", "off"), ("all", "0", "1", "on"), ("default", "1", "0", "off"),
        ("all", "1", "1", ""), ("all", "1", None, ""), ("all", "2", "0", ""), ("eth0", "1", "0", ""),
    ],
)  # fmt: skip
def test_ipv6_that_is_switched(name: str, stored: str, live: str | None, word: str) -> None:
    key = IPV6.format(name)
    state = host(persisted=((key, stored),), live={key: live} if live else {})
    expected = Said(
        "report", f"after the next boot, IPv6 is {word}, and now it is not",
        (f"/etc/sysctl.d/9.conf:1: {key} = {stored}; now {live}",),
        "Remove that line, or say in remedy.yaml how it is to be: ipv6.mode",
    )  # fmt: skip
    assert found(state) == [expected] * bool(word)


def test_ipv6_that_is_switched_in_two_places_is_told_once() -> None:
    keys = [IPV6.format(name) for name in ("all", "default")]
    state = host(persisted=tuple((key, "1") for key in keys), live=dict.fromkeys(keys, "0"))
    assert len(found(state)) == 1


NETPLAN, IFCFG = "/etc/netplan/50.yaml", "/etc/sysconfig/network-scripts/ifcfg-eth0"
GRUB = "/etc/default/grub"
WITHOUT_IPV6 = "If that is not meant, take the word out of there, and run update-grub."
MODULE = "Remove that line if the module is needed, and make the initramfs again."
DROPS = "after the next boot, this host drops what it sends to b"
MAY = "after the next boot, a script may keep the cluster's hosts out"
LET = 'If it lets them through, add to next_boot.accept in remedy.yaml: "{}"'


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([("/boot/grub2/grub.cfg", "linux /vmlinuz ipv6.disable=1 quiet")], Said(
            "report", "after the next boot, the kernel has no IPv6 (ipv6.disable=1)",
            ("/boot/grub2/grub.cfg:1",), WITHOUT_IPV6,
        )),
        ([("/boot/loader/entries/a.conf", "options 'ipv6.disable_ipv6=1'")], Said(
            "report", "after the next boot, the kernel has no IPv6 (ipv6.disable_ipv6=1)",
            ("/boot/loader/entries/a.conf:1",), WITHOUT_IPV6,
        )),
        ([(GRUB, 'GRUB_CMDLINE_LINUX="quiet ipv6.disable=1"')], Said(
            "report", "after the next update-grub and boot, the kernel has no IPv6 (ipv6.disable=1)",
            (f"{GRUB}:1",), WITHOUT_IPV6,
        )),
        ([("/boot/grub/grub.cfg", "linux recovery ipv6.disable=1"), ("/boot/grub/grub.cfg",
         "linux ipv6.disable=1"),
          ("/boot/grub/grub.cfg", "linux ipv6.disable=1")], Said(
            "report", "after the next boot, the kernel has no IPv6 (ipv6.disable=1)",
            ("/boot/grub/grub.cfg:2",), WITHOUT_IPV6,
        )),
        ([("/etc/modprobe.d/b.conf", "blacklist  mlx5-core")], Said(
            "report", "after the next boot, the module mlx5_core may not be loaded: it is now",
            ("/etc/modprobe.d/b.conf:1: blacklist mlx5-core",), MODULE,
        )),
        ([("/etc/modprobe.d/b.conf", "blacklist"), ("/etc/modprobe.d/b.conf", "install mlx5_core /bin/true")],
         Said(
            "report", "after the next boot, the module mlx5_core may not be loaded: it is now",
            ("/etc/modprobe.d/b.conf:2: install mlx5_core /bin/true",), MODULE,
        )),
        ([(NETPLAN, " eth0:"), (NETPLAN, "   mtu: 1500"), (IFCFG, "MTU=1400")], Said(
            "blocked", "after the next boot, the MTU of eth0 is 1500, and now it is 9000",
            (f"{NETPLAN}:2: mtu: 1500", f"{IFCFG}:3: MTU=1400"),
            "Write the MTU of the other hosts there: remedy check compares what is in force.",
        )),
        ([(NETPLAN, " eth0:"), (NETPLAN, "   - 10.0.0.9/24"), (IFCFG, 'IPADDR="10.0.0.8"')], Said(
            "blocked",
            "after the next boot, eth0 has 10.0.0.9 and 10.0.0.8, and not the cluster address 10.0.0.1",
            (f"{NETPLAN}:2: - 10.0.0.9/24", f'{IFCFG}:3: IPADDR="10.0.0.8"'),
            "Write the address there that peers know, or correct the inventory.",
        )),
        ([("/etc/rc.local", "ip route add blackhole 10.0.0.2")], Said(
            "blocked", DROPS, ("/etc/rc.local:1: ip route add blackhole 10.0.0.2",),
            "Remove that route or rule from the file, if nothing needs it.",
        )),
        ([("/etc/rc.local", f"/sbin/tc qdisc add dev eth0 root netem loss 1% {'x' * 99}")], Said(
            "blocked", "after the next boot, traffic control loses or delays packets",
            (f"/etc/rc.local:1: /sbin/tc qdisc add dev eth0 root netem loss 1% {'x' * 53}",),
            "Remove that line, if nothing needs it.",
        )),
        ([("/etc/rc.local", "  iptables -P INPUT DROP ")], Said(
            "unknown", MAY, ("/etc/rc.local:1: iptables -P INPUT DROP",),
            LET.format("/etc/rc.local: iptables -P INPUT DROP"),
        )),
        ([("/etc/cron.d/x", "@reboot root nft -f /etc/x.nft")], Said(
            "unknown", MAY, ("/etc/cron.d/x:1: @reboot root nft -f /etc/x.nft",),
            LET.format("/etc/cron.d/x: @reboot root nft -f /etc/x.nft"),
        )),
    ],
)  # fmt: skip
def test_what_an_operator_reads(lines: list[tuple[str, str]], expected: Said) -> None:
    state = host(*lines)
    assert found(state) == [expected]
    assert found(state, report=False) == []
    if "next_boot.accept" in expected.fix:
        assert found(state, accept=[expected.fix.split('"')[1]]) == []


def test_what_the_running_kernel_has_already_is_no_news() -> None:
    line = ("/boot/grub/grub.cfg", "linux ipv6.disable=1")
    for kernel, number in (
        (record(Kernel, command_line="quiet ipv6.disable=1"), 0),
        (record(Kernel, command_line="quiet"), 1),
        (Unknown(reason="no /proc"), 0),
    ):
        assert len(found(host(line).model_copy(update={"kernel": kernel}))) == number
    module = host(("/etc/modprobe.d/b.conf", "blacklist mlx5_core"))
    assert found(module.model_copy(update={"kernel": Unknown(reason="no /proc")})) == []


def test_files_that_could_not_be_searched() -> None:
    state = host(units=(service("slurmd"),)).model_copy(
        update={"mentions": Unknown(reason="no grep")}
    )
    assert [f.title for f in found(state)] == [
        off("blocked", "slurmd").title, "could not read the files of shells, services and the network",
    ]  # fmt: skip
    for group in ("units", "sysctls"):
        assert found(host().model_copy(update={group: Unknown(reason="x")})) == []


@pytest.mark.parametrize(
    ("text", "is_named"),
    [
        ("nft -f /etc/x.nft", True), ("nft list ruleset", False), ("iptables-restore < x", True),
        ("ip6tables-restore < x", True), ("iptables-legacy-restore x", True), ("iptables-nft-restore x", True),
        ("my-nftables -f x", False),
        ("iptables --policy OUTPUT DROP", True), ("ip6tables -A INPUT --jump DROP", True),
        ("iptables-legacy -A INPUT -j REJECT", True), ("iptables-nft -A INPUT -j REJECT", True),
        ("iptables -A INPUT -j ACCEPT", False), ("nft add rule x y reject", True), ("nft add rule x y accept",
         False),
        *((f"iptables -A INPUT {word} x -j DROP", False) for word in (
            "-s", "--source", "-d", "--destination", "-i", "--in-interface", "-o", "--out-interface",
        )),
        *((f"nft add rule x y {word} z drop", False) for word in (
            "saddr", "daddr", "iif", "oif", "iifname", "oifname",
        )),
        ("iptables -A INPUT --dport 999 -j DROP", False), ("iptables -A INPUT --dport 1000 -j DROP", True),
        ("iptables -A INPUT --dports 99 -j DROP", False), ("nft add rule x y tcp dport 25 drop", False),
        ("iptables -A INPUT -p udp -j DROP", False), ("iptables -A INPUT -p icmp -j DROP", False),
        ("iptables -A INPUT -p tcp -j DROP", True),
    ],
)  # fmt: skip
def test_which_lines_close_or_load_a_firewall(text: str, is_named: bool) -> None:
    assert bool(found(host(("/etc/rc.local", text)))) is is_named


@pytest.mark.parametrize(
    ("path", "is_searched"),
    [
        *((f"{folder}x", True) for folder in (
            "/etc/netplan/", "/etc/network/", "/etc/systemd/network/", "/etc/NetworkManager/", "/etc/rc.local",
            "/etc/sysconfig/network-scripts/", "/etc/networkd-dispatcher/", "/etc/systemd/system/",
        )),
        ("/etc/profile", False), ("/etc/cron.d/x", False), ("/etc/crontab", False),
    ],
)  # fmt: skip
def test_where_scripts_are_searched(path: str, is_searched: bool) -> None:
    assert bool(found(host((path, "iptables -P INPUT DROP")))) is is_searched
    at_boot = bool(found(host((path, "@reboot root iptables -P INPUT DROP"))))
    assert at_boot is (is_searched or "cron" in path)


def chain(hook: str, policy: str = "accept", *rules: NftRule) -> NftChain:
    return NftChain("inet", "x", "in", hook, 0, policy, rules)


RULE = NftRule(1, "", "[]")


@pytest.mark.parametrize(
    ("chains", "legacy", "is_loaded"),
    [
        ([chain("input", "accept", RULE)], {}, True),
        ([chain("output", "drop")], {}, True),
        ([chain("ingress", "accept", RULE)], {}, True),
        ([chain("forward", "drop", RULE)], {}, False),
        ([chain("input")], {}, False),
        ([], {"iptables_legacy": "*filter\n-A INPUT -j DROP\n"}, True),
        ([], {"ip6tables_legacy": "*filter\n-A INPUT -j DROP\n"}, True),
        ([], {"iptables_legacy": "*filter\n:INPUT ACCEPT\n"}, False),
        ([], {"iptables_legacy": Unknown(reason="x")}, False),
    ],
)  # fmt: skip
def test_rules_in_force_are_those_that_a_script_loaded(
    chains: list[NftChain], legacy: dict[str, object], is_loaded: bool
) -> None:
    state = host(("/etc/rc.local", "nft -f x"))
    assert isinstance(state.firewalls, Firewalls)
    ruleset = NftRuleset(tables=(), chains=tuple(chains), sets=())
    firewalls = state.firewalls.model_copy(update={"nft": ruleset, **legacy})
    assert bool(found(state.model_copy(update={"firewalls": firewalls}))) is not is_loaded
    for blind in (Unknown(reason="x"), firewalls.model_copy(update={"nft": Unknown(reason="x")})):
        assert found(state.model_copy(update={"firewalls": blind})) == []
