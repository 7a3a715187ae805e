"""Faults of the machine itself: its disk, its tools, its connection."""

from __future__ import annotations

from remedy.lab.fault import HEALTHY, REPAIRED, by_hand, no_log, out_of_reach
from remedy.lab.faults import REPLACED, fault
from remedy.lab.host import Host

# Drops what arrives rather than refuse it: a connection attempt hangs until its deadline.
_DROP_SSH = """\
table inet lab_unreachable
delete table inet lab_unreachable
table inet lab_unreachable {
    chain input {
        type filter hook input priority -300; policy accept;
        iifname "eth0" tcp dport 22 drop
    }
}
"""

# The folders that remedies write to each become a small disk of their own, with the content they
# had.
_FILL = """\
set -e
for folder in /etc /var/lib/remedy /var/log; do
    mkdir -p "$folder"
    if mountpoint -q "$folder"; then continue; fi
    size=$(($(du -s -k "$folder" | cut -f1) + 1024))
    mount -t tmpfs -o "mode=0755,size=${size}k" lab-full /mnt
    cp -a "$folder/." /mnt/
    dd if=/dev/zero of=/mnt/.lab-full bs=4k 2>/dev/null || true
    mount --bind /mnt "$folder"
    umount /mnt
done
"""


@fault(
    "etc-read-only",
    "/etc is mounted read-only; ends with a reboot",
    repair=by_hand("read-only"),
    log=HEALTHY,
    harmless="nothing is to be written",
    order=4,
)
def etc_read_only(host: Host) -> None:
    host.must("mountpoint -q /etc || mount --bind /etc /etc; mount -o remount,bind,ro /etc")


@fault(
    "disk-full",
    "no space is free in /etc, /var/lib/remedy and /var/log; ends with a reboot",
    repair=by_hand("No space left|not enough room|: 0 KB"),
    log=HEALTHY,
    harmless="nothing is to be written",
    order=3,
)
def disk_full(host: Host) -> None:
    host.must(_FILL)


@fault(
    "no-getent",
    "getent is gone",
    repair=by_hand("getent"),
    log=HEALTHY,
)
def no_getent(host: Host) -> None:
    _hide(host, "/usr/bin/getent")


@fault(
    "no-sudo",
    "sudo is gone",
    repair=REPAIRED,
    log=HEALTHY,
    harmless="the login is root's",
)
def no_sudo(host: Host) -> None:
    _hide(host, "/usr/bin/sudo")


@fault(
    "hanging-nvidia-smi",
    "nvidia-smi never returns, as with a wedged GPU driver",
    repair=REPAIRED,
    log=HEALTHY,
    harmless="no driver is loaded, so that it is not asked",
    is_slow=True,
)
def hanging_nvidia_smi(host: Host) -> None:
    host.write("/usr/bin/nvidia-smi", b"#!/bin/sh\nexec sleep infinity\n")
    host.must(["chmod", "755", "/usr/bin/nvidia-smi"])


@fault(
    "unreachable",
    "the host drops ssh on its management interface; ends with a reboot",
    repair=out_of_reach("no connection|unreachable|silent"),
    log=HEALTHY,
)
def unreachable(host: Host) -> None:
    host.must(["nft", "-f", "-"], stdin=_DROP_SSH)


@fault(
    "node-lost",
    "the power is cut; `remedy lab up` boots it again",
    repair=out_of_reach("no connection|unreachable|silent"),
    log=no_log("the other host only waits, as in paddle-one-of-two; that one is off"),
)
def node_lost(host: Host) -> None:
    host.kill()


@fault(
    REPLACED,
    "another machine in its place: same addresses, fresh disk, new machine-id and ssh host key",
    repair=out_of_reach("host key has CHANGED"),
    log=no_log("the fresh disk has no program that could print anything"),
)
def node_replaced(host: Host) -> None:
    host.rebuild(new=True)


def _hide(host: Host, path: str) -> None:
    """Take a program out of the way.

    Args:
        host: where.
        path: the program.
    """
    host.must(["sh", "-c", '[ ! -e "$1" ] || mv "$1" "$1.gone"', "sh", path])
