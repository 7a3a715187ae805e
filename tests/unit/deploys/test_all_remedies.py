"""What holds for every remedy there is: names, specs, words, and plans that keep their promise.

The hosts are those of the recorded probes, whole, with generated damage: a remedy that is added is tested here
without a word about it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from remedy.edit.hosts import block_entries, foreign_entries
from remedy.inventory import Inventory, Node
from remedy.plan import (
    Change,
    FileAction,
    FindingKind,
    Fleet,
    Origin,
    Plan,
    Remedy,
    all_causes,
    inverse,
    make_plan,
    promised,
    remedies,
    remedy_of,
    section_models,
)
from remedy.plan.splice import join
from remedy.probe import Address, File, HostState, Identity, Interface, Names, Network, Sysctls
from remedy.spec import Spec, SpecSection, load_spec
from remedy.values import Unknown
from tests.unit.probe_data import RECORDED, state

WHEN = Origin(created="2026-01-01T00:00:00+00:00", author="me@here")
NAMES = ("gpu01", "gpu02", "gpu03")
REPORTS = tuple(remedy for remedy in remedies() if remedy.only_reports)
by_name = pytest.mark.parametrize("remedy", remedies(), ids=lambda remedy: remedy.name)

# ---- hosts


@cache
def host(name: str, recording: str) -> HostState:
    """Return a recorded host under another name, at addresses of its own, as a probe of today would see it."""
    found = state(recording)
    number = NAMES.index(name) + 1
    assert isinstance(found.network, Network)
    assert isinstance(found.identity, Identity)
    interfaces = tuple(_moved(interface, number) for interface in found.network.interfaces)
    absent = {
        path: File(path=path, real_path=path, exists=False)
        for remedy in remedies()
        for path in remedy.reads
        if not set(path) & set("*?[")
    }
    return found.model_copy(
        update={
            "host": name,
            "network": found.network.model_copy(update={"interfaces": interfaces}),
            "identity": found.identity.model_copy(update={"machine_id": str(number) * 32}),
            "files": {**absent, **found.files},
        }
    )


def _moved(interface: Interface, number: int) -> Interface:
    addresses = tuple(
        Address(
            address=re.sub(r"^(10\.21[34]\.\d+)\.\d+$", rf"\1.{10 + number}", one.address),
            prefix=one.prefix,
            scope=one.scope,
        )
        for one in interface.addresses
    )
    return interface.model_copy(update={"addresses": addresses})


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
        name: tuple(x.address for x in lines if name in x.names and ":" not in x.address)
        for name in NAMES
    }
    names = found.names.model_copy(update={"peers": peers})
    return found.model_copy(update={"files": files, "names": names})


# ---- every remedy by itself


def test_no_two_remedies_have_one_name() -> None:
    names = [remedy.name for remedy in remedies()]
    assert len(set(names)) == len(names)
    assert not set(names) & {"cluster", "apply", "verify"}, "a section of the spec has that name"
    assert not set(names) & set(all_causes()), "a cause has that name"


@by_name
def test_a_remedy_has_a_legal_name_and_words(remedy: Remedy[Any]) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9_]{1,30}", remedy.name)
    module = import_module(f"remedy.deploys.{remedy.name}")
    assert remedy_of(module) is remedy
    assert remedy.title
    assert remedy.text is module.__doc__
    assert remedy.text is not None
    first, _, rest = remedy.text.strip().partition("\n")
    assert first.endswith("."), "the first line is one sentence: `remedy explain` lists it"
    assert len(rest) > 100
    assert remedy.cures or remedy.finds
    assert {*remedy.cures, *remedy.finds} <= set(all_causes())


@by_name
def test_a_remedy_is_a_deploy_of_pyinfra_by_its_name(remedy: Remedy[Any]) -> None:
    module = import_module(remedy.module)
    assert callable(getattr(module, remedy.name))
    assert remedy.__name__ == remedy.name, "pyinfra shows it"


@by_name
def test_its_section_of_the_spec_loads_with_defaults(remedy: Remedy[Any], tmp_path: Path) -> None:
    (tmp_path / "remedy.yaml").write_text(f"{remedy.name}: {{}}\n")
    section = load_spec(tmp_path / "remedy.yaml", section_models()).sections[remedy.name]
    assert section == remedy.settings()
    assert remedy.settings.model_validate(section.model_dump(mode="json")) == section
    assert remedy.settings.__doc__ != SpecSection.__doc__


@by_name
def test_a_healthy_host_has_no_finding_and_no_change(remedy: Remedy[Any]) -> None:
    before = fleet_of(host(name, "lab-idle") for name in NAMES)
    healthy = promised(before, make_plan(before, WHEN))
    plan = make_plan(healthy, WHEN, only=remedy.name)
    assert plan.changes == ()
    assert plan.findings == ()


def test_finding_the_remedies_asks_nobody_and_connects_to_nothing() -> None:
    code = (
        "import socket\n"
        "def no(*a, **k): raise SystemExit('a connection while importing')\n"
        "socket.socket.connect = socket.create_connection = socket.getaddrinfo = no\n"
        "from remedy.plan import remedies\n"
        "assert remedies()\n"
        "import sys; assert 'pyinfra' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# ---- generated fleets

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
blind = st.frozensets(
    st.sampled_from(
        ["identity", "names", "network", "sysctls", "firewalls", "units", "containers", "ipc", "shared_memory",
         "processes", "limits", "environment", "mentions", "gpus", "software", "session", "kernel", "mounts"]
    ),
    max_size=2,
)  # fmt: skip


@dataclass(frozen=True)
class Damage:
    """What is wrong with one host: told in few words, where the host itself would fill pages."""

    recording: str
    hosts: bytes
    files: Mapping[str, bytes]
    static: str
    running: str
    live: Mapping[str, str]
    lost: frozenset[str]

    def host(self, name: str) -> HostState:
        """Return the host with this damage."""
        found = host(name, self.recording)
        files = {"/etc/hosts": self.hosts, "/etc/hostname": f"{self.static}\n".encode()}
        found = with_files(found, {**files, **self.files})
        assert isinstance(found.identity, Identity)
        assert isinstance(found.sysctls, Sysctls)
        names = {"static_name": self.static, "transient_name": self.running}
        live = {**found.sysctls.live, **self.live}
        update: dict[str, Any] = {
            "identity": found.identity.model_copy(update=names),
            "sysctls": found.sysctls.model_copy(update={"live": live}),
        }
        update |= {group: Unknown(reason="it did not answer in time") for group in self.lost}
        return found.model_copy(update=update)


@dataclass(frozen=True)
class Case:
    """A fleet with damaged hosts, and what the spec says otherwise than by default."""

    damages: tuple[Damage, ...]
    switches: Mapping[str, Mapping[str, Any]]

    def fleet(self) -> Fleet:
        """Return the fleet; a section that does not accept its switches keeps its defaults."""
        sections = dict(default_spec().sections)
        for remedy in remedies():
            try:
                sections[remedy.name] = remedy.settings.model_validate(
                    self.switches.get(remedy.name, {})
                )
            except ValidationError:
                continue
        states = (damage.host(name) for name, damage in zip(NAMES, self.damages, strict=True))
        return fleet_of(states, Spec(sections))


# Values that settings of any kind may have: each section takes those that it accepts.
VALUES: tuple[Any, ...] = (
    True, False, 0, 1, 4, 64, 600, 4096, 29500, 131072, "unlimited", "64M", "8G", "32768-60999", "50000-60000",
    "1024 65535", (50000, 60000), "keep", "enable", "disable", "off", "report", "remove", "no", "eth0", "eno2",
    "10.214.4.0/24", "2.8", (29500, 29400), ("29500",), ("60000-60031",), ("eth0",), ("torch", "ascend"),
    ("root",), {"eth0": "disable"}, {"NCCL_DEBUG": "WARN"}, {"NCCL_IB_TIMEOUT": "22"},
)  # fmt: skip


def accepted(model: type[SpecSection]) -> dict[str, list[Any]]:
    """Return for each setting of a section the values above that it accepts."""
    found: dict[str, list[Any]] = {}
    for key in model.model_fields:
        for value in VALUES:
            try:
                model.model_validate({key: value})
            except ValidationError:
                continue
            found.setdefault(key, []).append(value)
    return found


switches = st.fixed_dictionaries(
    {
        remedy.name: st.fixed_dictionaries(
            {}, optional={key: st.sampled_from(v) for key, v in accepted(remedy.settings).items()}
        )
        for remedy in remedies()
    }
)
damages = st.builds(
    Damage,
    recording=st.sampled_from(RECORDED),
    hosts=hosts_files,
    files=damaged_files,
    static=st.sampled_from(["", "node", *NAMES, "localhost"]),
    running=st.sampled_from(["(none)", "node", *NAMES, "localhost"]),
    live=live_settings,
    lost=st.one_of(st.just(frozenset()), blind),
)
cases = st.builds(
    Case,
    damages=st.tuples(*(damages for _ in NAMES)),
    switches=st.one_of(st.just({}), switches),
)


@given(cases)
def test_what_a_plan_promises_needs_no_plan(case: Case) -> None:
    fleet = case.fleet()
    plan = make_plan(fleet, WHEN)
    again = make_plan(promised(fleet, plan), WHEN)
    assert [told(change) for change in again.changes] == []


@given(cases)
def test_no_change_without_a_finding_and_all_of_both_is_whole(case: Case) -> None:
    fleet = case.fleet()
    plan = make_plan(fleet, WHEN)
    found = {(f.remedy, f.host) for f in plan.findings if f.kind is not FindingKind.REPORT}
    named = {remedy.name: {*remedy.cures, *remedy.finds} for remedy in remedies()}
    for change in plan.changes:
        assert (change.remedy, change.host) in found, told(change)
        assert change.label in named[change.remedy], told(change)
        assert change.title
        assert change.reason
        assert change.reversible or change.disrupts, "what cannot be taken back is said"
        if isinstance(change.action, FileAction):
            for digest in (change.action.before, change.action.after):
                assert digest is None or digest in plan.contents
            assert change.action.before != change.action.after
    for finding in plan.findings:
        assert finding.host in (None, *fleet.inventory.names)
        assert finding.label in all_causes()
        assert "\n" not in finding.title
        if finding.kind in (FindingKind.BLOCKED, FindingKind.UNKNOWN):
            assert finding.evidence or finding.fix, finding.title
    assert not {c.remedy for c in plan.changes} & {remedy.name for remedy in REPORTS}


@given(cases)
def test_taking_a_plan_back_brings_the_state_before(case: Case) -> None:
    fleet = case.fleet()
    plan = make_plan(fleet, WHEN)
    after = promised(fleet, plan)
    undo = plan.model_copy(
        update={"changes": tuple(c for name in NAMES for c in inverse(plan.for_host(name)))}
    )
    back = promised(after, undo)
    for name in NAMES:
        was, now = fleet.states[name], back.states[name]
        assert contents(now) == contents(was)
        if all(change.reversible for change in plan.for_host(name)):
            # The recorded answers of the resolver are the files', so they come back with these.
            for group in ("identity", "sysctls", "firewalls", "units", "limits", "shared_memory"):
                assert getattr(now, group) == getattr(was, group), group


@settings(max_examples=20)
@given(cases)
def test_a_plan_is_made_the_same_way_twice_and_survives_its_file(case: Case) -> None:
    fleet = case.fleet()
    plan = make_plan(fleet, WHEN)
    assert make_plan(fleet, WHEN) == plan
    again = Plan.model_validate_json(plan.model_dump_json())
    assert again == plan.model_copy(update={"contents": {}})
    assert again.digest == plan.digest
    for change in plan.changes:
        action = change.action
        if isinstance(action, FileAction) and action.after is not None:
            made = (
                again.blobs[action.after]
                if action.before is None
                else join(plan.contents[action.before], action.splices or (), again.blobs)
            )
            assert made == plan.contents[action.after]


def contents(found: HostState) -> dict[str, bytes]:
    """Return the files that are there, with their bytes."""
    return {p: f.content for p, f in found.files.items() if isinstance(f, File) and f.exists}


def told(change: Change) -> tuple[str, ...]:
    """Return what says which change it is."""
    return (change.host, change.remedy, change.title, change.reason)
