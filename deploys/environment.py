"""The environment of jobs: NCCL, gloo and MPI get the right network interface, where every launcher sees it.

Cures: NCCL_SOCKET_IFNAME or GLOO_SOCKET_IFNAME naming an interface that is not there or leads nowhere (names
differ from host to host); NCCL choosing a container's bridge by itself; InfiniBand and RoCE ports mixed;
variables that an interactive shell has and a job started over ssh, mpirun or Slurm has not.

NCCL_* go to /etc/nccl.conf, which every launcher's NCCL reads; Open MPI's and UCX's to their own files where
they are installed; all else to /etc/environment, which ssh sessions get, and to /etc/profile.d. Without a
spec only what cannot work is corrected. A line of others that must not count is commented out, never lost.
Lines that would beat these files (shell start-up files, ~/.nccl.conf) are named, not changed. Containers see
none of this: mount /etc/nccl.conf, or pass the variables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from remedy.deploys import _interfaces as nic
from remedy.deploys import ascend
from remedy.deploys._environment import (
    DEBUG,
    IFNAMES,
    Look,
    Wish,
    advice,
    beaten,
    differences,
    is_debug,
    label_of,
    session,
)
from remedy.deploys._settings import (
    MCA_PREFIX,
    PROFILE,
    SESSION,
    Target,
    switched_off,
    target_for,
    targets,
)
from remedy.edit.assignments import Dialect, assignments, edit, effective
from remedy.plan import (
    Assessment,
    Change,
    FileAction,
    Finding,
    FindingKind,
    Fleet,
    sha256,
)
from remedy.plan.files import blocker
from remedy.plan.legacy import old_remedy
from remedy.probe import File, HostState
from remedy.secret import looks_secret
from remedy.spec import SpecSection
from remedy.templating import render
from remedy.values import Unknown

NAME = "environment"
MPI_IFNAME = f"{MCA_PREFIX}btl_tcp_if_include"
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
    bad = sorted({c for c in value if c in "\"'`$\\#" or not c.isprintable()})
    if bad or value != value.strip():
        raise ValueError(
            f"{value!r} has {bad[0] if bad else 'a blank at an end'!r}, which not every place can hold"
        )
    return value


def _interface(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_.-]{2,15}", name):
        raise ValueError('expected "auto" or the name of one interface, such as eno2')
    return name


Value = Annotated[str, BeforeValidator(_text), AfterValidator(_value)]


class EnvironmentSpec(SpecSection):
    """What jobs shall find in their environment.

    ``interface``: "auto" sets, on each host, the interface with the host's cluster address for NCCL, gloo,
    tensorpipe and Open MPI; a name sets that one; without it only a setting that cannot work is corrected.
    ``hcas``: "auto" sets NCCL_IB_HCA to the active ports of one link layer. ``variables``: further ones.
    ``debug``: "remove" comments out debug switches that were left behind. ``user_files``: ~/.nccl.conf of the
    user who logs in may be changed too.
    """

    interface: Annotated[str, AfterValidator(_interface)] | None = None
    hcas: Literal["auto"] | None = None
    variables: Mapping[Annotated[str, AfterValidator(_name)], Value] = Field(default_factory=dict)
    debug: Literal["report", "remove"] = "report"
    user_files: bool = False


def assess(fleet: Fleet, host: HostState, spec: EnvironmentSpec) -> Assessment:
    """Decide which files have to say something else, and name the lines that would beat them."""
    look = Look(fleet, host, NAME, targets(host, user_files=spec.user_files))
    wishes = {**_repairs(look), **_asked(look, spec)}
    gone: dict[str, str | None] = {name: wish.value for name, wish in wishes.items()}
    if spec.debug == "remove":
        gone |= {s.name: None for s in look.settings if is_debug(s) and s.name not in wishes}
    changes: list[Change] = []
    blobs: dict[str, bytes] = {}
    contents = [_block(look, target, wishes, gone) for target in look.targets]
    for path, content in (*contents, (PROFILE, _profile(look, wishes))):
        change = _change(look, path, content, blobs) if content is not None else None
        if change is not None:
            changes.append(change)
    beaten(look, wishes)
    session(look, wishes)
    advice(look, gone)
    return Assessment(tuple(look.findings), tuple(changes), blobs)


def _repairs(look: Look) -> dict[str, Wish]:
    """Return what has to be set unasked: in place of what cannot work, or what a run before so repaired."""
    wishes = {}
    for one in look.settings:
        why = look.wrong(one.name, one.value)
        if one.target is not None and (why or one.ours) and one.name in IFNAMES:
            text = why or "remedy set it in place of what could not work"
            wishes[one.name] = _derived(look, one.name, text)
    chosen = _nccl_goes_astray(look)
    if chosen and not any(one.name == IFNAMES[0] for one in look.settings):
        wishes[IFNAMES[0]] = _derived(look, IFNAMES[0], chosen)
    return {name: wish for name, wish in wishes.items() if wish is not None}


def _derived(look: Look, name: str, why: str) -> Wish | None:
    if isinstance(look.interface, Unknown):
        return None
    return Wish(_as_value(name, look.interface.name), why, asked=False)


def _as_value(name: str, interface: str) -> str:
    """Return the value that names one interface exactly: NCCL takes it for a prefix without the "="."""
    return f"={interface}" if name == "NCCL_SOCKET_IFNAME" else interface


def _nccl_goes_astray(look: Look) -> str | None:
    """Return what NCCL would choose by itself if that leads nowhere; only where there are GPUs and peers.

    Its bootstrap takes the first interface; without RDMA its traffic takes all of them.
    """
    network = look.host.network
    if (
        isinstance(network, Unknown)
        or not nic.has_gpu(look.host)
        or len(look.fleet.inventory.nodes) < 2
    ):
        return None
    chosen = nic.nccl_by_itself(nic.usable(network))
    used = chosen[:1] if nic.active_ports(look.host) else chosen
    astray = [i for i in used if nic.internal(i, network)]
    if not astray or isinstance(look.interface, Unknown) or nic.internal(look.interface, network):
        return None
    return f"NCCL by itself takes {', '.join(i.name for i in used)}; {astray[0].name} does not leave the host"


def _asked(look: Look, spec: EnvironmentSpec) -> dict[str, Wish]:
    """Return what the spec asks for."""
    wishes: dict[str, Wish] = {}
    interface = _asked_interface(look, spec)
    if interface is not None:
        why = "environment.interface of the spec"
        wishes = {name: Wish(_as_value(name, interface), why) for name in IFNAMES}
        subnet = nic.cluster_subnet(look.fleet, look.host)
        if subnet and any(target.dialect is Dialect.MCA for target in look.targets):
            wishes[MPI_IFNAME] = Wish(subnet, "the cluster network, the same word on every host")
    if spec.hcas == "auto" and (ports := nic.one_layer(nic.active_ports(look.host))):
        words = ",".join(f"{port.device}:{port.port}" for port in ports)
        layer = ports[0].link_layer
        wishes["NCCL_IB_HCA"] = Wish(f"={words}", f"the active {layer} ports")
    of_ascend = ascend.variables(
        look.fleet, look.host, look.fleet.spec.section(ascend.NAME, ascend.AscendSpec)
    )
    wishes |= {
        name: Wish(value, "ascend.rank_table of the spec") for name, value in of_ascend.items()
    }
    why = "environment.variables of the spec"
    return wishes | {name: Wish(value, why) for name, value in spec.variables.items()}


def _asked_interface(look: Look, spec: EnvironmentSpec) -> str | None:
    """Return the interface that the spec names, or has derived; None when there is none."""
    if spec.interface is None:
        return None
    if spec.interface == "auto":
        if not isinstance(look.interface, Unknown):
            return look.interface.name
        look.find(
            FindingKind.UNKNOWN,
            "wrong-interface",
            "the interface of the cluster network is not known",
            (look.interface.reason,),
        )
        return None
    network = look.host.network
    if isinstance(network, Unknown) or network.interface(spec.interface) is not None:
        return spec.interface
    look.find(
        FindingKind.BLOCKED,
        "wrong-interface",
        f"environment.interface of the spec is {spec.interface}, which this host does not have",
        (f"it has {', '.join(i.name for i in network.interfaces)}",),
        'Give "auto": each host then gets its own.',
    )
    return None


def _block(
    look: Look, target: Target, wishes: Mapping[str, Wish], gone: Mapping[str, str | None]
) -> tuple[str, bytes | None]:
    """Return the content that a file shall have, and note what it lacks; None where nobody needs to know it."""
    mine = {
        name.removeprefix(target.prefix): wish
        for name, wish in wishes.items()
        if target_for(name, look.targets) == target
    }
    file = look.host.file(target.path)
    if isinstance(file, Unknown):
        if any(wish.asked for wish in mine.values()):
            title = f"{target.path} could not be read"
            look.find(FindingKind.UNKNOWN, "env-not-propagated", title, (file.reason,))
        return target.path, None
    lines = assignments(file.content, target.dialect)
    # A line of others that says the right thing does, once those that say another are disabled.
    foreign = {(one.name, one.value) for one in lines if not one.ours}
    wanted = [(name, wish.value) for name, wish in sorted(mine.items())]
    items = [item for item in wanted if item not in foreign]
    keys = {
        name.removeprefix(target.prefix): value
        for name, value in gone.items()
        if name.startswith(target.prefix)
    }
    block = render("environment_block.j2", items=items, equals=target.equals) if items else ""
    content = edit(file.content, block.encode(), keys, target.dialect)
    if content == file.content:
        return target.path, content
    told = len(look.findings)
    have = {one.name: one.value for one in lines if one.ours}
    lacking = {name: value for name, value in items if have.get(name) != value}
    for one in lines:
        if one.ours or one.name not in keys or one.value == keys[one.name]:
            continue
        name = target.prefix + one.name
        why = wishes[name].why if name in wishes else f"a debug switch: {DEBUG[name][1]}"
        lacking.pop(one.name, None)
        title = f"{target.path} says {name}={one.value}: {why}"
        look.find(FindingKind.DRIFT, label_of(name), title, (f"line {one.line}",))
    if lacking:
        evidence = tuple(f"{name}={value}: {mine[name].why}" for name, value in lacking.items())
        title = f"{target.path} does not set {', '.join(lacking)}"
        look.find(FindingKind.DRIFT, label_of(target.prefix + next(iter(lacking))), title, evidence)
    if len(look.findings) == told:
        look.find(
            FindingKind.DRIFT,
            "env-not-propagated",
            f"remedy's block in {target.path} holds what nothing asks for any more",
        )
    look.reasons[target.path] = look.findings[told]
    return target.path, content


def _profile(look: Look, wishes: Mapping[str, Wish]) -> bytes | None:
    """Return what the file for login shells shall hold: what the spec asks for in /etc/environment."""
    file = look.host.file(PROFILE)
    if isinstance(file, Unknown):
        return None
    items = [
        (name, wish.value)
        for name, wish in sorted(wishes.items())
        if wish.asked and target_for(name, look.targets).path == SESSION
    ]
    content = render("environment_profile.j2", items=items).encode() if items else b""
    if content != file.content:
        title = f"{PROFILE} is not what /etc/environment holds for login shells"
        look.find(FindingKind.DRIFT, "env-not-propagated", title)
        look.reasons[PROFILE] = look.findings[-1]
    return content


def _change(look: Look, path: str, content: bytes, blobs: dict[str, bytes]) -> Change | None:
    file = look.host.file(path)
    if isinstance(file, Unknown) or content == file.content:
        return None
    reason = look.reasons[path]
    blocked = blocker(file, NAME)
    if blocked is not None:
        look.findings.append(blocked.on(look.host.host, reason.label))
        return None
    blobs |= {sha256(data): data for data in (file.content, content)}
    return Change(
        id="",
        host=look.host.host,
        remedy=NAME,
        title=f"write {path}" if content else f"remove {path}, which holds nothing any more",
        reason=reason.title,
        label=reason.label,
        disrupts="programs that run keep the environment they were started with",
        # What sshd's PAM reads could keep a session from starting, so a new connection must prove it.
        guarded=path == SESSION,
        action=FileAction(
            path=path,
            real_path=file.real_path,
            before=sha256(file.content) if file.exists else None,
            after=sha256(content) if content else None,
        ),
    )


def assess_fleet(fleet: Fleet, _spec: EnvironmentSpec) -> tuple[Finding, ...]:
    """Find variables that sessions over ssh have on some hosts and not, or otherwise, on others."""
    return tuple(differences(fleet, NAME))


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
    said = effective(assignments(file.content, Dialect.PAM), Dialect.PAM)
    off = {name for name, _ in switched_off(state, (Target(SESSION, Dialect.PAM),))}
    kept = {n: v for n, v in state.environment.items() if n not in off and n not in IFNAMES}
    return state.model_copy(
        update={"environment": kept | {name: one.value for name, one in said.items()}}
    )


old_remedy(
    name=NAME,
    title="Environment of jobs",
    text=__doc__,
    cures=("wrong-interface", "env-not-propagated", "ib-roce-mixed", "mpi-nic-mismatch"),
    spec=EnvironmentSpec,
    assess=assess,
    assess_fleet=assess_fleet,
    order=60,
    reads=(PROFILE,),
    promise=promise,
)
