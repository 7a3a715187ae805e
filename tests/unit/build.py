"""Making fleets for tests: hosts as a probe would have found them."""

from __future__ import annotations

import os
import time
import typing
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

from pydantic import BaseModel

from remedy.inventory import Inventory, Node
from remedy.plan import Fleet, Origin, section_models
from remedy.probe import (
    Address,
    File,
    Firewalls,
    HostState,
    Identity,
    Interface,
    Names,
    Network,
    NftRuleset,
)
from remedy.spec import Spec, SpecSection, load_spec
from remedy.values import Unknown
from remedy.verify.onhost.engines.torch_rank.rank import TorchRank

M = TypeVar("M", bound=BaseModel)

WHEN = Origin(created="2026-01-01T00:00:00+00:00", author="me@here")
NOT_ASKED = Unknown(reason="not part of this test")
NO_FIREWALL = Firewalls(
    nft=NftRuleset(tables=(), chains=(), sets=()),
    iptables="",
    iptables_legacy="",
    firewalld=None,
    ufw=None,
)


def record(model: type[M], **given: Any) -> M:
    """Return a ``model`` with the fields given; all others have their default, or are empty or unknown."""
    values = dict(given)
    for name, field in model.model_fields.items():
        if name in values or not field.is_required():
            continue
        values[name] = _filler(_hints(model)[name])
    return model(**values)


@cache
def _hints(model: type[BaseModel]) -> dict[str, Any]:
    """Return the types of a model's fields: to resolve their names takes longer than to make a host of them."""
    return typing.get_type_hints(model)


def _filler(hint: Any) -> Any:
    options = typing.get_args(hint)
    if Unknown in options:
        return NOT_ASKED
    if type(None) in options:
        return None
    origin = typing.get_origin(hint) or hint
    fillers: dict[Any, Any] = {
        str: "",
        int: 0,
        bool: False,
        float: 0.0,
        tuple: (),
        frozenset: frozenset(),
    }
    return fillers.get(origin, {})


def host_state(
    name: str,
    address: str,
    *,
    hosts: bytes = b"127.0.0.1\tlocalhost\n",
    static: str | None = None,
    running: str | None = None,
    peers: Mapping[str, tuple[str, ...]] | None = None,
    files: Mapping[str, File | Unknown] | None = None,
    machine_id: str = "",
    boot_id: str = "",
) -> HostState:
    """Return a host that has what is given and is otherwise unremarkable."""
    etc_hosts = File(path="/etc/hosts", real_path="/etc/hosts", exists=True, content=hosts)
    absent = [
        File(path=path, real_path=path, exists=False)
        for path in ("/etc/cloud/cloud.cfg", "/etc/cloud/cloud.cfg.d/99-remedy-hostname.cfg")
    ]
    static_name = name if static is None else static
    etc_hostname = File(
        path="/etc/hostname",
        real_path="/etc/hostname",
        exists=True,
        content=f"{static_name}\n".encode(),
    )
    known = {file.path: file for file in (etc_hosts, etc_hostname, *absent)}
    return record(
        HostState,
        host=name,
        root=True,
        identity=record(
            Identity,
            static_name=static_name,
            transient_name=name if running is None else running,
            machine_id=machine_id,
            boot_id=boot_id,
        ),
        names=record(Names, peers=dict(peers or {})),
        network=record(Network, interfaces=(_interface(address),)),
        files={**known, **(files or {})},
        firewalls=NO_FIREWALL,
    )


def fleet(*states: HostState, spec: Spec | None = None, absent: tuple[str, ...] = ()) -> Fleet:
    """Return the fleet of these hosts, reached by ssh at the address of their only interface."""
    nodes = [Node(name=state.host, ssh_address=_address(state)) for state in states]
    nodes += [Node(name=name, ssh_address=f"10.0.0.{200 + at}") for at, name in enumerate(absent)]
    return Fleet(
        inventory=Inventory(path=Path("inventory.py"), nodes=tuple(nodes)),
        states={state.host: state for state in states},
        spec=spec or load_spec(None, section_models()),
        missing=dict.fromkeys(absent, "down"),
    )


def with_section(name: str, section: SpecSection) -> Spec:
    """Return the default spec with one section replaced."""
    return Spec({**load_spec(None, section_models()).sections, name: section})


def _interface(address: str) -> Interface:
    own = Address(address=address, prefix=24, scope="global")
    interface: Interface = record(Interface, name="eth0", addresses=(own,))
    return interface


def _address(state: HostState) -> str:
    assert isinstance(state.network, Network)
    return state.network.interfaces[0].addresses[0].address


def first_rank(folder: Path, store: Any, **config: Any) -> TorchRank:
    """Return rank 0 of three hosts with a rank each, as it is once it has met the others at a store."""
    usual = {"backend": "gloo", "join_seconds": 1.0, "began": time.monotonic(), "deadline": 60.0}
    places = {"RANK": "0", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "WORLD_SIZE": "3"}
    with mock.patch.dict(os.environ, places):
        rank = TorchRank({**usual, "directory": str(folder), **config})
    rank.store = store
    return rank
