"""Network namespaces that stand for hosts of one cluster, and machines in them that answer ssh."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import uuid
from pathlib import Path

from remedy.firewall.nftables import rule_text
from remedy.firewall.spans import of_networks
from remedy.firewall.step import Side

EPHEMERAL = ((32768, 60999),)
NETWORK = "10.77.0"


class Rooms:
    """Network namespaces that see each other through a switch, with a firewall in each.

    The switch is in a namespace of its own, so that no rule of this machine has a say.
    """

    def __init__(self, count: int) -> None:
        token = f"remedy-{secrets.token_hex(3)}"
        self.switch = f"{token}-switch"
        self.names = {f"gpu{number:02d}": f"{token}-{number}" for number in range(1, count + 1)}

    def make(self) -> None:
        ip("netns", "add", self.switch)
        ip("-n", self.switch, "link", "add", "br0", "up", "type", "bridge")
        for number, name in enumerate(self.names.values(), 1):
            ip("netns", "add", name)
            peer = ["peer", "name", f"port{number}", "netns", self.switch]
            ip("-n", name, "link", "add", "eth0", "type", "veth", *peer)
            ip("-n", self.switch, "link", "set", f"port{number}", "master", "br0", "up")
            ip("-n", name, "addr", "add", f"{NETWORK}.{number}/24", "dev", "eth0")
            for link in ("lo", "eth0"):
                ip("-n", name, "link", "set", link, "up")

    def remove(self) -> None:
        for name in (*self.names.values(), self.switch):
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)

    def close(self, port: int) -> None:
        """Close all that NCCL and gloo draw from, and leave the launcher's port open."""
        rules = f"""
            table inet filter {{
                chain input {{
                    type filter hook input priority 0; policy drop;
                    iif "lo" accept
                    ct state established,related accept
                    tcp dport {port} accept
                }}
            }}"""
        for name in self.names:
            self.nft(name, rules)

    def open(self) -> None:
        """Add the rule that remedy adds."""
        rule = rule_text(Side("in", of_networks([f"{NETWORK}.0/24"]), EPHEMERAL))
        for name in self.names:
            self.nft(name, f"insert rule inet filter input {rule}")

    def nft(self, name: str, text: str) -> None:
        """Have the kernel take rules in one host."""
        words = ["ip", "netns", "exec", self.names[name], "nft", "-f", "-"]
        subprocess.run(words, input=text, text=True, check=True)


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


# What a machine does in a room of its own, before it answers: $1 the boot-id's file, $2 the name, $3 its
# folder, the rest its ssh server. Its writable folders lie over this machine's, which stay as they are.
BOOT = """
set -e
hostname "$2"
mount -t tmpfs tmpfs "$3/over"
for path in etc var root home; do
    mkdir -p "$3/over/$path/up" "$3/over/$path/work"
    mount -t overlay -o "lowerdir=/$path,upperdir=$3/over/$path/up,workdir=$3/over/$path/work" overlay "/$path"
done
mount -t tmpfs tmpfs /run && mkdir -p /run/sshd
mount -t tmpfs -o size=64g tmpfs /dev/shm
mount --bind "$1" /proc/sys/kernel/random/boot_id
echo "$2" >/etc/hostname
tr -d - <"$1" >/etc/machine-id
mkdir -p /etc/ssh && rm -rf /etc/ssh/sshd_config.d
cp "$3/../sshd_config" /etc/ssh/sshd_config
install -D -m 600 "$3/../key.pub" /root/.ssh/authorized_keys
printf '127.0.0.1 localhost\\n127.0.1.1 %s\\n' "$2" >/etc/hosts
grep -q ^sshd: /etc/passwd || echo 'sshd:x:75:65534::/run/sshd:/bin/false' >>/etc/passwd
shift 3
exec "$@"
"""
SSHD = """
Port 22
HostKey {folder}/host_key
PermitRootLogin yes
UsePAM no
SetEnv {environment}
"""


class Machines(Rooms):
    """Rooms with an ssh server each, a boot-id, a name, and files of their own; no systemd.

    Args:
        count: how many.
        folder: where their keys and files lie.
        own_pids: whether each has processes of its own only; else they are processes of this machine.
    """

    def __init__(self, count: int, folder: Path, *, own_pids: bool = True) -> None:
        super().__init__(count)
        self.folder = folder
        self.own_pids = own_pids
        self.desk = f"{self.switch}-desk"  # where the operator sits
        self.servers: list[subprocess.Popen[bytes]] = []

    def make(self) -> None:
        super().make()
        ip("netns", "add", self.desk)
        ip(
            "-n",
            self.desk,
            "link",
            "add",
            "eth0",
            "type",
            "veth",
            "peer",
            "name",
            "desk",
            "netns",
            self.switch,
        )
        ip("-n", self.switch, "link", "set", "desk", "master", "br0", "up")
        ip("-n", self.desk, "addr", "add", f"{NETWORK}.254/24", "dev", "eth0")
        for link in ("lo", "eth0"):
            ip("-n", self.desk, "link", "set", link, "up")
        for name in ("host_key", "key"):
            path = str(self.folder / name)
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
        settings = self.folder / "sshd_config"
        settings.write_text(
            SSHD.format(
                folder=self.folder,
                environment=" ".join(
                    f"{name}={os.environ[name]}"
                    for name in ("PATH", "LD_LIBRARY_PATH")
                    if name in os.environ
                ),
            )
        )
        for name, room in self.names.items():
            (self.folder / name / "over").mkdir(parents=True)
            boot_id = self.folder / name / "boot_id"
            boot_id.write_text(f"{uuid.uuid4()}\n")
            own = ["unshare", "--mount", "--uts", "--ipc"]
            own += ["--pid", "--fork", "--mount-proc", "--kill-child"] if self.own_pids else []
            boot = ["sh", "-c", BOOT, "sh", str(boot_id), name, str(self.folder / name)]
            server = ["/usr/sbin/sshd", "-D", "-e"]
            with (self.folder / name / "log").open("wb") as log:
                words = ["nsenter", f"--net=/run/netns/{room}", *own, *boot, *server]
                self.servers.append(
                    subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
                )
        key = (self.folder / "host_key.pub").read_text().split()
        known = [
            f"{NETWORK}.{number} {key[0]} {key[1]}\n" for number in range(1, len(self.names) + 1)
        ]
        (self.folder / "known_hosts").write_text("".join(known))

    def inventory(self, settings: str) -> Path:
        """Write the inventory and the settings of these machines, and return its path."""
        hosts = [
            (
                name,
                {
                    "ssh_hostname": f"{NETWORK}.{number}",
                    "cluster_address": f"{NETWORK}.{number}",
                    "ssh_user": "root",
                    "ssh_key": str(self.folder / "key"),
                    "ssh_known_hosts_file": str(self.folder / "known_hosts"),
                    "python": sys.executable,
                },
            )
            for number, name in enumerate(self.names, 1)
        ]
        path = self.folder / "inventory.py"
        path.write_text(f"hosts = {hosts!r}\n")
        (self.folder / "remedy.yaml").write_text(settings)
        return path

    def at_desk(self, *words: str, seconds: float) -> subprocess.CompletedProcess[str]:
        """Run a command where the operator sits."""
        return subprocess.run(
            ["ip", "netns", "exec", self.desk, *words],
            cwd=self.folder,
            text=True,
            capture_output=True,
            timeout=seconds,
        )

    def remove(self) -> None:
        for server in self.servers:
            server.kill()
            server.wait()
        ip("netns", "del", self.desk)
        super().remove()
