"""Faults of shared memory: what containers get, and the host's own."""

from __future__ import annotations

from remedy.errors import LabError
from remedy.lab.fault import HEALTHY, REPAIRED, no_log
from remedy.lab.faults import fault
from remedy.lab.host import Host

DAEMON = "/etc/docker/daemon.json"
# Laid out by hand, as people do; every byte of it is to survive.
DAEMON_TEXT = """\
{
  "log-driver": "json-file",
  "log-opts": { "max-size": "10m",   "max-file": "3" },

  "default-shm-size": "64m",
  "labels": ["rack=7"]
}
"""
IMAGE = "lab-tiny"

# An image of the host's own df, sleep and sh: nothing has to be fetched.
_MAKE_IMAGE = f"""\
set -e
docker image inspect {IMAGE} >/dev/null 2>&1 && exit
folder=$(mktemp -d)
set -- /usr/bin/df /usr/bin/sleep
cp --parents -L "$@" $(ldd "$@" | grep -o '/lib[^ ]*' | sort -u) "$folder"
tar -C "$folder" -c . | docker import - {IMAGE} >/dev/null
tar -C "$folder" -c . | podman import - {IMAGE} >/dev/null 2>&1
rm -r "$folder"
"""


def start_docker(host: Host) -> None:
    """Start dockerd, and make an image that containers can be made of.

    Args:
        host: where.

    Raises:
        LabError: there is no Docker in this lab.
    """
    if host.run("command -v dockerd").returncode != 0:
        raise LabError(
            f"there is no Docker on {host.name}",
            next_step="Bring the lab up with it: remedy lab up --docker",
        )
    host.must(["systemctl", "enable", "--now", "docker.service"])
    host.must(_MAKE_IMAGE)


@fault(
    "docker-small-shm",
    "Docker and Podman give containers 64 MB of shared memory (needs a lab with --docker)",
    repair=REPAIRED,
    log=no_log("its words are those of a small /dev/shm, which the logs shm-* hold"),
    harmless="the host has no GPU, and docker_shm.size is not set",
)
def docker_small_shm(host: Host) -> None:
    host.must(["mkdir", "-p", "/etc/docker"])
    host.write(DAEMON, DAEMON_TEXT.encode())
    start_docker(host)
    host.must(["systemctl", "reload", "docker.service"])


@fault(
    "small-dev-shm",
    "the host's own /dev/shm has 64 MB, now and by /etc/fstab",
    repair=REPAIRED,
    log=HEALTHY,
    harmless="the host has no GPU, and dev_shm.size is not set",
)
def small_dev_shm(host: Host) -> None:
    host.must("mount -o remount,size=64m /dev/shm")
    host.must("sed -i '\\,[[:space:]]/dev/shm[[:space:]],d' /etc/fstab")
    host.must(
        "echo 'tmpfs  /dev/shm\ttmpfs defaults,nosuid,size=64M,nodev 0 0 # small' >>/etc/fstab"
    )
