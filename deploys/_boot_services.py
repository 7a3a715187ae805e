"""Services that run now and are not started at the next boot. Not a remedy.

Sources: systemd.unit(5), systemctl(1).
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from remedy.plan import Workbench
from remedy.probe import LoginSession, Unit

CLOCKS = ("chrony.service", "chronyd.service", "systemd-timesyncd.service", "ntp.service")
SSH = ("ssh.service", "sshd.service")
MASKED = "masked"
LOADED = ("loaded", MASKED)
NETWORKS = (
    *("systemd-networkd.service", "NetworkManager.service", "wicked.service"),
    *("networking.service", "network.service"),
)
"""What takes up the interfaces; of several that run any will do."""
SERVICES = (
    *("slurmd.service", "kubelet.service", "openibd.service"),
    *("nvidia-fabricmanager.service", "nvidia-imex.service"),
)
"""Services without which training does not start."""
ON_DEMAND = ("docker.service",)
"""Those that some start by hand, when they need them."""


def note_services(bench: Workbench[Any], units: Mapping[str, Unit]) -> None:
    """Name services without which training does not start, or nobody gets to the host."""
    session = bench.host.session
    present = session.present if isinstance(session, LoginSession) else frozenset[str]()
    for names in (SSH, CLOCKS, NETWORKS, *((name,) for name in (*SERVICES, *ON_DEMAND))):
        # What is masked is not started, though it runs until then.
        known = [units[name] for name in names if name in units and units[name].load in LOADED]
        running = [unit.name for unit in known if unit.running]
        if running and not any(_is_started(unit, present) for unit in known):
            _off(bench, units[running[0]])
    sysctl = units.get("systemd-sysctl.service")
    if sysctl is not None and sysctl.load == "masked":
        bench.blocked(
            "after the next boot, no setting of /etc/sysctl.d is in force: systemd-sysctl is masked",
            "systemd-sysctl.service: masked",
            "Unmask it: systemctl --no-reload unmask systemd-sysctl.service",
        )


def _is_started(unit: Unit, present: Set[str]) -> bool:
    """Return whether the next boot starts a service, or the socket that starts it."""
    socket = f"/etc/systemd/system/sockets.target.wants/{unit.name.removesuffix('service')}socket"
    return unit.load != MASKED and (unit.enabled in ("enabled", "static") or socket in present)


def _off(bench: Workbench[Any], unit: Unit) -> None:
    name, is_masked = unit.name, unit.load == MASKED
    note = bench.report if name in (*ON_DEMAND, *CLOCKS) else bench.blocked
    words = "unmask" if is_masked else "enable"
    note(
        f"after the next boot, {name} does not run: it runs now, and is not started at boot",
        f"{name}: active, {MASKED if is_masked else 'not enabled'}",
        f"Have it started: systemctl --no-reload {words} {name}",
    )
