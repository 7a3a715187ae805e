"""What the next boot or reload makes of hosts: sshd, disks, targets, scripts; named while all is well."""

from __future__ import annotations

import pytest

from tests.lab.conftest import Cluster
from tests.lab.seen import APPLY, Seen, found, name_each
from tests.lab.site import Site

pytestmark = pytest.mark.lab

DROP_IN = "rm /etc/ssh/sshd_config.d/00-site.conf"
SSHD = {
    "sshd-broken": Seen("boot-differs", "sshd does not start: ", DROP_IN),
    "sshd-other-port": Seen("boot-differs", "it does not listen on 10.", DROP_IN),
    "sshd-other-users": Seen("boot-differs", "it lets in others, and not root", DROP_IN),
    "sshd-without-keys": Seen("boot-differs", "it finds no keys of root", DROP_IN),
    "sshd-not-to-be-run": Seen(
        "boot-differs", "sshd is not started: ", "rm /etc/ssh/sshd_not_to_be_run"
    ),
}
MORE = {
    "boots-without-a-disk": Seen("boot-differs", "ends in emergency mode", "rm /etc/fstab"),
    "boots-into-nothing": Seen(
        "boot-differs",
        "comes up in rescue mode",
        "systemctl --no-reload --quiet set-default multi-user.target",
    ),
    "boots-without-services": Seen(
        "boot-differs",
        "multi-user.target starts does not run: it is masked",
        "rm /etc/systemd/system/multi-user.target",
    ),
    "boots-with-rescue-line": Seen("boot-differs", "comes up in rescue.target", "rm -r /boot/grub"),
    "boots-into-a-crontab": Seen(
        "boot-differs", "a script may keep", "rm /var/spool/cron/crontabs/root", "unknown"
    ),
    "boots-with-small-packets": Seen("boot-differs", "the MTU of ", "rm /etc/rc.local"),
    "boots-into-docker": Seen(
        "boot-differs", "a bridge of Docker has a part", "rm /etc/docker/daemon.json"
    ),
    "little-memory-of-logins": Seen(
        "session-limit", "gives shells only", "rm /etc/profile.d/limits.sh"
    ),
    "preloaded-library": Seen(
        "env-not-propagated",
        "loads /usr/local/lib/libsite.so first",
        "rm /etc/ld.so.preload",
        "unknown",
    ),
    "default-ifname-of-logins": Seen(
        "wrong-interface",
        "/etc/profile.d/site.sh sets NCCL_SOCKET_IFNAME=eth9",
        "rm /etc/profile.d/site.sh",
    ),
}


def test_what_sshd_makes_of_its_files_is_known_before_it_reads_them(cluster: Cluster) -> None:
    name_each(cluster, SSHD)
    # It is the truth: sshd itself refuses the line, and a reload by which it takes its files ends the question.
    host = cluster.host("gpu02")
    cluster.fault("gpu02", "sshd-broken")
    assert host.run("sshd -t").returncode != 0
    host.must(DROP_IN)
    site = Site(cluster)
    host.write("/etc/ssh/sshd_config.d/00-site.conf", b"MaxSessions 20\n")
    assert found(site, "gpu02") == []
    host.must("systemctl reload ssh")
    assert found(site, "gpu02") == []


@pytest.mark.full
def test_what_the_next_boot_makes_of_a_host_is_named_before_it(cluster: Cluster) -> None:
    name_each(cluster, MORE)


@pytest.mark.full
def test_an_sshd_that_no_unit_starts_is_named(cluster: Cluster) -> None:
    site = Site(cluster)
    assert site.remedy("apply", *APPLY).code == 0
    cluster.fault("gpu03", "sshd-by-hand")
    (finding,) = found(site, "gpu03")
    assert finding[1].startswith("what starts sshd at the next boot is not known"), finding
