"""Services that run now and are not started at the next boot. Not a remedy.

Sources: systemd.unit(5), systemctl(1).
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from remedy.plan import Workbench
from remedy.probe import LoginSession, Unit
from remedy.values import Unknown

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
        if any(_is_started(unit, present) for unit in known):
            continue
        if running:
            _off(bench, units[running[0]])
        elif names is SSH:
            _note_ssh(bench, units, known, present)
    sysctl = units.get("systemd-sysctl.service")
    if sysctl is not None and sysctl.load == "masked":
        bench.blocked(
            "after the next boot, no setting of /etc/sysctl.d is in force: systemd-sysctl is masked",
            "systemd-sysctl.service: masked",
            "Unmask it: systemctl --no-reload unmask systemd-sysctl.service",
        )


def _socket(unit: Unit) -> str:
    return f"/etc/systemd/system/sockets.target.wants/{unit.name.removesuffix('service')}socket"


def _is_started(unit: Unit, present: Set[str]) -> bool:
    """Return whether the next boot starts a service, or the socket that starts it."""
    is_wanted = unit.enabled in ("enabled", "static") or _socket(unit) in present
    return unit.load != MASKED and is_wanted


def _off(bench: Workbench[Any], unit: Unit) -> None:
    name, is_masked = unit.name, unit.load == MASKED
    note = bench.report if name in (*ON_DEMAND, *CLOCKS) else bench.blocked
    words = "unmask" if is_masked else "enable"
    note(
        f"after the next boot, {name} does not run: it runs now, and is not started at boot",
        f"{name}: active, {MASKED if is_masked else 'not enabled'}",
        f"Have it started: systemctl --no-reload {words} {name}",
    )


def _note_ssh(
    bench: Workbench[Any], units: Mapping[str, Unit], known: list[Unit], present: Set[str]
) -> None:
    """Name an sshd that no unit starts at boot: its unit is gone, or somebody started it by hand."""
    gone = [units[name] for name in SSH if name in units and units[name].running]
    if gone and not known and _socket(gone[0]) not in present:
        bench.blocked(
            f"after the next boot, {gone[0].name} does not run: it runs now, and its file is gone",
            f"{gone[0].name}: active, not found",
            "Install it again: its package has the unit.",
        )
        return
    environment = bench.host.environment
    if isinstance(environment, Unknown) or "SSH_CONNECTION" not in environment:
        return
    for unit in known[:1]:
        shown = f"{unit.name}: inactive, {MASKED if unit.load == MASKED else 'not enabled'}"
        if shown not in bench.settings.accept:
            bench.unknown(
                "what starts sshd at the next boot is not known: it runs, and its unit is off",
                shown,
                f"Have it started: systemctl --no-reload enable {unit.name}. If another unit does that, add to "
                f'next_boot.accept in remedy.yaml: "{shown}"',
            )
