"""What can lock somebody out is guarded, whatever the remedy says that plans it."""

from __future__ import annotations

import pytest

from remedy.errors import UsageError
from remedy.plan import Change, CommandAction, FileAction, Workbench, guarded, guarded_for
from remedy.plan.lockout import SSHD_READS_AGAIN, UNKNOWN_PROGRAM, touches
from remedy.probe import File
from remedy.spec import SpecSection
from tests.unit.build import fleet, host_state

NET, MEMORY = b"net.ipv4.conf.all.rp_filter = 1\n", b"vm.swappiness = 1\n"


def file_of(path: str, real: str = "") -> FileAction:
    return FileAction(path=path, real_path=real or path, before=None, after="0" * 64)


def command_of(do: str, undo: str = "true") -> CommandAction:
    return CommandAction(observe="true", before="a", after="b", do=do, undo=undo)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/etc/ssh/sshd_config.d/90-sessions.conf", "sshd"),
        ("/root/.ssh/authorized_keys", "login"),
        ("/home/ann/.bashrc", "login"),
        ("/etc/security/limits.d/90-few.conf", "login"),
        ("/etc/pam.d/sshd", "login"),
        ("/etc/nologin", "login"),
        ("/etc/sudoers.d/10-nobody", "sudo"),
        ("/etc/nsswitch.conf", "names"),
        ("/etc/hosts.deny", "names"),
        ("/etc/netplan/10-net.yaml", "network"),
        ("/etc/ufw/user.rules", "firewall"),
        ("/etc/systemd/system/sshd.service.d/limit.conf", "sshd"),
        ("/usr/local/bin/sudo", "programs"),
        ("/usr/bin/env", "programs"),
        ("/etc/nccl.conf", ""),
        ("/etc/docker/daemon.json", ""),
        ("/usr/local/bin/paddle-fixed-ports", ""),
        ("/etc/fstab", ""),
    ],
)
def test_a_file_is_of_what_reads_it(path: str, kind: str) -> None:
    assert touches(file_of(path)) == kind
    assert touches(file_of("/srv/link", path)) == kind


def test_of_kernel_settings_those_of_the_network_count_and_those_that_nobody_read() -> None:
    path = "/etc/sysctl.d/90-own.conf"
    assert [touches(file_of(path), *texts) for texts in ((NET,), (b"", NET), (MEMORY,), ())] == [
        *("network", "network"),
        *("", "network"),
    ]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("systemctl restart ssh", "sshd"),
        ("kill -HUP $(cat /run/sshd.pid)", "sshd"),
        ("printf 'MaxSessions 0' >/etc/ssh/sshd_config.d/x.conf", "sshd"),
        ("rm -rf /etc", "sshd"),
        ("rm /etc/ss*", "sshd"),
        ("rm -rf /", "login"),
        ("chmod 0 /bin/bash", "programs"),
        ("echo 1 >/proc/sys/net/ipv4/conf/all/rp_filter", "network"),
        ("if true; then ip link set eth0 down; fi", "network"),
        ('echo "$(iptables -F)"', "firewall"),
        ("command nft flush ruleset", "firewall"),
        ("hostname gpu01", "names"),
        ("sh -c 'true'", UNKNOWN_PROGRAM),
        ("/opt/site/tune", UNKNOWN_PROGRAM),
        ("find /srv -name x -exec true", UNKNOWN_PROGRAM),
        ("echo 'no end", UNKNOWN_PROGRAM),
        ("echo 0 >/proc/sys/kernel/numa_balancing", ""),
        ("mount -o remount,size=8g /dev/shm", ""),
        ("n=1; [ $n = 1 ] && rm -f /srv/data/lock", ""),
    ],
)
def test_a_command_is_of_what_its_text_names(text: str, kind: str) -> None:
    assert touches(command_of(text)) == kind
    assert touches(command_of("true", text)) == kind


def bench_of(path: str) -> Workbench[SpecSection]:
    host = host_state(
        "gpu01", "10.0.0.1", files={path: File(path=path, real_path=path, exists=False)}
    )
    return Workbench(fleet(host), host, SpecSection(), "example", "some-cause")


def test_the_workbench_guards_what_its_remedy_does_not() -> None:
    path = "/etc/ssh/sshd_config.d/90-sessions.conf"
    bench = bench_of(path)
    finding = bench.drift("wrong")
    assert bench.write(path, b"MaxSessions 0\n", "few sessions", because=finding)
    run(bench, "echo 1 >/srv/one")
    run(bench, "/opt/site/tune")
    assert [change.guarded for change in bench.changes] == [True, False, True]
    assert [change.restarts for change in bench.changes] == [SSHD_READS_AGAIN, "", ""]


def test_what_nothing_takes_back_may_not_lock_anybody_out() -> None:
    bench = bench_of("/etc/x")
    with pytest.raises(UsageError, match=r"lock this machine out \(sshd\), and nothing takes it"):
        run(bench, "systemctl stop sshd", "")


def run(bench: Workbench[SpecSection], do: str, undo: str = "true") -> None:
    because = bench.drift("wrong")
    bench.run("run", because=because, observe="true", before="a", after="b", do=do, undo=undo)


def test_plans_of_others_are_guarded_as_well() -> None:
    def change(action: FileAction, *, reversible: bool = True) -> Change:
        made = Change(id="1", host="h", remedy="r", title="t", reason="r", label="l", action=action)
        return made.model_copy(update={"reversible": reversible})

    changes = [change(file_of("/etc/hosts")), change(file_of("/etc/nccl.conf"))]
    assert [each.guarded for each in guarded(changes)] == [True, False]
    kept = guarded([change(file_of("/etc/hosts"), reversible=False)])
    assert not kept[0].guarded


def test_why_a_change_is_guarded_names_what_a_command_looks_up() -> None:
    def reason(action: CommandAction | FileAction, *, is_guarded: bool = True) -> str:
        made = Change(id="1", host="h", remedy="r", title="t", reason="r", label="l", action=action)
        return guarded_for(made.model_copy(update={"guarded": is_guarded}))

    looked_up = (
        'printf x | "$(command -v iptables-nft-restore || command -v iptables-restore)" -w 9'
    )
    assert reason(command_of(looked_up)) == "firewall"
    assert reason(command_of("/opt/site/tune")) == UNKNOWN_PROGRAM
    assert reason(command_of("# ip link\n/opt/site/tune")) == UNKNOWN_PROGRAM
    assert reason(command_of("echo 1 >/srv/one")) == "", "its remedy alone says so"
    assert reason(file_of("/etc/hosts")) == "names"
    assert reason(file_of("/etc/hosts"), is_guarded=False) == ""
