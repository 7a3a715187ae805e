"""Shared memory on real hosts: the host's own, and what Docker gives to containers."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from remedy.deploys.docker_shm import PODMAN, PODMAN_FOLDER
from remedy.lab.faults.containers import DAEMON, DAEMON_TEXT, IMAGE, start_docker
from remedy.lab.host import Host
from tests.lab.conftest import Cluster
from tests.lab.site import Site

pytestmark = pytest.mark.lab

# What Podman has built in, 65,536 kB and not KiB.
PODMAN_BUILT_IN = 65_536_000
APPLY = ("--yes", "--no-verify", "--json", "--limit", "gpu01")


def own_size(host: Host) -> int:
    """Return the size of the host's /dev/shm in bytes."""
    return int(host.must("df -B1 --output=size /dev/shm | tail -n 1"))


def container_size(host: Host, engine: str = "docker run") -> int:
    """Return the size of /dev/shm in a new container."""
    words = f"{engine} --rm --network none {IMAGE} /usr/bin/df -B1 --output=size /dev/shm"
    return int(host.must(f"{words} | tail -n 1"))


def podman_size(host: Host) -> int:
    """Return the size of /dev/shm in a new container of Podman's."""
    # systemd's own control groups are read-only for it here.
    return container_size(host, "podman run --cgroup-manager cgroupfs")


def changes(document: dict, remedy: str) -> list[dict]:  # type: ignore[type-arg]
    return [c for c in document["plan"]["changes"] if c["remedy"] == remedy]


def test_a_small_dev_shm_grows_for_good(cluster: Cluster) -> None:
    site, host = Site(cluster), cluster.host("gpu01")
    (site.folder / "remedy.yaml").write_text("dev_shm: {size: 1g}\n")
    cluster.fault("gpu01", "small-dev-shm")
    fstab = host.read("/etc/fstab")
    full = "head -c 100M /dev/zero >/dev/shm/big; rm /dev/shm/big"
    assert "No space left on device" in host.run(full).stderr
    applied = site.remedy("apply", *APPLY)
    assert applied.code == 0, applied.text
    assert len(changes(applied.document, "dev_shm")) == 2
    assert own_size(host) == 1 << 30
    assert host.run(full).stderr == ""
    assert b"tmpfs  /dev/shm\ttmpfs defaults,nosuid,nodev,size=1g 0 0 # small" in host.read(
        "/etc/fstab"
    )
    again = site.remedy("apply", *APPLY)
    assert (again.code, again.document["plan"]["changes"]) == (0, [])
    cluster.reboot("gpu01")
    assert own_size(host) == 1 << 30
    back = site.remedy("rollback", applied.document["run"], "--yes")
    assert back.code == 0, back.text
    assert (own_size(host), host.read("/etc/fstab")) == (64 << 20, fstab)


def test_docker_gives_new_containers_more(new_cluster: Callable[..., Cluster]) -> None:
    cluster = new_cluster(count=1, docker=True)
    site, host = Site(cluster), cluster.host("gpu01")
    (site.folder / "remedy.yaml").write_text("docker_shm: {size: 2g}\n")
    cluster.fault("gpu01", "docker-small-shm")
    assert (container_size(host), podman_size(host)) == (64 << 20, PODMAN_BUILT_IN)
    host.must(f"docker run -d --name old --network none {IMAGE} /usr/bin/sleep 999")
    began = host.must("systemctl show -p ActiveEnterTimestampMonotonic docker.service")

    applied = site.remedy("apply", *APPLY)
    assert applied.code == 0, applied.text
    assert [change["title"] for change in changes(applied.document, "docker_shm")] == [
        f"write default-shm-size 2g into {DAEMON} and reload dockerd",
        f"write shm_size 2g into {PODMAN}",
    ]
    assert host.read(DAEMON).decode() == DAEMON_TEXT.replace('"64m"', '"2g"')
    assert (container_size(host), podman_size(host)) == (2 << 30, 2 << 30)
    # Nothing was restarted, and what ran goes on with what it has.
    assert host.must("systemctl show -p ActiveEnterTimestampMonotonic docker.service") == began
    assert host.must("docker inspect -f '{{.State.Running}}' old").strip() == "true"
    told = applied.document["hosts"]["gpu01"]["findings"]
    (small,) = (f for f in told if f["remedy"] == "docker_shm")
    assert (small["kind"], small["evidence"]) == ("report", [f"old ({IMAGE}): 64.0 MiB"])

    again = site.remedy("apply", *APPLY)
    assert (again.code, again.document["plan"]["changes"]) == (0, [])
    back = site.remedy("rollback", applied.document["run"], "--yes")
    assert back.code == 0, back.text
    assert host.read(DAEMON).decode() == DAEMON_TEXT
    assert host.run(["test", "-e", PODMAN]).returncode == 1
    assert (container_size(host), podman_size(host)) == (64 << 20, PODMAN_BUILT_IN)

    # A later file of Podman's that would win is named, and stays.
    later = f"{PODMAN_FOLDER}/99-site.conf"
    host.must(f"mkdir -p {PODMAN_FOLDER}")
    host.write(later, b'[containers]\nshm_size = "33554432"\n')
    blocked = site.remedy("check", "--json", "--limit", "gpu01").document
    assert podman_size(host) == 32 << 20
    assert f"Remove shm_size from {later}" in json.dumps(blocked)
    host.must(["rm", later])

    # A file that is no JSON is left as it is, and named.
    broken = DAEMON_TEXT.replace('"64m",', '"64m"').encode()
    host.write(DAEMON, broken)
    refused = site.remedy("apply", *APPLY)
    assert refused.code == 1, refused.text
    assert "is not JSON that dockerd reads" in json.dumps(refused.document["hosts"]["gpu01"])
    assert host.read(DAEMON) == broken

    # Where there is no file yet, one is made, and it goes again.
    host.must(["rm", DAEMON])
    host.must("docker rm -f old; systemctl restart docker.service")
    start_docker(host)
    assert container_size(host) == 64 << 20
    applied = site.remedy("apply", *APPLY)
    assert applied.code == 0, applied.text
    assert json.loads(host.read(DAEMON)) == {"default-shm-size": "2g"}
    assert (container_size(host), podman_size(host)) == (2 << 30, 2 << 30)
    back = site.remedy("rollback", applied.document["run"], "--yes")
    assert host.run(["test", "-e", DAEMON]).returncode == 1
    assert back.code == 0, back.text
    assert container_size(host) == 64 << 20
