"""Faults of sshd's files: the sshd that runs knows nothing of them until its next reload, or boot."""

from __future__ import annotations

from remedy.lab.fault import NEXT_BOOT, WAY_BY_SSH, by_hand
from remedy.lab.faults import fault
from remedy.lab.host import Host

DROP_IN = "/etc/ssh/sshd_config.d/00-site.conf"


@fault(
    "sshd-broken",
    "a line that sshd does not know keeps it from starting again",
    repair=by_hand("sshd does not start"),
    log=NEXT_BOOT,
)
def sshd_broken(host: Host) -> None:
    host.write(DROP_IN, b"PermitRootLogins yes\n")


@fault(
    "sshd-other-port",
    "sshd listens on another port after its next reload",
    repair=by_hand("it does not listen on"),
    log=WAY_BY_SSH,
)
def sshd_other_port(host: Host) -> None:
    host.write(DROP_IN, b"Port 2222\n")


@fault(
    "sshd-other-users",
    "sshd lets in others, and not root, after its next reload",
    repair=by_hand("it lets in others"),
    log=WAY_BY_SSH,
)
def sshd_other_users(host: Host) -> None:
    host.write(DROP_IN, b"AllowUsers operator\n")


@fault(
    "sshd-without-keys",
    "sshd looks for keys elsewhere after its next reload",
    repair=by_hand("it finds no keys"),
    log=WAY_BY_SSH,
)
def sshd_without_keys(host: Host) -> None:
    host.write(DROP_IN, b"AuthorizedKeysFile /etc/ssh/keys/%u\n")


@fault(
    "sshd-not-to-be-run",
    "a file keeps the unit of sshd from being started again",
    repair=by_hand("sshd_not_to_be_run"),
    log=NEXT_BOOT,
)
def sshd_not_to_be_run(host: Host) -> None:
    host.write("/etc/ssh/sshd_not_to_be_run", b"")


@fault(
    "sshd-by-hand",
    "sshd runs, somebody started it by hand, and its unit is off",
    repair=by_hand("its unit is off"),
    log=NEXT_BOOT,
)
def sshd_by_hand(host: Host) -> None:
    host.must(
        "systemctl disable --quiet ssh; systemctl stop ssh; mkdir -p /run/sshd; "
        "systemctl is-active -q by-hand || systemd-run -q --unit by-hand /usr/sbin/sshd -D"
    )
