"""Files that the probe could not search: each is named by the remedy that is about it. Not a remedy itself."""

from __future__ import annotations

from typing import Any

from remedy.plan import Workbench

AT_BOOT = (
    *("/etc/netplan/", "/etc/network/", "/etc/systemd/network/", "/etc/NetworkManager/"),
    *("/etc/sysconfig/network-scripts/", "/etc/networkd-dispatcher/", "/etc/rc.local"),
    *(
        "/etc/default/grub",
        "/boot/",
        "/etc/modprobe.d/",
        "/etc/rc.d/",
        "/etc/init.d/",
        "/etc/dhcp/",
        "/etc/ufw/",
    ),
    *("/etc/tmpfiles.d/", "/usr/local/lib/tmpfiles.d/", "/usr/lib/tmpfiles.d/"),
    *("/etc/udev/rules.d/", "/usr/local/lib/udev/rules.d/"),
)
"""Where files say what the next boot makes of the host, and nothing of the environment of jobs."""

JOBS_OF_AT = ("/var/spool/cron/atjobs/", "/var/spool/at/", "/var/spool/atjobs/")
"""Where at(1) keeps its jobs: Debian, Red Hat, SUSE."""


def note_unsearched(
    bench: Workbench[Any], does: str, *, under: tuple[str, ...] = ("/",), but: tuple[str, ...] = ()
) -> None:
    """Name the files of which nothing is known.

    Args:
        bench: of the host.
        does: what they may do, such as "sets for jobs".
        under: beginnings of their paths.
        but: beginnings of paths that another remedy names.
    """
    for path, unknown in bench.host.unsearched.items():
        if path.startswith(under) and not path.startswith(but):
            bench.unknown(
                f"what {path} {does} is not known: it could not be searched",
                f"{path}: {unknown.reason}",
                "Put a regular file of the usual size there, or remove what is there, if nothing needs it.",
            )
