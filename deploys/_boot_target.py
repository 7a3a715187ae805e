"""What systemd starts at the next boot: a target with the services of the host, or one without. Not a remedy.

Sources: systemd.special(7), bootup(7).
"""

from __future__ import annotations

from typing import Any

from remedy.plan import Workbench
from remedy.probe import File

DEFAULT = "/etc/systemd/system/default.target"
_WITHOUT_SERVICES = frozenset(
    f"{name}.target"
    for name in (
        *("rescue", "emergency", "runlevel1", "sysinit", "basic", "network", "initrd"),
        *("poweroff", "runlevel0", "halt", "reboot", "runlevel6", "kexec", "suspend", "hibernate"),
    )
)


def note_target(bench: Workbench[Any]) -> None:
    """Name a target in which neither sshd nor any job is started."""
    file = bench.host.file(DEFAULT)
    if not isinstance(file, File) or not file.exists:
        return  # systemd's own default then: graphical.target, with all services
    target = file.real_path.rpartition("/")[2]
    if target in _WITHOUT_SERVICES:
        bench.blocked(
            f"after the next boot, the host comes up in {target}, without its services",
            f"{DEFAULT} leads to {file.real_path}",
            "Set it back: systemctl --no-reload set-default multi-user.target",
        )
