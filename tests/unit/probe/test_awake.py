"""A client is asked only where what it would start runs already: recorders stand in place of every client."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from remedy.probe import HostState, ProbeRequest, parse_probe, render_probe
from remedy.values import Unknown
from tests.unit.probe_data import SHELLS

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="the probe is for Linux"
)

# Each has a daemon, a module or a file behind it.
CLIENTS = (
    *(
        "docker",
        "podman",
        "nerdctl",
        "crictl",
        "ctr",
        "firewall-cmd",
        "ufw",
        "nft",
        "iptables-save",
    ),
    *("ip6tables-save", "iptables-legacy-save", "ip6tables-legacy-save", "iptables", "ip6tables"),
    *("ipset", "arptables-save", "ebtables-save", "ss", "netstat", "systemctl", "systemd-run"),
    *("hostnamectl", "timedatectl", "localectl", "loginctl", "networkctl", "resolvectl", "busctl"),
    *(
        "machinectl",
        "userdbctl",
        "journalctl",
        "dbus-send",
        "gdbus",
        "nmcli",
        "nvidia-smi",
        "npu-smi",
    ),
    *(
        "nvidia-modprobe",
        "hccn_tool",
        "ethtool",
        "ibstat",
        "ibv_devinfo",
        "rdma",
        "chronyc",
        "ntpq",
    ),
    *("modprobe", "insmod", "mount", "sysctl", "lspci", "conntrack", "curl", "python3", "perl"),
    "sshd",
)
ALWAYS = {"getent", "ip", "tc"}
"""What is asked on every host: ip and tc dump over rtnetlink, getent asks without the services that sleep."""


@dataclass
class Played:
    """A host that is played: this machine's /proc, and a folder in place of what the tests are about."""

    root: Path
    shell: str = "sh"

    def put(self, path: str, text: str = "") -> None:
        """Write a file of the played host."""
        (self.root / path.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path.lstrip("/")).write_text(text)

    def client(self, name: str, text: str = "exit 1") -> None:
        """Put a recorder in place of a client."""
        self.put(f"bin/{name}", f'#!/bin/sh\necho "{name} $*" >>{self.root}/asked\n{text}\n')
        (self.root / "bin" / name).chmod(0o755)

    def runs(self, name: str) -> None:
        """Have a process of that name: this one, under another name."""
        stat = Path("/proc/self/stat").read_text().rpartition(")")[2]
        with (self.root / "stats").open("a") as file:
            file.write(f"/proc/{os.getpid()}/stat:{os.getpid()} ({name}){stat}")

    def probe(self) -> tuple[HostState, list[str]]:
        """Run the probe; return the state, and which clients were asked."""
        request = ProbeRequest()
        text = render_probe(request)
        # Not this machine's: there may be a lab on it, with daemons.
        text, count = re.subn(r"stats=\$\(grep .*\)\n", f"stats=$(cat {self.root}/stats)\n", text)
        assert count == 1
        for path in (
            *("/proc/modules", "/sys/module/", "/lib/modules/", "/proc/net/ip_tables_names"),
            *("/proc/driver/nvidia/version ]", "/dev/nvidiactl ]", "/etc/nsswitch.conf\n"),
            *(
                "/proc/sys/kernel/modules_disabled",
                "/run/containerd/",
                "/var/lib/docker/containers/",
            ),
            # Where other tests of this machine put their files.
            *("/dev/shm/*", "/dev/shm/.[!.]*"),
        ):
            assert path in text
            text = text.replace(path, f"{self.root}{path}")
        if shutil.which(self.shell) is None:
            pytest.skip(f"{self.shell} is not installed")
        done = subprocess.run(
            [self.shell, *(["sh"] if self.shell == "busybox" else []), "-s"],
            input=text,
            capture_output=True,
            text=True,
            env={"PATH": f"{self.root}/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(self.root)},
            timeout=120,
            check=True,
            start_new_session=True,  # what is of the probe's own session is left out
        )
        asked = self.root / "asked"
        lines = asked.read_text().splitlines() if asked.exists() else []
        return parse_probe("here", done.stdout, request), lines


@pytest.fixture
def played(tmp_path: Path) -> Played:
    """A host with every client installed, nothing running, no module loaded, and none built in."""
    host = Played(tmp_path)
    for name in CLIENTS:
        host.client(name)
    host.put(
        "stats", "/proc/1/stat:1 (systemd) S 0 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 5 0\n"
    )
    host.put("/proc/modules")
    release = Path("/proc/sys/kernel/osrelease").read_text().strip()
    host.put(f"/lib/modules/{release}/modules.builtin", "kernel/fs/ext4/ext4.ko\n")
    return host


@pytest.mark.parametrize("shell", SHELLS)
def test_no_client_is_asked_while_what_it_would_start_is_down(played: Played, shell: str) -> None:
    played.shell = shell
    state, asked = played.probe()
    assert asked == []
    assert state.complete
    assert not isinstance(state.containers, Unknown)
    assert (state.containers.docker, state.containers.docker_containers) == (None, ())
    assert state.containers.podman_containers == ()
    assert not isinstance(state.firewalls, Unknown)
    assert not isinstance(state.firewalls.nft, Unknown)
    assert (state.firewalls.nft.tables, state.firewalls.iptables) == ((), "")
    assert (state.firewalls.iptables_legacy, state.firewalls.firewalld) == ("", None)
    assert not isinstance(state.listeners, Unknown)
    assert not isinstance(state.gpus, Unknown)
    assert state.gpus.devices == ()


def test_the_recorders_record(played: Played) -> None:
    for module in ("nf_tables", "tcp_diag"):
        (played.root / "sys/module" / module).mkdir(parents=True)
    played.put("/proc/driver/nvidia/version", "NVRM")
    played.put("/dev/nvidiactl")
    state, asked = played.probe()
    programs = {line.split()[0] for line in asked}
    assert {"nft", "nvidia-smi", "lspci"} <= programs
    assert programs <= {"nft", "nvidia-smi", "lspci", "ss", "iptables-save", "ip6tables-save"}
    assert not isinstance(state.firewalls, Unknown)
    assert isinstance(state.firewalls.nft, Unknown)


def test_a_module_that_may_be_built_in_is_unknown_and_not_asked_for(played: Played) -> None:
    shutil.rmtree(played.root / "lib")
    state, asked = played.probe()
    assert asked == []
    assert not isinstance(state.firewalls, Unknown)
    nft = state.firewalls.nft
    assert isinstance(nft, Unknown)
    assert "asking could load it" in nft.reason
    assert not isinstance(state.listeners, Unknown)


@pytest.mark.parametrize("way", ["built in", "no more"])
def test_a_module_that_cannot_be_loaded_any_more_is_asked(played: Played, way: str) -> None:
    if way == "built in":
        release = Path("/proc/sys/kernel/osrelease").read_text().strip()
        text = "kernel/net/netfilter/nf_tables.ko\n"
        played.put(f"/lib/modules/{release}/modules.builtin", text)
    else:
        played.put("/proc/sys/kernel/modules_disabled", "1\n")
    _, asked = played.probe()
    assert "nft -j -s list ruleset" in asked


def test_podman_is_never_asked(played: Played) -> None:
    played.runs("conmon")
    state, asked = played.probe()
    assert asked == []
    assert not isinstance(state.containers, Unknown)
    assert state.containers.podman_containers == ()


def test_docker_that_runs_is_told_by_its_files(played: Played) -> None:
    played.runs("dockerd")
    state, asked = played.probe()
    assert asked == []
    assert not isinstance(state.containers, Unknown)
    docker = state.containers.docker
    assert docker is not None
    assert not isinstance(docker, Unknown)
    assert docker.runtimes == ("io.containerd.runc.v2", "runc")


def test_the_containers_of_docker_come_from_its_files_too(played: Played) -> None:
    number = "ab" * 32
    played.put(f"/run/containerd/io.containerd.runtime.v2.task/moby/{number}/init.pid", "77")
    folder = f"/var/lib/docker/containers/{number}"
    config = {"State": '"Pid":1', "Config": '"Env":["KEY=canary"],"Image":"tiny"', "Rest": ""}
    played.put(
        f"{folder}/config.v2.json",
        f'{{"State":{{{config["State"]}}},"Config":{{{config["Config"]}}},"Image":"sha256:1",'
        '"LogPath":"/x","Name":"/train"}',
    )
    played.put(f"{folder}/hostconfig.json", '{"IpcMode":"private","ShmSize":67108864}')
    played.runs("dockerd")
    played.runs("containerd-shim")
    state, asked = played.probe()
    assert asked == []
    assert not isinstance(state.containers, Unknown)
    assert state.containers.docker_containers == (
        (number, "train", "tiny", 67108864, "private", 77),
    )


@pytest.mark.parametrize(
    ("line", "services"),
    [
        ("files dns", None),
        ("files mdns4_minimal [NOTFOUND=return] dns", "hosts: files dns"),
        (
            "mymachines resolve [!UNAVAIL=return] files myhostname dns",
            "hosts: files myhostname dns",
        ),
        ("files resolve[!UNAVAIL=return] dns", "hosts: files dns"),
        (
            "files [NOTFOUND=continue UNAVAIL=continue] sss dns",
            "hosts: files [NOTFOUND=continue UNAVAIL=continue] dns",
        ),
        ("resolve", "hosts: files"),
    ],
)
def test_a_name_is_asked_for_without_the_services_that_sleep(
    played: Played, line: str, services: str | None
) -> None:
    played.client("getent", "exit 2")
    played.put("/etc/nsswitch.conf", f"passwd: files systemd\n# hosts: x\nhosts: {line} # y\n")
    _, asked = played.probe()
    lines = [words for words in asked if "ahosts" in words]
    assert lines
    for words in lines:
        option = re.match(r"getent (?:-s (hosts:.*?) )?(?:-A )?ahosts", words)
        assert option is not None, words
        assert option[1] == services


def test_every_client_of_the_script_has_a_recorder() -> None:
    text = render_probe(ProbeRequest())
    shell = text[text.index("uptime() {") :]
    started = set(
        re.findall(r"(?:^|[|(;&] |\$\(|limited |guarded \S+ )([a-z0-9][a-z0-9-]+) -", shell, re.M)
    )
    plain = {
        "base64",
        "gzip",
        "grep",
        "stat",
        "readlink",
        "lsattr",
        "tr",
        "sed",
        "find",
        "ls",
        "od",
        "sort",
        "tail",
        "ulimit",
    }
    plain |= {
        "command",
        "cut",
        "env",
        "sh",
        "awk",
        "head",
        "date",
        "kill",
        "sleep",
        "cat",
        "read",
        "set",
        "printf",
    }
    assert started - plain - set(CLIENTS) - ALWAYS == set()
    assert {"nft", "ss", "ip"} <= started


PROGRAMS = (
    "awk",
    "base64",
    "cat",
    "date",
    "find",
    "grep",
    "gzip",
    "head",
    "lsattr",
    "readlink",
    "sed",
    "stat",
    "tr",
)


def test_a_probe_starts_few_programs(played: Played) -> None:
    """Of a host with Docker, where nobody has logged in: each costs as much as reading fifty files."""
    for name in PROGRAMS:
        real = shutil.which(name)
        assert real is not None
        played.client(name, f'exec {real} "$@"')
        wrapper = played.root / "bin" / name
        wrapper.write_text(wrapper.read_text().replace("/asked", "/programs"))
    played.runs("dockerd")
    played.runs("containerd")
    # Else the list of what is built in is searched for each module.
    played.put("/proc/sys/kernel/modules_disabled", "1\n")
    state, _ = played.probe()
    assert state.complete
    lines = (played.root / "programs").read_text().splitlines()
    counted = Counter(word for line in lines if (word := line.partition(" ")[0]) in PROGRAMS)
    # grep: of the kernel, files, mentions, services, links, and where ss may not be asked two more.
    assert counted["grep"] <= 7
    assert counted.total() <= 20, counted
