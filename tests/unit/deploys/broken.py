"""Hosts that the program's own remedies cure, where settings and damaged files do not switch them on."""

from __future__ import annotations

from remedy.deploys._ways import route_of, rule_of
from remedy.deploys.ascend import HCCN, ascend
from remedy.deploys.clock import clock
from remedy.deploys.docker_shm import docker_shm
from remedy.deploys.environment import environment
from remedy.deploys.fleet_versions import fleet_versions
from remedy.deploys.gpu_health import gpu_health
from remedy.deploys.hosts_file import hosts_file
from remedy.deploys.ipsec import ipsec, policy_of
from remedy.deploys.neighbours import neighbours
from remedy.deploys.network_health import network_health
from remedy.deploys.orphans import orphans
from remedy.deploys.peer_routes import peer_routes
from remedy.deploys.pythons import pythons
from remedy.deploys.rdma_health import rdma_health
from remedy.deploys.resolver import resolver
from remedy.deploys.shm_leftovers import shm_leftovers
from remedy.deploys.sysv_ipc import sysv_ipc
from remedy.deploys.traffic_control import traffic_control
from remedy.probe import (
    Clock,
    Discipline,
    File,
    HostState,
    Listener,
    LoginSession,
    Neighbour,
    Network,
    Package,
    PolicyRule,
    Process,
    Queue,
    Queueing,
    RdmaPort,
    Routing,
    Segment,
    Semaphores,
    SharedMemory,
    ShmFile,
    SysvIpc,
)
from remedy.probe.accelerators import Gpu
from remedy.probe.processes import NO_READER
from remedy.probe.routing import in_text_order
from remedy.values import Unknown

LOGIN = "/user.slice/user-0.slice/session-4444.scope"
USER = 1000
NOBODY = 4321
ODD = "gpu02"  # the host that is not like the others


def long_ago(state: HostState) -> int:
    """Return an epoch second an hour before the probe, of a host that has been up for longer."""
    assert isinstance(state.clock, Clock)
    return state.clock.epoch_ns // 10**9 - 3600


@orphans.breaks
def a_torchrun_without_anybody(state: HostState) -> HostState:
    """Have a launcher of a login that is over hold its port."""
    if isinstance(state.processes, Unknown) or isinstance(state.listeners, Unknown):
        return state
    orphan = Process(
        4089, 1, 4089, 4089, False, "S", "torchrun", 40890, 1_000_000, uid=0, cgroup=LOGIN,
        arguments=("torchrun", "train.py"), outputs=(NO_READER, NO_READER),
    )  # fmt: skip
    kept = tuple(process for process in state.processes if process.pid != orphan.pid)
    listener = Listener("*", 29500, (orphan.pid,))
    return state.model_copy(
        update={"processes": (*kept, orphan), "listeners": (*state.listeners, listener)}
    )


@sysv_ipc.breaks
def a_segment_of_the_dead(state: HostState) -> HostState:
    """Have a segment whose creator and last user are dead."""
    if isinstance(state.ipc, Unknown):
        return state
    at = long_ago(state)
    segment = Segment(
        5005, 0, 0o600, 4096, 4010, 4011, 0, USER, USER, at, at, at, False, None, None
    )
    of_root = segment._replace(id=5006, uid=0, creator_uid=0)
    semaphores = Semaphores(5007, 0, 3, NOBODY, NOBODY, at, at)
    queue = Queue(5008, 0, 0, 0, 4010, 4011, NOBODY, NOBODY, None, None, at, at, at)
    ipc: SysvIpc = state.ipc.model_copy(
        update={
            "segments": (*state.ipc.segments, segment, of_root),
            "semaphores": (*state.ipc.semaphores, semaphores),
            "queues": (*state.ipc.queues, queue),
        }
    )
    return state.model_copy(update={"ipc": ipc})


@shm_leftovers.breaks
def a_file_of_the_dead(state: HostState) -> HostState:
    """Have a file of NCCL in /dev/shm that nobody has open."""
    if isinstance(state.shared_memory, Unknown):
        return state
    at, memory = long_ago(state), state.shared_memory
    file = ShmFile("/dev/shm/nccl-AbCd09", 25, 700_007, 4096, 4096, USER, 0o600, at, at, 1)
    holders = {} if isinstance(memory.holders, Unknown) else memory.holders
    named = file._replace(path="/dev/shm/psm_4f1c9a2e", inode=700_008)
    found: SharedMemory = memory.model_copy(
        update={
            "files": (*memory.files, file, named),
            "used": memory.used + 8192,
            "holders": holders,
        }
    )
    return state.model_copy(update={"shared_memory": found})


@docker_shm.breaks
def docker_is_installed(state: HostState) -> HostState:
    """Have both container engines; what they give is asked for by the settings."""
    if isinstance(state.session, Unknown):
        return state
    programs = {"dockerd": "/usr/bin/dockerd", "podman": "/usr/bin/podman"}
    both = {**state.session.programs, **programs}
    session: LoginSession = state.session.model_copy(update={"programs": both})
    return state.model_copy(update={"session": session})


@ascend.breaks
def has_ascend_devices(state: HostState) -> HostState:
    """Have Ascend devices, each host with addresses of its own."""
    number = state.host.removeprefix("gpu0")
    text = f"address_0=192.168.100.{number}\nnetmask_0=255.255.255.0\n"
    file = File(path=HCCN, real_path=HCCN, exists=True, content=text.encode())
    return state.model_copy(update={"files": {**state.files, HCCN: file}})


# ---- hosts that reports report


@clock.breaks
def a_clock_is_behind(state: HostState) -> HostState:
    """Have one clock that is fifty seconds behind the others."""
    if isinstance(state.clock, Unknown):
        return state
    asked = 1_700_000_000 * 10**9
    behind = 50 * 10**9 if state.host == ODD else 0
    update = {"epoch_ns": asked - behind, "asked_at": asked, "heard_at": asked + 10**8}
    return state.model_copy(update={"clock": state.clock.model_copy(update=update)})


@fleet_versions.breaks
def versions_differ(state: HostState) -> HostState:
    """Have another NCCL on one host."""
    if isinstance(state.software, Unknown):
        return state
    package = Package("nvidia_nccl_cu12", "2.18.1" if state.host == ODD else "2.21.5", "/opt/venv")
    software = state.software.model_copy(update={"packages": (package,)})
    return state.model_copy(update={"software": software})


@gpu_health.breaks
def a_gpu_is_full(state: HostState) -> HostState:
    """Have a GPU with memory in use by nobody that is listed."""
    if isinstance(state.gpus, Unknown):
        return state
    gpu = Gpu(0, "GPU-1", "0000:01:00.0", "H100", "580.65.06", True, "Default", 81_559, 3000, 0)
    update = {"driver": "580.65.06", "devices": (gpu,), "processes": ()}
    return state.model_copy(update={"gpus": state.gpus.model_copy(update=update)})


@network_health.breaks
def an_mtu_differs(state: HostState) -> HostState:
    """Have a smaller MTU on all interfaces of one host."""
    if isinstance(state.network, Unknown) or state.host != ODD:
        return state
    interfaces = tuple(i.model_copy(update={"mtu": 1400}) for i in state.network.interfaces)
    network = state.network.model_copy(update={"interfaces": interfaces})
    return state.model_copy(update={"network": network})


@pythons.breaks
def a_framework_is_there_twice(state: HostState) -> HostState:
    """Have two versions of torch."""
    if isinstance(state.software, Unknown):
        return state
    twice = (Package("torch", "2.3.0", "/opt/venv"), Package("torch", "2.6.0", "/usr/lib"))
    software = state.software.model_copy(update={"packages": twice})
    return state.model_copy(update={"software": software})


@environment.breaks
@rdma_health.breaks
def a_port_is_down(state: HostState) -> HostState:
    """Have two InfiniBand ports, of which one is down on one host."""
    if isinstance(state.rdma, Unknown):
        return state
    port = RdmaPort("mlx5_0", 1, "ACTIVE", "LinkUp", 400.0, "InfiniBand", "", (), {})
    second = port._replace(device="mlx5_1")
    if state.host == ODD:
        second = second._replace(state="DOWN", physical_state="Polling")
    return state.model_copy(update={"rdma": (port, second)})


@resolver.breaks
def names_are_asked_elsewhere_first(state: HostState) -> HostState:
    """Have a dead name server; on one host, the own addresses in place of the hosts file."""
    if isinstance(state.names, Unknown):
        return state
    update: dict[str, object] = {"servers": ("192.0.2.1",)}
    files = dict(state.files)
    if state.host == ODD:
        path = "/etc/nsswitch.conf"
        content = b"passwd: files\nhosts: myhostname files dns # site\n"
        files[path] = File(path=path, real_path=path, exists=True, content=content, mode=0o600)
        peers = {**state.names.peers, state.host: ("fd00::1", "192.0.2.9")}
        update |= {"order": ("myhostname", "files", "dns"), "peers": peers}
    return state.model_copy(
        update={
            "names": state.names.model_copy(update=update),
            "files": files,
            "costs": {**state.costs, "names": 30.0},
        }
    )


@hosts_file.breaks
def root_alone_reads_the_hosts_file(state: HostState) -> HostState:
    """Have a hosts file that only root can read."""
    file = state.file("/etc/hosts")
    if isinstance(file, Unknown):
        return state
    closed = file.model_copy(update={"mode": 0o600})
    return state.model_copy(update={"files": {**state.files, "/etc/hosts": closed}})


# ---- ways to peers

PEERS = ("10.214.4.11", "10.214.4.12", "10.214.4.13")
MAIN = PolicyRule(
    priority=32766, source="all", destination="all", inverted=False, conditions=(), action="lookup",
    table="main", suppress=-1, plain=True, text="from all lookup main priority 32766",
)  # fmt: skip


def own_address(state: HostState) -> str:
    """Return the cluster address of a recorded host."""
    return f"10.214.4.{10 + int(state.host.removeprefix('gpu0'))}"


@peer_routes.breaks
def routes_lose_peers(state: HostState) -> HostState:
    """Have a route and a rule that lose a peer each, and none of the cluster's own network."""
    first, second = (peer for peer in PEERS if peer != own_address(state))
    routes = (f"unreachable {first} proto boot", f"{second} dev lo proto boot scope link")
    rules = (f"from all to {second} prohibit priority 90",)
    routing = Routing(
        routes=in_text_order(route_of(text.split()) for text in routes),
        rules=(*(rule_of(text.split()) for text in rules), MAIN),
        neighbours=(),
        ipsec=(),
    )
    return state.model_copy(update={"routing": routing})


@neighbours.breaks
def a_hardware_address_is_wrong(state: HostState) -> HostState:
    """Have a fixed entry for a peer that is not the peer's, and an interface that answers nobody."""
    if not isinstance(state.network, Network) or not isinstance(state.routing, Routing):
        return state
    own = own_address(state)
    first = next(peer for peer in reversed(PEERS) if peer != own)
    number = own.rpartition(".")[2]
    interfaces = tuple(
        i.model_copy(update={"arp": False, "mac": f"02:00:00:00:00:{number}"})
        if own in i.ipv4
        else i
        for i in state.network.interfaces
    )
    carrier = state.network.carrier_of(own)
    entry = Neighbour(
        address=first,
        mac="02:00:00:00:00:99",
        interface=carrier.name if carrier else "",
        state="PERMANENT",
    )
    network = state.network.model_copy(update={"interfaces": interfaces})
    routing = state.routing.model_copy(update={"neighbours": (entry,)})
    return state.model_copy(update={"network": network, "routing": routing})


@ipsec.breaks
def a_policy_blocks(state: HostState) -> HostState:
    """Have a policy of IPsec that blocks what comes from a peer."""
    if not isinstance(state.routing, Routing):
        return state
    own = own_address(state)
    first = next(peer for peer in reversed(PEERS) if peer != own)
    policy = policy_of(f"src {first}/32 dst {own}/32 dir in action block priority 0 ptype main")
    routing = state.routing.model_copy(update={"ipsec": (policy,)})
    return state.model_copy(update={"routing": routing})


@traffic_control.breaks
def a_discipline_loses_packets(state: HostState) -> HostState:
    """Have the discipline blackhole on the cluster interface."""
    if not isinstance(state.network, Network):
        return state
    carrier = state.network.carrier_of(own_address(state))
    if carrier is None:
        return state
    text = f"qdisc blackhole 8010: dev {carrier.name} root"
    discipline = Discipline(interface=carrier.name, kind="blackhole", place="root", text=text)
    return state.model_copy(update={"queueing": Queueing(disciplines=(discipline,), filters=())})
