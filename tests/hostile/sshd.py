"""One machine with many servers: keys of several types, certificates good and bad; OpenSSH's own judgement."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.lab.conftest import Cluster

TYPES = {"ed": "ed25519", "ec": "ecdsa", "rsa": "rsa"}
STRANGERS = {
    "ed_other": "ed25519",
    "ec_other": "ecdsa",
    "ca": "ed25519",
    "ca_other": "ed25519",
    "ca_rsa": "rsa",
}
ALL = ("ed", "ec", "rsa")
# By port: the keys of the server there, and the certificates of some of them: by which authority, how made.
SERVERS: dict[int, tuple[tuple[str, ...], tuple[tuple[str, str, tuple[str, ...]], ...]]] = {
    22: (ALL, ()),
    2222: (ALL, ()),
    2200: (("ec",), ()),
    2201: (ALL, (("ed", "ca", ("-h", "-n", "{host}")),)),
    2202: (ALL, (("ed", "ca", ("-h", "-n", "{host}", "-V", "20200101:20200201")),)),
    2203: (ALL, (("ed", "ca", ("-h", "-n", "another.example")),)),
    2204: (ALL, (("ed", "ca", ("-h", "-n", "{host}", "-V", "20990101:20990201")),)),
    2205: (ALL, (("ed", "ca", ("-h", "-n", "{host}", "-O", "critical:no-such@example")),)),
    2206: (("rsa",), (("rsa", "ca_rsa", ("-h", "-n", "{host}", "-t", "ssh-rsa")),)),
    2207: (("rsa", "ec"), (("rsa", "ca_rsa", ("-h", "-n", "{host}")), ("ec", "ca", ("-h", "-n", "{host}")))),
    2208: (ALL, (("ed", "ca", ("-h", "-n", "*")),)),
    2209: (ALL, (("ed", "ca", ("-h",)),)),
    2210: (ALL, (("ed", "ca", ("-n", "{host}")),)),
    2211: (ALL, (("ed", "ca", ("-h", "-n", "the-alias")),)),
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A server, and what is written of its keys.

    Args:
        name: of the case.
        known: the user's known_hosts; ``{host}`` is the address, ``{place}`` that with its port, and the
            name of each key that key.
        port: which of the servers.
        system: the machine's known_hosts.
        hashed: whether ssh-keygen hashes the names of both.
        config: lines of ssh_config.
    """

    name: str
    known: str
    port: int = 22
    system: str = ""
    hashed: bool = False
    config: str = ""


@dataclass(frozen=True)
class Servers:
    """The machine, started.

    Args:
        cluster: the lab that it is of.
        name: the machine's.
        folder: of the keys and of each case's files.
        keys: the public keys, by name.
    """

    cluster: Cluster
    name: str
    folder: Path
    keys: Mapping[str, str] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """Where it is reached."""
        return self.cluster.host(self.name).record.management_address

    def place(self, port: int) -> str:
        """What known_hosts calls a server."""
        return self.address if port == 22 else f"[{self.address}]:{port}"

    def config(self, case: Case) -> Path:
        """Write what a case has, and return the ssh_config that names it."""
        folder = self.folder / case.name.replace(" ", "-")
        folder.mkdir(exist_ok=True)
        words = {**self.keys, "host": self.address, "place": self.place(case.port)}
        for name, text in (("user", case.known), ("system", case.system)):
            path = folder / name
            path.write_text(text.format(**words))
            if case.hashed:
                tool("ssh-keygen", "-H", "-f", str(path))
        revoked = folder / "revoked"
        revoked.write_text("".join(f"{self.keys[name]}\n" for name in ("ed", "ca")))
        tool("ssh-keygen", "-q", "-k", "-f", str(folder / "krl"), str(revoked))
        path = folder / "ssh_config"
        path.write_text(
            f"{case.config.format(folder=folder, **words)}\nUserKnownHostsFile {folder}/none {folder}/user\n"
            f"GlobalKnownHostsFile {folder}/system\nIdentityFile {self.cluster.lab.paths.key}\nUser root\n"
        )
        return path

    def openssh_connects(self, case: Case) -> bool:
        """Whether OpenSSH logs in, with strict checking and nobody to ask."""
        options = ("BatchMode=yes", "StrictHostKeyChecking=yes", "IdentitiesOnly=yes")
        words = [word for option in options for word in ("-o", option)]
        at = ["-p", str(case.port), self.address, "true"]
        done = subprocess.run(
            ["ssh", "-F", self.config(case), *words, *at],
            capture_output=True,
            check=False,
            timeout=30,
        )
        assert done.returncode in (0, 255), done.stderr
        return done.returncode == 0


def start_servers(cluster: Cluster, name: str, folder: Path) -> Servers:
    """Start every server on a machine of a lab."""
    host = cluster.host(name)
    tree = folder / "etc"
    tree.mkdir()
    for key, kind in (TYPES | STRANGERS).items():
        words = ("-b", "2048") if kind == "rsa" else ()
        tool("ssh-keygen", "-q", "-t", kind, *words, "-N", "", "-C", key, "-f", str(folder / key))
    for port, (keys, certificates) in SERVERS.items():
        lines = [f"Port {port}", f"PidFile /run/sshd-{port}.pid", "MaxStartups 1000"]
        for key in keys:
            shutil.copy(folder / key, tree / f"{port}_{key}")
            shutil.copy(folder / f"{key}.pub", tree / f"{port}_{key}.pub")
            lines.append(f"HostKey /etc/ssh/{port}_{key}")
        for key, authority, options in certificates:
            options = tuple(word.format(host=host.record.management_address) for word in options)
            signed = str(tree / f"{port}_{key}.pub")
            tool("ssh-keygen", "-q", "-s", str(folder / authority), "-I", "id", *options, signed)
            lines.append(f"HostCertificate /etc/ssh/{port}_{key}-cert.pub")
        lines.append("AuthorizedKeysFile /etc/ssh/lab_authorized_keys\nStrictModes no\nUsePAM no\n")
        (tree / f"sshd_{port}").write_text("\n".join(lines))
    packed = subprocess.run(["tar", "-C", tree, "-cf", "-", "."], capture_output=True, check=True)
    host.write("/root/servers.tar", packed.stdout)
    host.must(
        "systemctl stop ssh.socket ssh.service sshd.service 2>/dev/null; mkdir -p /run/sshd; "
        "tar -C /etc/ssh --no-same-owner -xf /root/servers.tar && "
        "for f in /etc/ssh/sshd_[0-9]*; do /usr/sbin/sshd -f $f || exit 1; done"
    )
    read = {
        key: " ".join((folder / f"{key}.pub").read_text().split()[:2]) for key in TYPES | STRANGERS
    }
    return Servers(cluster, name, folder, read)


def tool(*command: str) -> str:
    """Run one of OpenSSH's tools to its good end, and return what it printed."""
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
