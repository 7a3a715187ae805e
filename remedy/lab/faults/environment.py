"""Faults of the environment that jobs get."""

from __future__ import annotations

from remedy.lab.faults import fault
from remedy.lab.host import Host

# No host of a lab has an interface of this name.
NOWHERE = "eth9"


def _append(host: Host, path: str, lines: bytes) -> None:
    """Add lines to a file, once.

    Args:
        host: where.
        path: the file, which need not be there.
        lines: whole lines.
    """
    host.must(["touch", path])
    content = host.read(path)
    if lines not in content:
        host.write(path, content + lines)


@fault(
    "wrong-socket-ifname",
    "/etc/environment names an interface for gloo and NCCL that does not exist",
)
def wrong_socket_ifname(host: Host) -> None:
    lines = f"# from the old cluster\nGLOO_SOCKET_IFNAME={NOWHERE}\nNCCL_SOCKET_IFNAME={NOWHERE}\n"
    _append(host, "/etc/environment", lines.encode())


@fault(
    "debug-variables-left",
    "debug switches were left in /etc/environment, /etc/nccl.conf and .bashrc",
)
def debug_variables_left(host: Host) -> None:
    _append(host, "/etc/environment", b"NCCL_P2P_DISABLE=1\n")
    _append(host, "/etc/nccl.conf", b"# try without RDMA\nNCCL_IB_DISABLE=1\n")
    _append(host, "/root/.bashrc", b"export NCCL_SHM_DISABLE=1\n")


@fault(
    "user-nccl-conf", "root's ~/.nccl.conf, which beats /etc/nccl.conf, names a missing interface"
)
def user_nccl_conf(host: Host) -> None:
    _append(host, "/root/.nccl.conf", f"NCCL_SOCKET_IFNAME={NOWHERE}\n".encode())
