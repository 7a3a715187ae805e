"""What runs on a lab host besides sshd: nothing, what users have, Slurm, or nothing of what is installed."""

from __future__ import annotations

from typing import Literal

from remedy.lab.disk import Disk

Life = Literal["bare", "lived-in", "asleep", "slurm"]
"""The kinds of host that a lab can have.

``bare`` runs systemd and sshd. ``lived-in`` is a host as users have them: containerd, dockerd with its socket,
firewalld, some 200 processes and 40 rules of its own in nftables; 160 MB of memory each. ``asleep`` has
everything installed that a careless question starts, and nothing of it running. ``slurm`` is a node of a Slurm
cluster that the hosts of the lab make up (``remedy.lab.slurm``).
"""

SLEEPERS = [
    *("docker.io", "podman", "curl", "chrony", "ethtool", "pciutils", "infiniband-diags"),
    *("systemd-resolved", "libnss-resolve", "systemd-container", "libnss-mymachines"),
    *("avahi-daemon", "libnss-mdns"),
]
"""What a host that is asleep has on top: each with a daemon, a socket, a D-Bus name or a module behind it."""

SOCKETS = ("docker.socket", "podman.socket", "avahi-daemon.socket")
"""What listens there in place of daemons, which a single question would start."""

STOPPED = (
    *("docker.service", "containerd.service", "podman.service", "podman-restart.service"),
    *("podman-auto-update.service", "podman-auto-update.timer", "avahi-daemon.service"),
    *("chrony.service", "systemd-resolved.service", "machines.target"),
)
"""What does not start there at boot."""

_UNITS = "etc/systemd/system"

_STARTED = {
    "multi-user.target.wants": (
        "docker.service",
        "containerd.service",
        "firewalld.service",
        "lab-rules.service",
        *(f"lab-work@{number}.service" for number in range(1, 9)),
    ),
    "sockets.target.wants": ("docker.socket",),
}

_WORK = """\
[Unit]
Description=Processes as hosts have them (%i)

[Service]
ExecStart=/bin/sh -c 'for n in $(seq 22); do sleep infinity & done; wait'
"""

_RULES_UNIT = """\
[Unit]
Description=Rules as hosts have them
After=firewalld.service docker.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/sbin/nft -f /etc/lab-rules.nft
"""


def _rules() -> str:
    """Return 40 rules of the kind that fail2ban and administrators leave; none concerns the cluster."""
    bans = "".join(
        f"        ip saddr 203.0.113.{number} tcp dport 22 counter reject\n"
        for number in range(1, 25)
    )
    counts = "".join(f"        tcp dport {port} counter accept\n" for port in range(9100, 9116))
    return (
        "table inet lab-site {\n    chain input {\n"
        "        type filter hook input priority filter + 10; policy accept;\n"
        f"{bans}{counts}    }}\n}}\n"
    )


def furnish(disk: Disk, life: Life) -> None:
    """Write onto a disk what starts at boot on hosts that are lived in."""
    if life != "lived-in":
        return
    disk.put(f"{_UNITS}/lab-work@.service", _WORK)
    disk.put(f"{_UNITS}/lab-rules.service", _RULES_UNIT)
    disk.put("etc/lab-rules.nft", _rules())
    for target, units in _STARTED.items():
        for unit in units:
            own = unit.startswith("lab-")
            name = "lab-work@.service" if unit.startswith("lab-work@") else unit
            disk.link(
                f"{_UNITS}/{target}/{unit}",
                f"/{_UNITS}/{name}" if own else f"/lib/systemd/system/{unit}",
            )
