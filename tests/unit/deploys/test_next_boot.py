"""What is right now and would be wrong after the next boot."""

from __future__ import annotations

import pytest

from remedy.deploys._boot_scripts import Outline, Write, writes_of
from remedy.plan import FindingKind
from remedy.probe import (
    Firewalls,
    Identity,
    Kernel,
    Mention,
    NftChain,
    NftRule,
    NftRuleset,
    Unit,
)
from remedy.values import Unknown
from tests.unit.build import record
from tests.unit.deploys.boot_bench import found, host


def service(name: str, enabled: str, active: str = "active") -> Unit:
    load = "masked" if enabled == "masked" else "loaded"
    return Unit(name=name, load=load, active=active, enabled=enabled)


NETPLAN, NETWORKD = "/etc/netplan/50.yaml", "/etc/systemd/network/10-eth0.network"
KEYFILE, IFUPDOWN = "/etc/NetworkManager/system-connections/eth0", "/etc/network/interfaces"
IFCFG = "/etc/sysconfig/network-scripts/ifcfg-eth0"


@pytest.mark.parametrize(
    ("units", "present", "is_named"),
    [
        ((service("ssh.service", "disabled"),), (), True),
        ((service("ssh.service", "disabled"),), ("ssh",), False),
        ((service("ssh.service", "enabled"),), (), False),
        ((service("sshd.service", "disabled"), service("ssh.service", "enabled")), (), False),
        ((service("slurmd.service", "disabled"),), (), True),
        ((service("slurmd.service", "disabled", "inactive"),), (), False),
        ((service("docker.service", "disabled"),), ("docker",), False),
        ((service("ssh.service", "masked"),), (), True),
        ((service("ssh.service", "masked", "inactive"),), (), False),
        ((service("systemd-networkd.service", "disabled"),), (), True),
        ((service("networking.service", "masked"),), (), True),
        (
            (
                service("networking.service", "enabled"),
                service("systemd-networkd.service", "disabled"),
            ),
            (),
            False,
        ),
        ((service("nvidia-fabricmanager.service", "disabled"),), (), True),
        ((service("chrony.service", "disabled"),), (), True),
        ((service("systemd-sysctl.service", "masked", "inactive"),), (), True),
    ],
)
def test_what_runs_has_to_be_started_at_boot(
    units: tuple[Unit, ...], present: tuple[str, ...], is_named: bool
) -> None:
    sockets = tuple(f"/etc/systemd/system/sockets.target.wants/{name}.socket" for name in present)
    labels = [finding.label for finding in found(host(units=units, present=sockets))]
    assert labels == (["boot-differs"] if is_named else [])


@pytest.mark.parametrize(
    ("lines", "mtu"),
    [
        (((NETPLAN, "    eth0:"), (NETPLAN, "      match:"), (NETPLAN, "      mtu: 1500")), 1500),
        (((NETPLAN, "    eth9:"), (NETPLAN, "      mtu: 1500")), None),
        (((NETPLAN, "    eth0:"), (NETPLAN, "      mtu: 9000")), None),
        (((NETWORKD, "Name=eth0"), (NETWORKD, "MTUBytes=1400")), 1400),
        (((KEYFILE, "interface-name=eth0"), (KEYFILE, "mtu=1500")), 1500),
        (((IFUPDOWN, "iface lo inet dhcp"), (IFUPDOWN, "iface eth0 inet dhcp"), (IFUPDOWN, " mtu 1500")), 1500),
        (((IFCFG, 'MTU="1500"'),), 1500),
        (((IFUPDOWN, "# iface eth0 inet static"), (IFUPDOWN, "# mtu 1500")), None),
    ],
)  # fmt: skip
def test_the_mtu_of_files_is_held_against_that_in_force(
    lines: tuple[tuple[str, str], ...], mtu: int | None
) -> None:
    titles = [finding.title for finding in found(host(*lines))]
    expected = f"after the next boot, the MTU of eth0 is {mtu}, and now it is 9000"
    assert titles == ([expected] if mtu else [])


@pytest.mark.parametrize(
    ("lines", "address"),
    [
        (((NETPLAN, "    eth0:"), (NETPLAN, "      addresses: [10.0.0.9/24]")), "10.0.0.9"),
        (((NETPLAN, "    eth0:"), (NETPLAN, "      addresses: [10.0.0.1/24]")), None),
        (((NETPLAN, "    eth0:"), (NETPLAN, "      - 10.0.0.9/24"), (NETPLAN, "      dhcp4: true")), None),
        (((NETPLAN, "    eth0:"), (NETPLAN, "      - 10.0.0.9/24"), (NETPLAN, "      - 10.0.0.1/24")), None),
        (((NETPLAN, "    eth0:"), (NETPLAN, "        addresses: [8.8.8.8]")), None),
        (((NETPLAN, "    eth0:"), (NETPLAN, "        - to: 10.9.0.0/16")), None),
        (((NETPLAN, "    eth1:"), (NETPLAN, "      addresses: [10.0.0.9/24]")), None),
        (((NETWORKD, "Name=eth0"), (NETWORKD, "Address=10.0.0.9/24")), "10.0.0.9"),
        (((KEYFILE, "interface-name=eth0"), (KEYFILE, "address1=10.0.0.9/24,10.0.0.254")), "10.0.0.9"),
        (((IFUPDOWN, "iface eth0 inet static"), (IFUPDOWN, "  address 10.0.0.9")), "10.0.0.9"),
        (((IFUPDOWN, "iface eth0 inet dhcp"), (IFUPDOWN, "  address 10.0.0.9")), None),
        (((IFCFG, 'IPADDR="10.0.0.9"'),), "10.0.0.9"),
        (((IFCFG, "BOOTPROTO=dhcp"), (IFCFG, "IPADDR=10.0.0.9")), None),
    ],
)  # fmt: skip
def test_the_address_of_files_is_held_against_the_cluster_address(
    lines: tuple[tuple[str, str], ...], address: str | None
) -> None:
    titles = [finding.title for finding in found(host(*lines))]
    expected = f"after the next boot, eth0 has {address}, and not the cluster address 10.0.0.1"
    assert titles == ([expected] if address else [])


@pytest.mark.parametrize(
    ("lines", "loses"),
    [
        (((NETPLAN, "        - to: 10.0.0.2/32"), (NETPLAN, "          type: unreachable")), True),
        (((NETPLAN, "        - to: 10.0.0.2/32"), (NETPLAN, "          via: 10.0.0.254")), False),
        (((NETWORKD, "Destination=10.0.0.0/30"), (NETWORKD, "Type=blackhole")), True),
        (((NETWORKD, "Destination=10.5.0.0/16"), (NETWORKD, "Type=blackhole")), False),
        (((IFUPDOWN, "  up ip route add prohibit 10.0.0.2"),), True),
        (((IFUPDOWN, "  up ip rule add to 10.0.0.2/32 prohibit"),), True),
        ((("/etc/rc.local", "ip route add blackhole 10.0.0.999"),), False),
        ((("/etc/profile", "ip route add blackhole 10.0.0.2"),), False),
    ],
)
def test_routes_of_files_that_lose_peers_are_named(
    lines: tuple[tuple[str, str], ...], loses: bool
) -> None:
    titles = [finding.title for finding in found(host(*lines))]
    assert titles == (["after the next boot, this host drops what it sends to b"] if loses else [])


@pytest.mark.parametrize(
    ("path", "text", "words"),
    [
        ("/boot/grub/grub.cfg", "linux /vmlinuz ipv6.disable=1 quiet", "next boot, the kernel has no IPv6"),
        ("/boot/loader/entries/a.conf", "options ipv6.disable=1 quiet", "next boot, the kernel has no IPv6"),
        ("/etc/default/grub", 'GRUB_CMDLINE_LINUX="ipv6.disable=1"', "after the next update-grub and boot"),
        ("/etc/modprobe.d/b.conf", "blacklist mlx5_core", "the module mlx5_core may not be loaded"),
        ("/etc/modprobe.d/b.conf", "install mlx5-core /bin/false", "the module mlx5_core may not be loaded"),
        ("/etc/rc.local", "tc qdisc add dev eth0 root netem loss 1%", "traffic control loses or delays"),
        ("/etc/rc.local", "/sbin/iptables -P INPUT DROP", "a script may keep the cluster's hosts out"),
        ("/etc/network/if-up.d/x", "iptables -A INPUT -p tcp -j REJECT", "a script may keep"),
        ("/etc/systemd/system/x.service", "ExecStart=/usr/sbin/nft -f /etc/x.nft", "a script may keep"),
        ("/etc/network/interfaces", "post-up iptables-restore </etc/x.rules", "a script may keep"),
        ("/etc/cron.d/x", "@reboot root nft add rule inet a b drop", "a script may keep"),
    ],
)  # fmt: skip
def test_other_lines_of_the_next_boot_are_named_with_their_place(
    path: str, text: str, words: str
) -> None:
    (finding,) = found(host((path, text)))
    assert words in finding.title
    assert finding.evidence[0].startswith(f"{path}:1")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/boot/grub/grub.cfg", "linux /vmlinuz root=UUID=1 recovery ipv6.disable=1"),
        ("/boot/grub/grub.cfg", "linux /vmlinuz ipv6.disable=0"),
        ("/etc/modprobe.d/b.conf", "blacklist nouveau"),
        ("/etc/modprobe.d/b.conf", "options mlx5_core debug=1"),
        ("/etc/rc.local", "# iptables -P INPUT DROP"),
        ("/etc/rc.local", "iptables -A INPUT -s 192.0.2.1 -j DROP"),
        ("/etc/rc.local", "iptables -A INPUT -p tcp --dport 25 -j DROP"),
        ("/etc/rc.local", "iptables -P FORWARD DROP"),
        ("/etc/cron.d/x", "0 4 * * * root iptables-restore </etc/x.rules"),
        ("/etc/profile.d/x.sh", "iptables -P INPUT DROP"),
    ],
)
def test_lines_that_change_nothing_are_passed_over(path: str, text: str) -> None:
    assert found(host((path, text))) == []


def test_a_script_that_closes_the_firewall_is_accepted_by_its_line() -> None:
    state = host(("/etc/rc.local", "iptables -P INPUT DROP"))
    (finding,) = found(state)
    assert finding.kind is FindingKind.UNKNOWN
    assert 'next_boot.accept in remedy.yaml: "/etc/rc.local: iptables -P INPUT DROP"' in finding.fix


def test_what_a_script_has_loaded_is_judged_with_the_rules_in_force() -> None:
    state = host(("/etc/systemd/system/x.service", "ExecStart=/usr/sbin/nft -f /etc/x.nft"))
    assert len(found(state)) == 1
    chain = NftChain("inet", "x", "in", "input", 0, "accept", (NftRule(1, "", "[]"),))
    assert isinstance(state.firewalls, Firewalls)
    ruleset = NftRuleset(tables=(("inet", "x"),), chains=(chain,), sets=())
    firewalls = state.firewalls.model_copy(update={"nft": ruleset})
    assert found(state.model_copy(update={"firewalls": firewalls})) == []


def test_ipv6_that_a_file_switches_is_reported() -> None:
    key = "net.ipv6.conf.all.disable_ipv6"
    (finding,) = found(host(persisted=((key, "1"),), live={key: "0"}))
    assert finding.title == "after the next boot, IPv6 is off, and now it is not"
    assert found(host(persisted=((key, "1"),), live={key: "1"})) == []


def test_a_host_name_of_a_kernel_setting_counts_after_the_file() -> None:
    (finding,) = found(host(persisted=(("kernel.hostname", "node"),)), "hostname")
    assert finding.title == "after the next boot, the host name is 'node'"
    state = host()
    kernel = record(Kernel, command_line="quiet systemd.hostname=other")
    assert isinstance(state.identity, Identity)
    (finding,) = found(state.model_copy(update={"kernel": kernel}), "hostname")
    assert finding.evidence == ("kernel command line: systemd.hostname=other",)


def test_an_interface_that_is_to_answer_nobody_is_named_now_and_for_the_next_boot() -> None:
    key = "net.ipv4.conf.all.arp_ignore"
    state = host(persisted=((key, "8"),), live={key: "0"})
    titles = [finding.title for finding in found(state, "neighbours")]
    assert titles[0] == (
        "after the next boot, this host answers nobody who asks for its hardware address"
    )


TMPFILES, UDEV, SCRIPT = "/etc/tmpfiles.d/site.conf", "/etc/udev/rules.d/9.rules", "/etc/rc.local"
LIVE = {"net.core.somaxconn": "4096", "net.ipv4.conf.eth0.rp_filter": "2"}


@pytest.mark.parametrize(
    ("path", "line", "words"),
    [
        (TMPFILES, "w /proc/sys/net/core/somaxconn - - - - 128", "net.core.somaxconn is 128"),
        (TMPFILES, "w! /proc/sys/net/ipv4/conf/*/rp_filter - - - - 1", "rp_filter is 1"),
        (TMPFILES, "w\t/proc/sys/net/core/somaxconn\t-\t-\t-\t-\t4096", None),
        (TMPFILES, "#w /proc/sys/net/core/somaxconn - - - - 128", None),
        (TMPFILES, "w /sys/class/net/eth0/mtu - - - - 1500", "the MTU of eth0 is 1500"),
        (TMPFILES, "w /sys/class/net/eth0/mtu - - - - 9000", None),
        (TMPFILES, "w /sys/class/net/eth7/mtu - - - - 1500", None),
        (TMPFILES, "f+ /etc/hosts 0644 root root - 127.0.0.1 localhost", "/etc/hosts is written"),
        (TMPFILES, "r! /etc/hosts", "/etc/hosts is written"),
        (TMPFILES, "L+ /etc/hosts - - - - ../usr/share/hosts", "/etc/hosts is written"),
        (TMPFILES, "f /etc/hosts 0644 root root - x", None),
        (TMPFILES, "C! /etc/hosts", None),
        (TMPFILES, "d /etc/hosts", None),
        (UDEV, 'ACTION=="add", SYSCTL{net/core/somaxconn}="128"', "net.core.somaxconn is 128"),
        (UDEV, 'SUBSYSTEM=="net", KERNEL=="eth0", ATTR{mtu}="1500"', "the MTU of eth0 is 1500"),
        (UDEV, 'KERNEL=="eth7", ATTR{mtu}="1500"', None),
        (SCRIPT, "sysctl -w net.core.somaxconn=128", "net.core.somaxconn is 128"),
        (SCRIPT, "/sbin/sysctl -q net.core.somaxconn = 4096", None),
        (SCRIPT, "echo 128 > /proc/sys/net/core/somaxconn", "net.core.somaxconn is 128"),
        (SCRIPT, "echo $N >/proc/sys/net/core/somaxconn", "somaxconn may be something else, and"),
        ("/etc/cron.d/x", "@reboot root sysctl -w net.core.somaxconn=128", "somaxconn is 128"),
        ("/etc/cron.d/x", "5 * * * * root sysctl -w net.core.somaxconn=128", None),
    ],
)  # fmt: skip
def test_what_else_writes_at_boot_is_named_where_it_is_otherwise_now(
    path: str, line: str, words: str | None
) -> None:
    findings = found(host((path, line), live=LIVE))
    assert [words in f.title for f in findings if words] == ([True] if words else [])
    assert bool(findings) is bool(words)
    assert all(f.evidence[0] == f"{path}:1: {line}" for f in findings)


IF_UP = "/etc/network/if-up.d/site"
WRITES = "sysctl -w net.core.somaxconn=128"


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        ((WRITES,), "blocked"),
        (("exec /", WRITES), None),  # the script became another program
        (("if ", "fi", WRITES), "blocked"),
        (("site() {", "}", WRITES), "blocked"),
        (("site ()", "{", "}", WRITES), "blocked"),
        ((f"/sbin/{WRITES} >/dev/null 2>&1 || true",), "blocked"),
        ((f"modprobe x; {WRITES}",), "blocked"),
        (("sh -c 'sysctl -w net.core.somaxconn=128'",), "blocked"),
        (('sysctl -w "net.core.somaxconn = 128"',), "blocked"),
        ((f"LC_ALL=C sudo {WRITES}",), "blocked"),
        (("(sysctl -w net.core.somaxconn=128)",), "blocked"),
        # In a branch, a loop, a function, after a way out, in a text: it depends.
        (("if ", WRITES, "fi"), "unknown"),
        (("if ", "case ", "esac", WRITES, "fi"), "unknown"),
        (("case ", f"up) {WRITES};;", "esac"), "unknown"),
        (("while ", WRITES, "done"), "unknown"),
        (("site() {", WRITES, "}"), "unknown"),
        (("site ()", "{", WRITES, "}"), "unknown"),
        ((f"\t{WRITES}",), "unknown"),
        (("|| exit ", WRITES), "unknown"),
        (("if ", "  exit ", "fi", WRITES), "unknown"),
        (("<<", WRITES), "unknown"),
        ((f'[ "$IFACE" = eth1 ] && {WRITES}',), "unknown"),
        ((f"grep -q x /etc/y || {WRITES}",), "unknown"),
        ((f'if [ "$1" = eth1 ]; then {WRITES}; fi',), "unknown"),
        ((f"ip netns exec site {WRITES}",), "unknown"),
        ((f"ssh peer '{WRITES}'",), "unknown"),
        (("sysctl -w net.core.$NAME=128",), "unknown"),
        (("sysctl -w net.core.somaxconn=$N",), "unknown"),
        # Nothing of it is carried out.
        (("exit ", WRITES), None),
        ((f"true # {WRITES}",), None),
        ((f"echo {WRITES}",), None),
        ((f"echo '{WRITES}' >/tmp/x",), None),
        ((f"logger -t site '{WRITES}'",), None),
        (("sysctl --dry-run -w net.core.somaxconn=128",), None),
        (("sysctl -n net.core.somaxconn",), None),
        # It is so now, or nothing that is known is written.
        (("if ", "sysctl -w net.core.somaxconn=4096", "fi"), None),
        (("sysctl -w net.core.$NAME=4096",), None),
        (("sysctl -w net.core.other=$N",), None),
    ],
)
def test_a_setting_of_a_script_is_judged_as_far_as_it_is_sure_to_be_carried_out(
    lines: tuple[str, ...], kind: str | None
) -> None:
    findings = found(host(*((IF_UP, line) for line in lines), live=LIVE))
    assert [finding.kind.value for finding in findings] == ([kind] if kind else [])
    for finding in findings:
        at = next(i for i, line in enumerate(lines, 1) if "sysctl" in line)
        assert finding.evidence == (f"{IF_UP}:{at}: {lines[at - 1].strip()}",)
        assert "net.core." in finding.title


@pytest.mark.parametrize(
    ("path", "line", "kind"),
    [
        ("/etc/network/if-post-down.d/site", WRITES, None),
        ("/etc/network/interfaces", f"  post-up {WRITES}", "blocked"),
        ("/etc/network/interfaces", f"  pre-down {WRITES}", None),
        ("/etc/crontab", f"@reboot root {WRITES}", "blocked"),
        ("/etc/systemd/system/site.service", f"ExecStart=-/sbin/{WRITES}", "unknown"),
        ("/etc/systemd/system/site.service", f"ExecStop=/sbin/{WRITES}", None),
    ],
)
def test_what_runs_at_boot_is_told_from_what_does_not(
    path: str, line: str, kind: str | None
) -> None:
    findings = found(host((path, line), live=LIVE))
    assert [finding.kind.value for finding in findings] == ([kind] if kind else [])


def test_a_line_in_the_middle_of_a_text_is_not_sure() -> None:
    line = Mention(path=IF_UP, line=2, text=f'{WRITES}"')
    assert list(writes_of(line, Outline(()))) == [
        Write("/proc/sys/net/core/somaxconn", "128", sure=False)
    ]


@pytest.mark.parametrize(
    ("path", "remedy", "does"),
    [
        ("/etc/netplan/50.yaml", "next_boot", "does at boot"),
        ("/etc/bash.bashrc", "environment", "sets for jobs"),
        ("/home/ann", "environment", "sets for jobs"),
        ("/var/spool/at/a0000101ba4e08", "schedule", "is to do"),
    ],
)
def test_a_file_that_could_not_be_searched_is_unknown_by_itself(
    path: str, remedy: str, does: str
) -> None:
    state = host((SCRIPT, WRITES), live=LIVE)
    state = state.model_copy(update={"unsearched": {path: Unknown(reason="it is a fifo")}})
    found_by = {name: found(state, name) for name in ("next_boot", "environment", "schedule")}
    said = [f for findings in found_by.values() for f in findings if path in f.title]
    assert [(f.remedy, f.kind, f.title, f.evidence) for f in said] == [
        (
            remedy,
            FindingKind.UNKNOWN,
            f"what {path} {does} is not known: it could not be searched",
            (f"{path}: it is a fifo",),
        )
    ]
    assert any("net.core.somaxconn is 128" in f.title for f in found_by["next_boot"])
