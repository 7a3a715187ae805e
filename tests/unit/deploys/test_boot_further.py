"""The next boot, further: targets, words of the boot loader, crontabs, scripts, Docker, the machine's id."""

from __future__ import annotations

import pytest

from remedy.probe import File, HostState, Kernel, LoginSession, Unit
from tests.unit.build import record
from tests.unit.deploys.boot_bench import found, host

GRUB, BLS, LATER = "/boot/grub/grub.cfg", "/boot/loader/entries/a.conf", "/etc/default/grub"
TARGETS = "/etc/systemd/system"


def with_file(
    path: str, content: bytes = b"", leads: str = "", *, exists: bool = True
) -> HostState:
    state = host(present=("/run/systemd/system",))
    state = state.model_copy(
        update={"session": record(LoginSession, present=frozenset({"/run/systemd/system"}))}
    )
    file = File(path=path, real_path=leads or path, exists=exists, content=content)
    return state.model_copy(update={"files": {**state.files, path: file}})


@pytest.mark.parametrize(
    ("path", "text", "words"),
    [
        (GRUB, "linux /vmlinuz ro systemd.unit=rescue.target", "comes up in rescue.target"),
        (GRUB, "linux /vmlinuz ro systemd.unit=multi-user.target", None),
        (GRUB, "linux /vmlinuz ro single", None),  # the entry for emergencies that Debian makes
        (BLS, "options root=UUID=1 single", "for one user at its console"),
        (GRUB, "linux /vmlinuz ro init=/bin/bash", "for one user at its console"),
        (GRUB, "linux /vmlinuz ro systemd.mask=ssh.service", "ssh.service is masked"),
        (GRUB, "linux /vmlinuz ro net.ifnames=0", "interfaces have other names"),
        (GRUB, "linux /vmlinuz ro quiet", None),
        (GRUB, "linux /vmlinuz ro sysctl.net.core.somaxconn=1", "a kernel setting is another"),
        (GRUB, "linux /vmlinuz ro sysctl.net.core.somaxconn=4096", None),
        (
            GRUB,
            "linux /vmlinuz ro systemd.setenv=A=1",
            "systemd gives all services another variable",
        ),
        (LATER, 'GRUB_CMDLINE_LINUX="emergency"', "after the next update-grub and boot"),
    ],
)
def test_words_of_the_boot_loader(path: str, text: str, words: str | None) -> None:
    findings = found(host((path, text), live={"net.core.somaxconn": "4096"}))
    assert [words in f.title for f in findings if words] == ([True] if words else [])
    assert bool(findings) is bool(words)


def test_words_that_the_kernel_has_now_change_nothing() -> None:
    state = host((GRUB, "linux /vmlinuz net.ifnames=0 ro"))
    now = state.model_copy(update={"kernel": record(Kernel, command_line="ro net.ifnames=0")})
    assert found(now) == []


def test_a_target_that_is_not_there_and_one_that_is_masked() -> None:
    path = f"{TARGETS}/default.target"
    gone = with_file(path, leads="/usr/lib/systemd/system/gone.target", exists=False)
    for state in (gone, with_file(path, leads="/dev/null")):
        (finding,) = found(state)
        assert "in rescue mode: its default target is not there" in finding.title
    assert found(with_file(path, exists=False)) == []
    (finding,) = found(with_file(f"{TARGETS}/multi-user.target", leads="/dev/null"))
    assert "multi-user.target starts does not run: it is masked" in finding.title
    assert found(with_file(f"{TARGETS}/multi-user.target", b"[Unit]\n")) == []
    assert found(with_file(f"{TARGETS}/site.target", leads="/dev/null")) == []


@pytest.mark.parametrize(
    ("path", "text", "kind"),
    [
        ("/var/spool/cron/crontabs/root", "@reboot iptables -P INPUT DROP", "unknown"),
        ("/var/spool/cron/crontabs/root", "5 4 * * * iptables -P INPUT DROP", None),
        ("/var/spool/cron/root", "@reboot sysctl -w net.core.somaxconn=1", "blocked"),
        ("/etc/udev/rules.d/9.rules", 'ACTION=="add", RUN+="/sbin/iptables -P INPUT DROP"', "unknown"),
        ("/etc/cloud/cloud.cfg.d/9.cfg", "  - iptables -P INPUT DROP", "unknown"),
        ("/etc/rc.local", "ufw --force enable", "unknown"),
        ("/etc/rc.local", "ip link set dev eth0 mtu 1400", "blocked"),
        ("/etc/rc.local", "ip link set eth0 mtu 9000", None),
        ("/etc/rc.local", "ifconfig eth0 mtu 1400", "blocked"),
        ("/etc/rc.local", "ip link set dev eth7 mtu 1400", None),
        ("/etc/rc.local", "ip link set eth0 down", "blocked"),
        ("/etc/rc.local", "ip addr flush dev eth0", "blocked"),
        ("/etc/rc.local", "ip addr flush dev eth7", None),
        ("/etc/network/if-post-down.d/x", "ip link set eth0 down", None),
        ("/etc/systemd/system/x.service", "ExecStart=/sbin/ip route add blackhole 10.0.0.2", "blocked"),
        ("/usr/local/lib/systemd/system/x.service", "ExecStart=tc qdisc add dev eth0 netem loss 1%", "blocked"),
        ("/etc/rc.d/rc.local", "ip route add unreachable 10.0.0.2", "blocked"),
    ],
)  # fmt: skip
def test_what_runs_commands_at_boot(path: str, text: str, kind: str | None) -> None:
    findings = found(host((path, text), live={"net.core.somaxconn": "4096"}))
    assert [finding.kind.value for finding in findings] == ([kind] if kind else [])


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b'{"bip": "10.0.0.254/24"}', "blocked"),
        (b'{"bip": "172.30.0.1/16"}', None),
        (b'{"fixed-cidr": "10.0.0.0/28"}', "blocked"),
        (b'{"default-address-pools": [{"base": "10.0.0.0/8", "size": 24}]}', "report"),
        (b'{"bip": 7, "default-address-pools": [1, {"base": 2}]}', None),
        (b"[]", None),
        (b"{", None),
    ],
)
def test_a_bridge_of_docker_in_the_network_of_the_cluster(content: bytes, kind: str | None) -> None:
    findings = found(with_file("/etc/docker/daemon.json", content))
    assert [finding.kind.value for finding in findings] == ([kind] if kind else [])


@pytest.mark.parametrize(
    ("content", "is_named"),
    [(b"", True), (b"uninitialized\n", True), (b"0123456789abcdef0123456789abcdef\n", False)],
)
def test_a_machine_without_an_id(content: bytes, is_named: bool) -> None:
    assert bool(found(with_file("/etc/machine-id", content))) is is_named


def ssh(load: str, active: str, enabled: str = "disabled") -> Unit:
    return Unit(name="ssh.service", load=load, active=active, enabled=enabled)


@pytest.mark.parametrize(
    ("unit", "by_ssh", "words"),
    [
        (ssh("loaded", "inactive"), True, "what starts sshd at the next boot is not known"),
        (
            ssh("masked", "inactive", "masked"),
            True,
            "what starts sshd at the next boot is not known",
        ),
        (ssh("loaded", "inactive"), False, None),
        (ssh("loaded", "inactive", "enabled"), True, None),
        (ssh("not-found", "inactive"), True, None),
        (ssh("not-found", "active"), False, "and its file is gone"),
    ],
)
def test_an_sshd_that_no_unit_starts(unit: Unit, by_ssh: bool, words: str | None) -> None:
    environment = {"SSH_CONNECTION": "192.0.2.9 1 10.0.0.1 22"} if by_ssh else {}
    state = host(units=(unit,)).model_copy(update={"environment": environment})
    findings = found(state)
    assert [words in f.title for f in findings if words] == ([True] if words else [])
    assert bool(findings) is bool(words)
    for finding in findings:
        shown = finding.fix.rpartition('remedy.yaml: "')[2].rstrip('"')
        assert finding.kind.value == "blocked" or found(state, accept=(shown,)) == []
