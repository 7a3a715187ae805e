"""What anybody on a host could see of its processes: their command lines and environments."""

from __future__ import annotations

from tests.lab.conftest import Cluster

DECOY = "decoy-on-a-command-line"


def start_looking(cluster: Cluster, host: str) -> None:
    """Write down what anybody could see of a host's processes, from now on."""
    look = "while :; do cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ; sleep 0.05; done"
    cluster.host(host).must(
        ["systemd-run", "--quiet", "--unit=look", "sh", "-c", f"({look}) >/run/seen 2>/dev/null"]
    )
    cluster.host(host).must(["sh", "-c", "sleep 0.5", DECOY])


def stop_looking(cluster: Cluster, host: str) -> bytes:
    """Return what was seen since, and end looking."""
    seen = cluster.host(host).must("systemctl stop look; cat /run/seen; rm /run/seen")
    return seen.encode("utf-8", "replace")
