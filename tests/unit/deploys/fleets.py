"""Fleets for the property tests: recorded hosts, whole, with generated damage, and settings of every kind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from pydantic import ValidationError

from remedy.edit.hosts import block_entries, foreign_entries
from remedy.inventory import Inventory, Node
from remedy.plan import Fleet, Remedy, find_remedy, remedies, section_models
from remedy.probe import (
    Address,
    File,
    HostState,
    Identity,
    Interface,
    Names,
    Network,
    Routing,
    Sysctls,
)
from remedy.spec import Spec, load_spec
from remedy.values import Unknown
from tests.unit.deploys.values import values_of
from tests.unit.probe_data import RECORDED, state

NAMES = ("gpu01", "gpu02", "gpu03")

# ---- hosts


@cache
def host(name: str, recording: str) -> HostState:
    """Return a recorded host under another name, at addresses of its own, as a probe of today would see it."""
    found = state(recording)
    number = NAMES.index(name) + 1
    assert isinstance(found.network, Network)
    assert isinstance(found.identity, Identity)
    assert isinstance(found.routing, Routing)
    interfaces = tuple(_moved(interface, number) for interface in found.network.interfaces)
    local = re.compile(r"(10\.21[34]\.\d+)\.(?!0/|254)\d+")
    routing = local.sub(rf"\1.{10 + number}", found.routing.model_dump_json())
    return found.model_copy(
        update={
            "host": name,
            "network": found.network.model_copy(update={"interfaces": interfaces}),
            "routing": Routing.model_validate_json(routing),
            "identity": found.identity.model_copy(
                update={"machine_id": str(number) * 32, "boot_id": f"boot {number}"}
            ),
        }
    )


def with_absent(found: HostState) -> HostState:
    """Return a host without the files that remedies of today read and the recording does not know."""
    absent = {
        path: File(path=path, real_path=path, exists=False)
        for remedy in remedies()
        for path in remedy.reads
        if not set(path) & set("*?[")
    }
    return found.model_copy(update={"files": {**absent, **found.files}})


def _moved(interface: Interface, number: int) -> Interface:
    addresses = tuple(
        Address(
            address=re.sub(r"^(10\.21[34]\.\d+)\.\d+$", rf"\1.{10 + number}", one.address),
            prefix=one.prefix,
            scope=one.scope,
        )
        for one in interface.addresses
    )
    mac = f"{interface.mac[:-2]}{number:02x}" if interface.mac.strip("0:") else interface.mac
    return interface.model_copy(update={"addresses": addresses, "mac": mac})


def fleet_of(states: Iterable[HostState], spec: Spec | None = None) -> Fleet:
    """Return the fleet of these hosts: ssh by the management network, a cluster network of its own."""
    found = {one.host: one for one in states}
    nodes = tuple(
        Node(
            name=name,
            ssh_address=f"10.213.4.{11 + NAMES.index(name)}",
            data={"cluster_address": f"10.214.4.{11 + NAMES.index(name)}"},
        )
        for name in found
    )
    return Fleet(Inventory(path=Path("inventory.py"), nodes=nodes), found, spec or default_spec())


def default_spec() -> Spec:
    return load_spec(None, section_models())


def with_files(found: HostState, contents: Mapping[str, bytes]) -> HostState:
    """Return the host with other files, and with what its resolver then answers to names."""
    files = dict(found.files)
    for path, content in contents.items():
        files[path] = File(path=path, real_path=path, exists=True, content=content)
    hosts = files["/etc/hosts"]
    assert isinstance(hosts, File)
    assert isinstance(found.names, Names)
    lines = [*foreign_entries(hosts.content), *block_entries(hosts.content)]
    peers = {
        # IPv6 first, as on a host that has it (RFC 6724).
        name: tuple(
            sorted((x.address for x in lines if name in x.names), key=lambda a: ":" not in a)
        )
        for name in NAMES
    }
    names = found.names.model_copy(update={"peers": peers})
    return found.model_copy(update={"files": files, "names": names})


# ---- damage

hosts_files = st.lists(
    st.sampled_from(
        [
            b"127.0.0.1\tlocalhost\n",
            b"127.0.1.1\tnode\n",
            b"127.0.1.1\tgpu01.example.org gpu01\n",
            b"10.214.4.77\tgpu02\n",
            b"10.214.4.12\tgpu02\n",
            b"::1 gpu03 ip6-localhost\n",
            b"10.9.9.9\tgone # {{ 7*7 }} $(id)\r\n",
            b"\xff\xfe\n",
        ]
    ),
    max_size=5,
).map(b"".join)
# What a careless, a busy or an older hand leaves in files that remedies look after.
damage: dict[str, list[bytes]] = {
    "/etc/docker/daemon.json": [
        b"{}\n",
        b'{"log-driver": "json-file", "default-shm-size": "64M"}',
        b'{"default-shm-size": "32G",\n  "runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}\n',
        b"{ not JSON",
        b"",
    ],
    "/etc/environment": [
        b'PATH="/usr/bin"\n',
        b"NCCL_DEBUG=TRACE\nNCCL_SOCKET_IFNAME=eth9\n",
        b"GLOO_SOCKET_IFNAME=eth0\n\xff\n",
    ],
    "/etc/nccl.conf": [b"NCCL_IB_DISABLE=1\n", b"# ours\nNCCL_SOCKET_IFNAME = eth0\n", b"NCCL_P2P_DISABLE=1"],
    "/etc/sysctl.d/99-site.conf": [
        b"net.ipv4.ip_local_port_range = 50000 51000\n",
        b"net.ipv6.conf.all.disable_ipv6 = 1\nnet/ipv4/ip_local_reserved_ports=29500\n",
    ],
    "/etc/security/limits.conf": [b"* soft memlock 64\n", b"* hard nofile 1024\nroot - memlock unlimited\n"],
    "/etc/systemd/logind.conf": [b"[Login]\nRemoveIPC=yes\n", b"[Login]\nRemoveIPC=no\n"],
    "/etc/fstab": [b"tmpfs /dev/shm tmpfs size=64M 0 0\n", b"UUID=1 / ext4 defaults 0 1\n"],
    "/etc/hccn.conf": [b"address_0=192.168.100.101\nnetmask_0=255.255.255.0\n", b"address_0=oops\n"],
    "/etc/cloud/cloud.cfg": [b"preserve_hostname: false\n", b"preserve_hostname: true\n"],
    "/root/.nccl.conf": [b"NCCL_SOCKET_IFNAME=docker0\n"],
}  # fmt: skip
damaged_files = st.fixed_dictionaries(
    {}, optional={path: st.sampled_from(contents) for path, contents in damage.items()}
)
live_settings = st.fixed_dictionaries(
    {},
    optional={
        "net.ipv4.ip_local_port_range": st.sampled_from(
            ["32768 60999", "1024 65535", "50000 51000"]
        ),
        "net.ipv4.ip_local_reserved_ports": st.sampled_from(["", "8080,29500", "60000-60015"]),
        "net.ipv6.conf.all.disable_ipv6": st.sampled_from(["0", "1"]),
        "net.ipv4.conf.all.rp_filter": st.sampled_from(["0", "1", "2"]),
    },
)
LIVE = (
    ("net.ipv4.ip_local_port_range", "1024 65535"),
    ("net.ipv4.ip_local_reserved_ports", "8080,29500"),
    ("net.ipv6.conf.all.disable_ipv6", "1"),
)
blind = st.frozensets(
    st.sampled_from(
        ["identity", "names", "network", "sysctls", "firewalls", "units", "containers", "ipc", "shared_memory",
         "processes", "limits", "environment", "mentions", "gpus", "software", "session", "kernel", "mounts"]
    ),
    max_size=2,
)  # fmt: skip


@dataclass(frozen=True)
class Damage:
    """What is wrong with one host: told in few words, where the host itself would fill pages.

    ``mute``: its kernel has none of the settings, as where a module is not loaded or /proc/sys is hidden.
    """

    recording: str
    hosts: bytes
    files: Mapping[str, bytes]
    static: str
    running: str
    live: Mapping[str, str]
    lost: frozenset[str] = frozenset()
    broken: frozenset[str] = frozenset()
    mute: bool = False

    def host(self, name: str) -> HostState:
        """Return the host with this damage."""
        found = with_absent(host(name, self.recording))
        files = {"/etc/hosts": self.hosts, "/etc/hostname": f"{self.static}\n".encode()}
        found = with_files(found, {**files, **self.files})
        assert isinstance(found.identity, Identity)
        assert isinstance(found.sysctls, Sysctls)
        names = {"static_name": self.static, "transient_name": self.running}
        live = {} if self.mute else {**found.sysctls.live, **self.live}
        update: dict[str, Any] = {
            "identity": found.identity.model_copy(update=names),
            "sysctls": found.sysctls.model_copy(update={"live": live}),
        }
        update |= {group: Unknown(reason="it did not answer in time") for group in self.lost}
        found = found.model_copy(update=update)
        for remedy in sorted(self.broken - self.lost):
            breakage = find_remedy(remedy).broken
            assert breakage is not None
            found = breakage(found)
        return found


@dataclass(frozen=True)
class FleetCase:
    """A fleet with damaged hosts, and what the spec says otherwise than by default."""

    damages: tuple[Damage, ...]
    switches: Mapping[str, Mapping[str, Any]]

    def fleet(self) -> Fleet:
        """Return the fleet."""
        sections = dict(default_spec().sections)
        for remedy in remedies():
            chosen = self.switches.get(remedy.name, {})
            sections[remedy.name] = remedy.settings.model_validate(chosen)
        states = (damage.host(name) for name, damage in zip(NAMES, self.damages, strict=True))
        return fleet_of(states, Spec(sections))


def switches() -> st.SearchStrategy[Mapping[str, Mapping[str, Any]]]:
    """Return settings for every remedy, from the types of its model."""
    return st.fixed_dictionaries(
        {
            remedy.name: st.fixed_dictionaries(
                {},
                optional={k: st.sampled_from(v) for k, v in values_of(remedy.settings).items()},
            )
            for remedy in remedies()
        }
    )


def cases() -> st.SearchStrategy[FleetCase]:
    """Return fleets of three hosts, each with damage of its own, under settings of every kind."""
    breakable = [remedy.name for remedy in remedies() if remedy.broken is not None]
    damages = st.builds(
        Damage,
        recording=st.sampled_from(RECORDED),
        hosts=hosts_files,
        files=damaged_files,
        static=st.sampled_from(["", "node", *NAMES, "localhost"]),
        running=st.sampled_from(["(none)", "node", *NAMES, "localhost"]),
        live=live_settings,
        lost=st.one_of(st.just(frozenset()), blind),
        broken=st.frozensets(st.sampled_from(breakable), max_size=2),
    )
    return st.builds(
        FleetCase,
        damages=st.tuples(*(damages for _ in NAMES)),
        switches=st.one_of(st.just({}), switches()),
    )


def single_cases(remedy: Remedy[Any]) -> Iterator[FleetCase]:
    """Yield cases that differ in one thing from a healthy fleet: a recording, a file, a setting.

    With every one of them there is the breakage that the remedy declares, and there is not.
    """
    chosen = [{}, *({k: v} for k, every in values_of(remedy.settings).items() for v in every)]
    for broken in ({remedy.name}, set()) if remedy.broken is not None else (set[str](),):
        for recording in RECORDED:
            for values in chosen:
                yield _alike(remedy.name, recording, broken, values=values)
        for path, contents in damage.items():
            for content in contents:
                yield _alike(remedy.name, "lab-idle", broken, files={path: content})
        for key, value in LIVE:
            yield _alike(remedy.name, "lab-idle", broken, live={key: value})
    for values in chosen:
        yield _alike(remedy.name, "lab-idle", (), values=values, mute=True)


def pair_cases(remedy: Remedy[Any]) -> Iterator[FleetCase]:
    """Yield cases in which two settings differ from their defaults, on broken hosts where it says how."""
    broken = {remedy.name} if remedy.broken is not None else set[str]()
    for (first, some), (second, others) in combinations(values_of(remedy.settings).items(), 2):
        for value, other in product(some, others):
            values = {first: value, second: other}
            if _is_allowed(remedy, values):
                yield _alike(remedy.name, "lab-idle", broken, values=values)


def _is_allowed(remedy: Remedy[Any], values: Mapping[str, Any]) -> bool:
    try:
        remedy.settings.model_validate(values)
    except ValidationError:
        return False
    return True


def _alike(
    remedy: str,
    recording: str,
    broken: Iterable[str],
    *,
    values: Mapping[str, Any] | None = None,
    files: Mapping[str, bytes] | None = None,
    live: Mapping[str, str] | None = None,
    mute: bool = False,
) -> FleetCase:
    hosts = b"127.0.0.1\tlocalhost\n"
    damages = tuple(
        Damage(
            recording,
            hosts,
            files or {},
            "node",
            "node",
            live or {},
            broken=frozenset(broken),
            mute=mute,
        )
        for _ in NAMES
    )
    return FleetCase(damages, {remedy: values or {}})
