"""The environment of jobs: NCCL, gloo and MPI get the right network interface, where every launcher sees it.

Cures: NCCL_SOCKET_IFNAME, GLOO_SOCKET_IFNAME, UCX_NET_DEVICES and their like naming an interface that is not
there or leads nowhere (names differ from host to host); NCCL or Open MPI choosing a container's bridge by
itself; Open MPI listening on ports that a firewall keeps shut; InfiniBand and RoCE ports mixed; variables that
an interactive shell has and a job started over ssh, mpirun or Slurm has not; a rank, a world size or endpoints
of an old job that a file still gives to every new one.

Wrong values are looked for wherever a job can get them: shells, PAM, sshd, systemd's units and managers with
the files that they name, environment.d, cron, containers' defaults, conda, modules, Slurm's prologs, and what
running daemons (slurmd, kubelet, ray) hand on. Each is named with file, line and who gets it. A value that
looks like a secret stays on the host.

NCCL_* go to /etc/nccl.conf, which every launcher's NCCL reads; Open MPI's and UCX's to their own files where
they are installed; all else to /etc/environment, which ssh sessions get, and to /etc/profile.d. Without a
spec only what cannot work is corrected. A line of others that must not count is commented out, never lost.
Lines that would beat these files (shell start-up files, ~/.nccl.conf) are named, not changed. Containers see
none of this: mount /etc/nccl.conf, or pass the variables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from remedy.deploys import _for_open_mpi, _openmpi, _stale, ascend
from remedy.deploys import _interfaces as nic
from remedy.deploys import _transports as transports
from remedy.deploys._environment import (
    DEBUG,
    IFNAMES,
    Surroundings,
    Wish,
    advise,
    check_services,
    check_session,
    is_debug,
    label_of,
    name_overruling,
    report_differences,
)
from remedy.deploys._settings import PROFILE, SESSION, Target, switched_off, target_for
from remedy.deploys._unsearched import AT_BOOT, JOBS_OF_AT, note_unsearched
from remedy.edit.assignments import Assignment, Dialect, assignments, edit, effective
from remedy.plan import Change, FileAction, Finding, FleetBench, Workbench, remedy
from remedy.probe import File, HostState, Interface
from remedy.secret import holds_password, looks_secret
from remedy.spec import SpecSection
from remedy.templating import render
from remedy.values import Unknown

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_RESERVED = frozenset(("PATH", "HOME", "SHELL", "USER", "LOGNAME", "LD_PRELOAD", "IFS", "ENV"))


def _text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _name(name: str) -> str:
    if not _NAME.match(name):
        raise ValueError(f"{name!r} is not the name of a variable")
    if name in _RESERVED or name.startswith("BASH"):
        raise ValueError(f"{name} decides who can log in at all, so remedy does not set it")
    if looks_secret(name):  # the files are for everybody to read
        raise ValueError(
            f"{name} looks like a secret: every user of a host can read these files, and a plan would hold it; "
            "give it to the job by its launcher or a secret store"
        )
    return name


def _value(value: str) -> str:
    if holds_password(value):
        raise ValueError(
            "a URL with a password in it: every user of a host can read these files, and a plan would hold it; "
            "give it to the job by its launcher or a secret store"
        )
    bad = sorted({c for c in value if c in "\"'`$\\#" or not c.isprintable()})
    if bad or value != value.strip():
        raise ValueError(
            f"{value!r} has {bad[0] if bad else 'a blank at an end'!r}, which not every place can hold"
        )
    return value


_INTERFACE = r"[A-Za-z0-9_.-]{2,15}"


def _interface(name: str) -> str:
    if not re.fullmatch(_INTERFACE, name):
        raise ValueError
    return name


_ABOUT = {"description": '"auto", or the name of one interface, such as eno2'}
_PATTERN = Field(json_schema_extra={**_ABOUT, "pattern": f"^{_INTERFACE}$"})
InterfaceName = Annotated[str, AfterValidator(_interface), _PATTERN]
Value = Annotated[str, BeforeValidator(_text), AfterValidator(_value)]


class EnvironmentSpec(SpecSection):
    """What jobs find in their environment.

    ``interface``: "auto" sets, on each host, the interface with the host's cluster address for NCCL, gloo,
    tensorpipe and Open MPI; a name sets that one; without it only a setting that cannot work is corrected.
    ``hcas``: "auto" sets NCCL_IB_HCA to the active ports of one link layer. ``variables``: further ones.
    ``debug``: "remove" comments out debug switches that were left behind. ``user_files``: ~/.nccl.conf of the
    user who logs in, and of ``cluster.user``, may be changed too, with that user's rights.
    """

    interface: InterfaceName | None = Field(None, examples=["auto"])
    hcas: Literal["auto"] | None = None
    variables: Mapping[Annotated[str, AfterValidator(_name)], Value] = Field(
        default_factory=dict, examples=[{"NCCL_DEBUG": "WARN"}, {"NCCL_IB_TIMEOUT": 22}]
    )
    debug: Literal["report", "remove"] = "report"
    user_files: bool = False


@remedy(
    "Environment of jobs",
    EnvironmentSpec,
    cures=(
        "wrong-interface",
        "env-not-propagated",
        "ib-roce-mixed",
        "mpi-nic-mismatch",
        "rank-mismatch",
        "firewall-ports",
        "hccl-memory",
    ),
    finds=("p2p-acs-iommu", "shm-too-small", "ib-misconfig", "gdr-peermem"),
    order=60,
    reads=(PROFILE,),
)
def environment(bench: Workbench[EnvironmentSpec]) -> None:
    """Decide which files have to say something else, and name the lines that overrule them."""
    settings = bench.settings
    around = Surroundings.of(bench, user_files=settings.user_files)
    wishes = {**_for_open_mpi.wishes(around), **_repairs(around), **_asked(around, settings)}
    sole_values: dict[str, str | None] = {name: wish.value for name, wish in wishes.items()}
    sole_values |= {setting.name: None for setting in _stale.left_behind(around, wishes)}
    if settings.debug == "remove":
        sole_values |= {
            s.name: None for s in around.settings if is_debug(s) and s.name not in wishes
        }
    for target in around.targets:
        _keep_block(around, target, wishes, sole_values)
    _keep_profile(around, wishes)
    name_overruling(around, wishes)
    check_session(around, wishes)
    _stale.name_left_behind(around, wishes)
    check_services(around)
    note_unsearched(bench, "sets for jobs", but=(*AT_BOOT, *JOBS_OF_AT))
    advise(around, sole_values)


@environment.fleetwide
def report_fleet(bench: FleetBench[EnvironmentSpec]) -> None:
    """Report what differs between the hosts, and what a launcher's variables do on all of them."""
    report_differences(bench)
    _stale.report_agreed(bench)


def _repairs(around: Surroundings) -> dict[str, Wish]:
    """Return what has to be set unasked: in place of what cannot work, or what a run before so repaired."""
    reasons: dict[str, str] = {}
    for setting in around.settings:
        fault = around.fault(setting.name, setting.value)
        repaired = (*IFNAMES, *_openmpi.IFNAMES, *transports.NAMES)
        if setting.target and (fault or setting.ours) and setting.name in repaired:
            reasons[setting.name] = fault or "remedy set it in place of what could not work"
    astray = _nccl_goes_astray(around)
    if astray and not any(setting.name == IFNAMES[0] for setting in around.settings):
        reasons[IFNAMES[0]] = astray
    if isinstance(around.interface, Unknown):
        return {}
    values = {name: _value_for(around, name, around.interface) for name in reasons}
    return {
        name: Wish(value, reasons[name], from_spec=False)
        for name, value in values.items()
        if value is not None
    }


def _value_for(around: Surroundings, name: str, carrier: Interface) -> str | None:
    """Return the value by which a variable names the cluster's interface; None where remedy has none."""
    if name in transports.NAMES:
        return transports.value_for(name, around.bench.host, carrier)
    subnet = nic.cluster_subnet(around.bench.fleet, around.bench.host)
    if name in _openmpi.IFNAMES and subnet is not None:
        return subnet
    return _as_value(name, carrier.name)


def _as_value(name: str, interface: str) -> str:
    """Return the value that names one interface exactly: NCCL takes it for a prefix without the "="."""
    return f"={interface}" if name == "NCCL_SOCKET_IFNAME" else interface


def _nccl_goes_astray(around: Surroundings) -> str | None:
    """Return what NCCL would choose by itself if that leads nowhere; only where there are GPUs and peers.

    Its bootstrap takes the first interface; without RDMA its traffic takes all of them.
    """
    host, carrier = around.bench.host, around.interface
    if isinstance(host.network, Unknown) or isinstance(carrier, Unknown) or not nic.has_gpu(host):
        return None
    chosen = nic.nccl_by_itself(nic.usable(host.network))
    used = chosen[:1] if nic.active_ports(host) else chosen
    astray = [interface for interface in used if nic.internal(interface, host.network)]
    alone = len(around.bench.fleet.inventory.nodes) < 2
    if alone or not astray or nic.internal(carrier, host.network):
        return None
    return f"NCCL by itself takes {', '.join(i.name for i in used)}; {astray[0].name} does not leave the host"


def _asked(around: Surroundings, settings: EnvironmentSpec) -> dict[str, Wish]:
    """Return what the spec asks for."""
    fleet, host = around.bench.fleet, around.bench.host
    wishes: dict[str, Wish] = {}
    interface = _asked_interface(around, settings.interface)
    if interface is not None:
        why = "environment.interface of the spec"
        wishes = {name: Wish(_as_value(name, interface), why) for name in IFNAMES}
        subnet = nic.cluster_subnet(fleet, host)
        if subnet and any(target.dialect is Dialect.MCA for target in around.targets):
            same = "the cluster network, the same word on every host"
            wishes |= {name: Wish(subnet, same) for name in _openmpi.IFNAMES}
    if settings.hcas == "auto" and (ports := nic.one_layer(nic.active_ports(host))):
        words = ",".join(f"{port.device}:{port.port}" for port in ports)
        wishes["NCCL_IB_HCA"] = Wish(f"={words}", f"the active {ports[0].link_layer} ports")
    npus = fleet.spec.section("ascend", ascend.AscendSpec)
    for values, why in (
        (ascend.variables(fleet, host, npus), "ascend.rank_table of the spec"),
        (ascend.buffer(host, npus), "ascend.buffer of the spec"),
        (settings.variables, "environment.variables of the spec"),
    ):
        wishes |= {name: Wish(value, why) for name, value in values.items()}
    return wishes


def _asked_interface(around: Surroundings, name: str | None) -> str | None:
    """Return the interface that the spec names, or has derived; None when there is none."""
    if name == "auto":
        if not isinstance(around.interface, Unknown):
            return around.interface.name
        title = "the interface of the cluster network is not known"
        around.bench.unknown(title, around.interface.reason, label="wrong-interface")
        return None
    network = around.bench.host.network
    if name is None or isinstance(network, Unknown) or network.interface(name) is not None:
        return name
    around.bench.blocked(
        f"environment.interface of the spec is {name}, which this host does not have",
        f"it has {', '.join(interface.name for interface in network.interfaces)}",
        'Give "auto": each host then gets its own.',
        label="wrong-interface",
    )
    return None


def _keep_block(
    around: Surroundings,
    target: Target,
    wishes: Mapping[str, Wish],
    sole_values: Mapping[str, str | None],
) -> None:
    """Give a file the block that it is to have; a file that cannot be read counts where the spec needs it, or
    where it is no file that anybody could read.
    """
    bench, file = around.bench, around.bench.host.file(target.path)
    due = {n: w for n, w in wishes.items() if target_for(n, around.targets) == target}
    if isinstance(file, Unknown):
        _note_unread(bench, target.path, file.reason, due)
        return
    lines = assignments(file.content, target.dialect)
    items = _items(target, lines, due)
    content = _with_block(file.content, target, items, sole_values)
    if content == file.content:
        return
    strange = [line for line in lines if _contradicts(target, line, sole_values)]
    findings = [_note_contradiction(bench, target, line, wishes) for line in strange]
    lacking = _lacking(target, lines, items, sole_values)
    if lacking:
        title = f"{target.path} does not set {', '.join(n[len(target.prefix) :] for n in lacking)}"
        evidence = (f"{name}={items[name]}: {due[name].why}" for name in lacking)
        findings.append(bench.drift(title, evidence, label=label_of(lacking[0])))
    if not findings:
        title = f"remedy's block in {target.path} holds what nothing asks for any more"
        findings.append(bench.drift(title, label="env-not-propagated"))
    _save(bench, target.path, content, findings[0])


def _note_unread(
    bench: Workbench[EnvironmentSpec], path: str, reason: str, wishes: Mapping[str, Wish]
) -> None:
    is_odd = reason.startswith((f"{path} is", f"{path} has"))
    if is_odd or any(wish.from_spec for wish in wishes.values()):
        bench.unknown(f"could not read {path}", reason, label="env-not-propagated")


def _note_contradiction(
    bench: Workbench[EnvironmentSpec], target: Target, line: Assignment, wishes: Mapping[str, Wish]
) -> Finding:
    name = target.prefix + line.name
    why = wishes[name].why if name in wishes else _stale.EFFECT
    if name in DEBUG and name not in wishes:
        why = f"a debug switch: {DEBUG[name][1]}"
    title = f"{target.path} says {name}={line.value}: {why}"
    return bench.drift(title, f"line {line.line}", label=label_of(name))


def _items(
    target: Target, lines: Sequence[Assignment], wishes: Mapping[str, Wish]
) -> dict[str, str]:
    """Return what the block is to set: a line of others that says the right thing does."""
    foreign = {(target.prefix + line.name, line.value) for line in lines if not line.ours}
    return {n: w.value for n, w in sorted(wishes.items()) if (n, w.value) not in foreign}


def _contradicts(target: Target, line: Assignment, sole_values: Mapping[str, str | None]) -> bool:
    return not line.ours and line.value != sole_values.get(target.prefix + line.name, line.value)


def _lacking(
    target: Target,
    lines: Sequence[Assignment],
    items: Mapping[str, str],
    sole_values: Mapping[str, str | None],
) -> list[str]:
    """Return the names that are to be set and are not; without those that a line sets otherwise."""
    values = {(target.prefix + line.name, line.value) for line in lines if line.ours}
    contradicted = {
        target.prefix + line.name for line in lines if not line.ours
    } & sole_values.keys()
    return [n for n, v in items.items() if (n, v) not in values and n not in contradicted]


def _with_block(
    content: bytes, target: Target, items: Mapping[str, str], sole_values: Mapping[str, str | None]
) -> bytes:
    """Return the content of a file that sets ``items``, without lines that ``sole_values`` exclude."""
    names = {name: name.removeprefix(target.prefix) for name in (*items, *sole_values)}
    block = ""
    if items:
        pairs = [(names[name], value) for name, value in items.items()]
        block = render("environment_block.j2", items=pairs, equals=target.equals)
    keys = {
        names[name]: value for name, value in sole_values.items() if name.startswith(target.prefix)
    }
    return edit(content, block.encode(), keys, target.dialect)


def _keep_profile(around: Surroundings, wishes: Mapping[str, Wish]) -> None:
    """Give login shells what the spec asks for in /etc/environment."""
    file = around.bench.host.file(PROFILE)
    items = [
        (name, wish.value)
        for name, wish in sorted(wishes.items())
        if wish.from_spec and target_for(name, around.targets).path == SESSION
    ]
    content = render("environment_profile.j2", items=items).encode() if items else b""
    if not isinstance(file, Unknown) and content != file.content:
        title = f"{PROFILE} is not what /etc/environment holds for login shells"
        _save(around.bench, PROFILE, content, around.bench.drift(title, label="env-not-propagated"))


def _save(bench: Workbench[EnvironmentSpec], path: str, content: bytes, because: Finding) -> None:
    # What sshd's PAM reads could keep a session from starting, so a new connection must prove it.
    guarded = path == SESSION
    rest = "programs that run keep the environment they were started with"
    if content:
        bench.write(path, content, f"write {path}", because=because, guarded=guarded, disrupts=rest)
    else:
        title = f"remove {path}, which holds nothing any more"
        bench.remove(path, title, because=because, guarded=guarded, disrupts=rest)


@environment.promises
def promise(state: HostState, change: Change) -> HostState:
    """Return what the probe finds after the change: a new session has what /etc/environment says."""
    file = state.file(SESSION)
    if (
        not isinstance(change.action, FileAction)
        or change.action.path != SESSION
        or isinstance(state.environment, Unknown)
        or not isinstance(file, File)
    ):
        return state
    settings = effective(assignments(file.content, Dialect.PAM), Dialect.PAM)
    off = {name for name, _ in switched_off(state, (Target(SESSION, Dialect.PAM),))}
    remaining = {n: v for n, v in state.environment.items() if n not in off and n not in IFNAMES}
    return state.model_copy(
        update={"environment": remaining | {name: line.value for name, line in settings.items()}}
    )
