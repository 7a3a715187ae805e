"""A first look at many hosts: recorded ones, whose hosts files have ``127.0.1.1 NAME`` as Debian's have."""

from __future__ import annotations

import io
import re
from pathlib import Path

from rich.console import RenderableType

from remedy.cli.terminal import StandardOutput
from remedy.inventory import Inventory, Node
from remedy.plan import Fleet, section_models
from remedy.probe import File, HostState, Identity, Names, Network, Routing
from remedy.spec import Spec, load_spec
from tests.unit.deploys.fleets import with_absent
from tests.unit.probe_data import state

WIDTH = 120
LOCAL = re.compile(r"\b(10\.21[34]\.\d+)\.(?!0/|254)\d+\b")


def names_of(number: int) -> tuple[str, ...]:
    """Return the names of the hosts."""
    return tuple(f"gpu{n:03d}" for n in range(1, number + 1))


def debian(name: str, place: int, every: tuple[str, ...], recording: str = "lab-idle") -> HostState:
    """Return a recorded host under another name, at addresses of its own, that nobody has prepared."""
    known = state(recording)
    assert isinstance(known.network, Network)
    assert isinstance(known.routing, Routing)
    assert isinstance(known.identity, Identity)
    assert isinstance(known.names, Names)
    address = rf"\1.{place}"
    machine = {"transient_name": name, "static_name": name, "machine_id": f"{place:032x}"}
    hosts = f"127.0.0.1\tlocalhost\n127.0.1.1\t{name}\n\n# For IPv6\n::1 localhost ip6-localhost\n"
    files = {
        **known.files,
        "/etc/hosts": File(
            path="/etc/hosts", real_path="/etc/hosts", exists=True, content=hosts.encode()
        ),
        "/etc/hostname": File(
            path="/etc/hostname",
            real_path="/etc/hostname",
            exists=True,
            content=f"{name}\n".encode(),
        ),
    }
    peers = {peer: ("127.0.1.1",) if peer == name else () for peer in every}
    return with_absent(
        known.model_copy(
            update={
                "host": name,
                "files": files,
                "network": Network.model_validate_json(
                    LOCAL.sub(address, known.network.model_dump_json())
                ),
                "routing": Routing.model_validate_json(
                    LOCAL.sub(address, known.routing.model_dump_json())
                ),
                "identity": known.identity.model_copy(update=machine),
                "names": known.names.model_copy(update={"peers": peers, "local": ("127.0.1.1",)}),
            }
        )
    )


def first_look(number: int, recording: str = "lab-idle", spec: Spec | None = None) -> Fleet:
    """Return a fleet of up to 250 hosts that nobody has prepared."""
    assert number <= 250, "their addresses end with their place"
    every = names_of(number)
    states = {name: debian(name, place, every, recording) for place, name in enumerate(every, 1)}
    nodes = tuple(
        Node(
            name=name,
            ssh_address=f"10.213.4.{place}",
            data={"cluster_address": f"10.214.4.{place}"},
        )
        for place, name in enumerate(every, 1)
    )
    inventory = Inventory(path=Path("inventory.py"), nodes=nodes)
    return Fleet(inventory, states, spec or load_spec(None, section_models()))


def lines(renderable: RenderableType, width: int = WIDTH) -> list[str]:
    """Return the lines that a terminal of a width shows."""
    buffer = io.StringIO()
    StandardOutput(file=buffer, force_terminal=True, width=width, color_system=None).print(
        renderable
    )
    return buffer.getvalue().splitlines()
