"""Eight operations of pyinfra's own that make the same state as remedy.yaml of ``benchmarks.eight``."""

from io import StringIO

from pyinfra import host, inventory  # type: ignore[attr-defined]
from pyinfra.operations import files, server, systemd

SYSCTLS = "/etc/sysctl.d/90-ipv6.conf"

server.hostname(name="Host name", hostname=host.name)
files.block(
    name="Hosts block",
    path="/etc/hosts",
    marker="# {mark} cluster, by pyinfra",
    content=[f"{peer.data.cluster_address} {peer.name}" for peer in inventory],
)
for key in ("net.ipv6.conf.all.disable_ipv6", "net.ipv6.conf.default.disable_ipv6"):
    server.sysctl(name=key, key=key, value=1, persist=True, persist_file=SYSCTLS)
files.put(
    name="Profile",
    src=StringIO("export NCCL_IB_TIMEOUT=22\n"),
    dest="/etc/profile.d/nccl.sh",
    mode="644",
)
files.put(
    name="Docker",
    src=StringIO('{"default-shm-size": "32G"}\n'),
    dest="/etc/docker/daemon.json",
    mode="644",
    create_remote_dir=True,
)
files.put(
    name="NCCL",
    src=StringIO("NCCL_IB_TIMEOUT=22\n"),
    dest="/etc/nccl.conf",
    mode="644",
)
systemd.service(name="sshd", service="ssh", running=True, enabled=True)
