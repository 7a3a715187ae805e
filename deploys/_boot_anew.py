"""What the next boot makes anew: the bridge of Docker, the machine's id. Not a remedy.

Sources: dockerd(8) (bip, fixed-cidr, default-address-pools); machine-id(5),
systemd.unit(5) (ConditionFirstBoot=).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from remedy.bounds import read_json
from remedy.deploys._peers import Place
from remedy.deploys._systemd import runs_systemd
from remedy.firewall import spans
from remedy.plan import Workbench
from remedy.probe import File

DAEMON = "/etc/docker/daemon.json"
MACHINE_ID = "/etc/machine-id"
NONE_YET = (b"", b"uninitialized")


def note_docker(bench: Workbench[Any], place: Place) -> None:
    """Name settings by which Docker's bridge takes the network of the cluster when dockerd starts again."""
    file = bench.host.file(DAEMON)
    if not isinstance(file, File) or not file.content.strip():
        return
    for setting, network in _networks(file):
        try:
            taken = spans.meet(spans.of_networks([network]), (*place.subnet, *place.beyond))
        except ValueError:
            continue
        if taken:
            note = bench.blocked if setting in ("bip", "fixed-cidr") else bench.report
            note(
                f"after the next boot, a bridge of Docker has a part of the cluster's network: {network}",
                f"{DAEMON}: {setting}: {network}; the cluster address is {place.address}/{place.prefix}",
                "Give Docker another network there, which no host has.",
            )


def _networks(file: File) -> Iterator[tuple[str, str]]:
    """Yield the networks that Docker's file names, each with its setting."""
    try:
        settings = read_json(file.content.decode("utf-8", "replace"))
    except ValueError:
        return  # `docker_shm` says that nobody can read it
    if not isinstance(settings, dict):
        return
    for name in ("bip", "fixed-cidr"):
        if isinstance(settings.get(name), str):
            yield name, settings[name]
    pools = settings.get("default-address-pools")
    for pool in pools if isinstance(pools, list) else ():
        if isinstance(pool, dict) and isinstance(pool.get("base"), str):
            yield "default-address-pools", pool["base"]


def note_machine_id(bench: Workbench[Any]) -> None:
    """Report a host that has no id: systemd takes its next boot for the first one."""
    file = bench.host.file(MACHINE_ID)
    if isinstance(file, File) and file.content.strip() in NONE_YET and runs_systemd(bench.host):
        bench.report(
            "the next boot counts as the first: systemd makes a new id, and applies presets to all units",
            f"{MACHINE_ID}: {file.content.decode('utf-8', 'replace').strip() or 'empty'}",
            f"Keep the id that it has: cat /run/machine-id >{MACHINE_ID}, or systemd-machine-id-setup --commit",
        )
