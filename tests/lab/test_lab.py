"""The lab itself: hosts are real, faults are real, and nothing is left behind."""

from __future__ import annotations

import json
import os
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from remedy.errors import LabError
from remedy.lab import faults, machine, net, processes
from remedy.lab.cluster import Lab
from remedy.lab.host import FRESH_NAME
from remedy.lab.options import UpOptions
from remedy.lab.paths import LabPaths
from tests.lab.conftest import PREFIX, RELEASE, Cluster
from tests.lab.site import COMMAND

pytestmark = pytest.mark.lab


def _ssh(cluster: Cluster, host: str, command: str, user: str = "root") -> str:
    words = cluster.host(host).ssh([command], user=user)
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=30).stdout


def test_a_fresh_host_is_a_machine_of_its_own(cluster: Cluster) -> None:
    seen = {}
    for name in cluster.hosts:
        assert _ssh(cluster, name, "systemctl is-system-running --wait").strip() == "running"
        seen[name] = _ssh(cluster, name, "cat /etc/machine-id /proc/sys/kernel/random/boot_id")
        # Broken as cloned images are: one name for all, and no way to find each other.
        assert _ssh(cluster, name, "hostname").strip() == FRESH_NAME
        assert cluster.run(name, ["getent", "hosts", "gpu01"]).returncode == 2
    assert len(set(seen.values())) == len(seen)
    assert len({cluster.host(name).public_key() for name in cluster.hosts}) == len(seen)


def test_hosts_reach_each_other_and_nothing_else(idle_cluster: Cluster) -> None:
    first, second = (idle_cluster.host(name) for name in idle_cluster.hosts[:2])
    for address in (second.record.management_address, second.record.cluster_address):
        assert first.run(["ping", "-c1", "-W2", address]).returncode == 0
    # An address beyond the lab (RFC 5737): the gateway that leads there does not exist.
    assert first.run(["ping", "-c1", "-W1", "192.0.2.1"]).returncode != 0
    assert first.record.cluster_interface != second.record.cluster_interface


def test_users_have_the_sudo_they_are_named_for(idle_cluster: Cluster) -> None:
    name = idle_cluster.hosts[0]
    assert _ssh(idle_cluster, name, "sudo -n id -u", user="trainer").strip() == "0"
    password = "echo lab-guarded | sudo -S id -u 2>/dev/null; sudo -k; sudo -n id -u || echo no"
    assert _ssh(idle_cluster, name, password, user="guarded").split() == ["0", "no"]
    assert _ssh(idle_cluster, name, "sudo -n id -u || echo no", user="nosudo").strip() == "no"


@pytest.mark.full
def test_torch_runs_in_a_host(idle_cluster: Cluster) -> None:
    python = idle_cluster.lab.record().python
    if python is None:
        pytest.skip("no torch on this machine")
    for user in ("root", "trainer"):
        command = f"{python} -c 'import torch; print(torch.distributed.is_available())'"
        assert _ssh(idle_cluster, idle_cluster.hosts[0], command, user).strip() == "True"


def test_a_reboot_keeps_the_disk_and_ends_what_was_only_live(cluster: Cluster) -> None:
    name = cluster.hosts[0]
    host = cluster.host(name)
    before = host.boot_id()
    host.must("echo kept >/var/tmp/mark")
    host.must("echo '30000 40000' >/proc/sys/net/ipv4/ip_local_port_range")
    host.must(["nft", "add", "table", "inet", "lab_mark"])
    cluster.reboot(name)
    assert host.boot_id() != before
    assert host.must(["cat", "/var/tmp/mark"]) == "kept\n"
    assert "30000" not in host.must(["cat", "/proc/sys/net/ipv4/ip_local_port_range"])
    assert host.must(["nft", "list", "ruleset"]) == ""
    assert _ssh(cluster, name, "hostname").strip() == FRESH_NAME


def test_a_replaced_host_is_not_trusted_until_it_is_reset(cluster: Cluster) -> None:
    name = cluster.hosts[1]
    host = cluster.host(name)
    key, machine_id = host.public_key(), host.must(["cat", "/etc/machine-id"])
    host.must("echo old >/var/tmp/mark")
    cluster.replace(name)
    assert host.answers()
    assert host.public_key() != key
    assert host.must(["cat", "/etc/machine-id"]) != machine_id
    assert host.run(["test", "-e", "/var/tmp/mark"]).returncode == 1
    with pytest.raises(subprocess.CalledProcessError):
        _ssh(cluster, name, "true")
    cluster.reset(name)
    assert _ssh(cluster, name, "echo yes") == "yes\n"


# What shows, inside the host, that a fault is really there: a command that prints "broken".
EVIDENCE = {
    "conflicting-line": "getent hosts gpu02 | grep -q '\\.250 ' && echo broken",
    "disk-full": "for d in /etc /var/lib/remedy /var/log; do"
    ' sh -c "echo x >$d/x" 2>/dev/null && exit; done; echo broken',
    "duplicate-hostname": "[ $(uname -n) = node ] && [ $(cat /etc/hostname) = node ] && echo broken",
    "etc-read-only": "touch /etc/x 2>/dev/null || echo broken",
    "hanging-nvidia-smi": "timeout 0.3 nvidia-smi; [ $? = 124 ] && echo broken",
    "hostile-text": "uname -n | grep -q '{{' && [ ! -e /tmp/pwned ] && echo broken",
    "hostname-lost-at-reboot": "[ $(uname -n) = gpu01 ] && [ $(cat /etc/hostname) = node ] && echo broken",
    "hostname-reset-by-cloud-init": "systemctl is-enabled cloud-init-local && echo broken",
    "loopback-long-name": "getent hosts gpu01.lab.example | grep -q '^127.0.1.1' && echo broken",
    "hosts-crlf": "[ $(grep -c '\r$' /etc/hosts) = $(wc -l </etc/hosts) ] && echo broken",
    "hosts-huge": "[ $(wc -l </etc/hosts) -gt 50000 ] && echo broken",
    "hosts-immutable": "touch /etc/h; mv /etc/h /etc/hosts 2>/dev/null || echo broken",
    "hosts-not-utf8": 'python3 -c \'open("/etc/hosts", encoding="utf-8").read()\' 2>/dev/null || echo broken',
    "hosts-symlink": "[ -L /etc/hosts ] && echo broken",
    "loopback-name": "getent hosts gpu01 | grep -q 127.0.1.1 && echo broken",
    "no-getent": "command -v getent >/dev/null || echo broken",
    "no-peer-entries": "getent hosts gpu02 || echo broken",
    "no-sudo": "command -v sudo >/dev/null || echo broken",
    "same-machine-id": "grep -q c0ffee /etc/machine-id && echo broken",
    "stale-peer-entry": "getent hosts gpu02 | grep -q '\\.230 ' && echo broken",
}
# In the usual run: a fault of a name, of a file, of a program, of an account and of a disk.
USUAL = {"duplicate-hostname", "hosts-crlf", "no-getent", "no-sudo", "etc-read-only"}
# These are seen from outside.
OUTSIDE = {"node-lost", "node-replaced", "unreachable"}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in USUAL else pytest.mark.full)
        for name in sorted(EVIDENCE)
    ],
)
def test_a_fault_is_really_there_and_a_reset_ends_it(idle_cluster: Cluster, name: str) -> None:
    # Only this host is changed, and it is left as it was found: no need to make all of them anew.
    cluster = idle_cluster
    try:
        # Twice: a demo may break what a user has broken already.
        cluster.fault("gpu01", name, name)
        assert cluster.run("gpu01", EVIDENCE[name]).stdout.endswith("broken\n")
        assert cluster.host("gpu01").record.faults == [name]
    finally:
        cluster.reset("gpu01")
    assert cluster.host("gpu01").record.faults == []
    if name not in {"duplicate-hostname", "no-peer-entries"}:  # These a fresh host has anyway.
        assert "broken" not in cluster.run("gpu01", EVIDENCE[name]).stdout


@pytest.mark.full
def test_an_unreachable_host_and_a_lost_one_are_told_apart(cluster: Cluster) -> None:
    cluster.fault("gpu01", "unreachable")
    cluster.fault("gpu02", "node-lost")
    states = {host.name: host.state for host in cluster.lab.status().hosts}
    assert states == {"gpu01": "no-ssh", "gpu02": "off", "gpu03": "up", "gpu04": "up"}
    with pytest.raises(LabError, match="not running"):
        cluster.run("gpu02", ["true"])
    # One that booted and does not answer is told from one that stopped half way.
    with pytest.raises(LabError, match=r"boot log ends with: .*Reached target"):
        cluster.host("gpu01").wait(0.5)
    cluster.reboot("gpu01")
    cluster.lab.start("gpu02")
    assert {host.state for host in cluster.lab.status().hosts} == {"up"}


def test_cloud_init_takes_the_name_back_unless_told_not_to(cluster: Cluster) -> None:
    cluster.fault("gpu01", "hostname-reset-by-cloud-init")
    host = cluster.host("gpu01")
    host.write("/etc/hostname", b"gpu01\n")
    cluster.reboot("gpu01")
    assert host.must(["uname", "-n"]).strip() == FRESH_NAME
    host.write("/etc/hostname", b"gpu01\n")
    host.write("/etc/cloud/cloud.cfg.d/99-own.cfg", b"preserve_hostname: true\n")
    cluster.reboot("gpu01")
    assert host.must(["uname", "-n"]).strip() == "gpu01"


def test_every_fault_of_a_host_is_tested_here() -> None:
    # Those that a remedy brings are tested with it.
    modules = {f"{faults.__name__}.{name}" for name in ("names", "hosts_file", "system")}
    own = {one.name for one in faults.catalogue() if one.inject.__module__ in modules}
    assert own == set(EVIDENCE) | OUTSIDE


def test_the_inventory_lists_what_runs(cluster: Cluster) -> None:
    gpus = dict(runpy.run_path(str(cluster.inventory_path))["gpus"])
    assert list(gpus) == cluster.hosts
    one = cluster.host("gpu02").record
    assert gpus["gpu02"]["ssh_hostname"] == one.management_address
    assert gpus["gpu02"]["cluster_address"] == one.cluster_address
    assert gpus["gpu02"]["ssh_key"] == str(cluster.lab.paths.key)


@pytest.mark.full
def test_a_lab_grows_and_boots_what_is_off(new_cluster: Callable[..., Cluster]) -> None:
    cluster = new_cluster(count=1, prefix="node", faults=("hosts-crlf",))
    cluster.lab.kill("node01")
    cluster.lab.up(UpOptions(count=2, prefix="node", release=RELEASE))
    assert [host.state for host in cluster.lab.status().hosts] == ["up", "up"]
    assert cluster.host("node01").record.faults == ["hosts-crlf"]
    with pytest.raises(LabError, match="runs already"):
        cluster.lab.up(UpOptions(count=1, prefix="node", release=RELEASE))
    cluster.lab.stop("node02")
    assert cluster.lab.status().hosts[1].state == "off"


@pytest.mark.usefixtures("_no_leftovers")
@pytest.mark.parametrize(
    "delay",
    [
        0.15,
        0.6,
        *(pytest.param(delay, marks=pytest.mark.full) for delay in (0.05, 0.3)),
    ],
)
def test_down_removes_what_a_killed_up_left(delay: float) -> None:
    lab = Lab(LabPaths.of(f"{PREFIX}{os.getpid()}-crash"))
    code = (
        "import sys; from remedy.cli.lab import lab; lab(['--name', sys.argv[1], 'up', '-n', '2'])"
    )
    victim = subprocess.Popen(
        [sys.executable, "-c", code, lab.paths.name],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    # From the moment that it has made something, at several stages.
    deadline = time.monotonic() + 120
    while not lab.paths.folder.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(delay)
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    assert lab.down()
    _assert_gone(lab)


def test_down_needs_no_state_file(new_cluster: Callable[..., Cluster]) -> None:
    cluster = new_cluster(count=2)
    supervisor = processes.find(cluster.lab.paths, "gpu01").supervisors
    assert supervisor
    machine.kill(supervisor)
    cluster.lab.paths.state.unlink()
    assert cluster.lab.down()
    _assert_gone(cluster.lab)
    assert not cluster.lab.down()


def _assert_gone(lab: Lab) -> None:
    found = processes.find(lab.paths)
    assert [pid for pid in found.supervisors + found.nspawn if machine.alive(pid)] == []
    assert found.inside == []
    assert not processes.host_cgroups(lab.paths, None)
    assert not net.namespaces(lab.paths)
    links = json.loads(subprocess.run(["ip", "-j", "link"], capture_output=True, check=True).stdout)
    assert lab.paths.uplink not in {link["ifname"] for link in links}
    assert not machine.mounts_below(lab.paths.folder)
    assert not lab.paths.folder.exists()
    assert not Path(f"/run/netns/{lab.paths.switch}").exists()


OWN_FAULTS = """
from remedy.lab.faults import fault
from remedy.lab.host import Host


@fault("no-route", "the way out of the cluster is gone")
def no_route(host: Host) -> None:
    host.must("ip route replace blackhole 192.0.2.0/24 && echo 'route add' >>/root/own-fault")
"""


def test_a_fault_of_a_users_file_breaks_the_hosts_that_are_named(
    cluster: Cluster, tmp_path: Path
) -> None:
    file = tmp_path / "own_faults.py"
    file.write_text(OWN_FAULTS, encoding="utf-8")

    def break_(*words: str) -> subprocess.CompletedProcess[str]:
        command = [str(COMMAND), "lab", "--name", cluster.lab.paths.name, "break", *words]
        return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)

    def broken(host: str) -> bool:
        return "blackhole 192.0.2.0/24" in cluster.run(host, ["ip", "route"]).stdout

    first, second, *others = cluster.hosts
    listed = break_("--faults", str(file), "--list")
    assert "the way out of the cluster is gone" in listed.stdout
    # Without the file nobody knows it, and nothing is done.
    unknown = break_(first, "no-route")
    assert unknown.returncode != 0
    assert "there is no fault 'no-route'" in unknown.stderr
    assert not broken(first)
    done = break_("--faults", str(file), first, "no-route")
    assert done.returncode == 0, done.stderr
    assert broken(first)
    assert not broken(second)
    states = {host.name: host.faults for host in cluster.lab.status().hosts}
    assert states[first] == ["no-route"]
    assert all(states[host] == [] for host in (second, *others))
    # Beside one of the lab's own, on all hosts.
    both = break_("--faults", str(file), "all", "no-route", "hosts-crlf")
    assert both.returncode == 0, both.stderr
    assert all(broken(host) for host in cluster.hosts)
    cluster.host(second).must(["grep", "-q", "\r$", "/etc/hosts"])
    cluster.reset(first)
    assert not broken(first)


def test_a_file_of_faults_that_is_wrong_is_refused_with_its_error(
    cluster: Cluster, tmp_path: Path
) -> None:
    file = tmp_path / "wrong.py"
    file.write_text("raise OSError('no such thing')\n", encoding="utf-8")
    command = [str(COMMAND), "lab", "--name", cluster.lab.paths.name, "break"]
    words = ["--faults", str(file), cluster.hosts[0], "hosts-crlf"]
    done = subprocess.run(
        [*command, *words], check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode != 0
    assert "no such thing" in done.stderr
    assert str(file) in done.stderr
    assert cluster.lab.status().hosts[0].faults == []
