"""Tables of names that decide, tried name by name: a kind or a program that goes missing is missed here."""

from __future__ import annotations

from dataclasses import replace

import pytest

from remedy.deploys import _frameworks, _interfaces, _leftovers
from remedy.deploys._places import placed_variables
from remedy.deploys._sizes import GIB
from remedy.deploys.dev_shm import DevShmSpec
from remedy.deploys.environment import EnvironmentSpec
from remedy.deploys.ipv6 import Ipv6Spec, target_now
from remedy.deploys.launching import proxy_variables
from remedy.deploys.shm_leftovers import maker
from remedy.plan import FindingKind
from remedy.probe import (
    Discipline,
    File,
    HostState,
    Identity,
    Interface,
    LoginSession,
    Mention,
    Network,
    Queueing,
)
from remedy.values import Unknown
from tests.unit.build import host_state, record
from tests.unit.deploys import (
    places_bench,
    resolution_bench,
    ways_bench,
)
from tests.unit.deploys.memory_bench import memory_host, plan_of
from tests.unit.deploys.report_bench import hosts, software

# ---- links and disciplines


@pytest.mark.parametrize(
    "kind",
    [
        "loopback",
        "bridge",
        "veth",
        "dummy",
        "tun",
        "vxlan",
        "geneve",
        "wireguard",
        "ifb",
        "virtual",
    ],
)
def test_links_of_this_kind_lead_nowhere(kind: str) -> None:
    link = record(Interface, name="x", kind=kind)
    assert _interfaces.internal(link, record(Network, interfaces=(link,)))


@pytest.mark.parametrize(
    ("kind", "kinds"),
    [
        *(
            (kind, [])
            for kind in (
                "loopback", "tun", "wireguard", "ppp", "dummy", "gre", "ipip", "sit", "vti", "xfrm", "vrf",
            )
        ),
        ("physical", ["drift"]),
        ("bond", ["drift"]),
        ("vlan", ["drift"]),
    ],
)  # fmt: skip
def test_only_a_link_with_neighbours_has_to_answer(kind: str, kinds: list[str]) -> None:
    state = ways_bench.host("a", "10.0.0.1", ways_bench.routing(ways_bench.LINK), arp=False)
    assert isinstance(state.network, Network)
    links = tuple(i.model_copy(update={"kind": kind}) for i in state.network.interfaces)
    network = state.network.model_copy(update={"interfaces": links})
    plan = ways_bench.plan("neighbours", state.model_copy(update={"network": network}))
    assert [kind for kind, _ in ways_bench.said(plan)] == kinds


USUAL = (
    "noqueue", "noop", "pfifo_fast", "pfifo", "bfifo", "mq", "mqprio", "fq", "fq_codel", "codel", "fq_pie",
    "pie", "sfq", "prio", "multiq", "ingress", "clsact",
)  # fmt: skip


@pytest.mark.parametrize("kind", USUAL)
def test_a_usual_discipline_loses_nothing(kind: str) -> None:
    for root in ("root", "parent 1:1"):
        one = Discipline(
            interface="eth0", kind=kind, place=root, text=f"qdisc {kind} 0: dev eth0 {root}"
        )
        queueing = Queueing(disciplines=(one,), filters=())
        state = ways_bench.host("a", "10.0.0.1", queueing=queueing)
        assert ways_bench.said(ways_bench.plan("traffic_control", state)) == []
    blind = ways_bench.host("a", "10.0.0.1")
    assert isinstance(blind.network, Network)
    links = tuple(i.model_copy(update={"discipline": kind}) for i in blind.network.interfaces)
    network = blind.network.model_copy(update={"interfaces": links})
    blind = blind.model_copy(update={"network": network, "queueing": Unknown(reason="no tc")})
    ((word, _),) = ways_bench.said(ways_bench.plan("traffic_control", blind))
    assert word == "report"


@pytest.mark.parametrize(
    ("text", "rate"), [("10bit", 1e1), ("2Kbit", 2e3), ("3Mbit", 3e6), ("4mbit", 4e6), ("999Mbit", 999e6)]
)  # fmt: skip
def test_a_rate_below_a_gigabit_is_named(text: str, rate: float) -> None:
    one = Discipline(
        interface="eth0",
        kind="tbf",
        place="root",
        text=f"qdisc tbf 1: dev eth0 root rate {text} burst 1",
    )
    queueing = Queueing(disciplines=(one,), filters=())
    plan = ways_bench.plan("traffic_control", ways_bench.host("a", "10.0.0.1", queueing=queueing))
    assert f"to {rate / 1e6:g} Mbit/s" in ways_bench.said(plan)[0][1]
    for enough in ("1Gbit", "1000Mbit", "1Tbit", "1000000Kbit"):
        fast = one.model_copy(update={"text": one.text.replace(text, enough)})
        state = ways_bench.host("a", "10.0.0.1", queueing=Queueing(disciplines=(fast,), filters=()))
        assert ways_bench.said(ways_bench.plan("traffic_control", state)) == []


# ---- names


@pytest.mark.parametrize(
    ("service", "is_changed"),
    [
        *((word, False) for word in ("resolve", "db", "mymachines", "libvirt", "libvirt_guest")),
        *((word, False) for word in ("mdns4_minimal", "mdns6_minimal", "mdns_minimal")),
        *((word, True) for word in ("dns", "myhostname", "ldap", "mdns4")),
    ],
)
def test_what_is_asked_before_the_hosts_file_matters_where_it_can_answer(
    service: str, is_changed: bool
) -> None:
    state = resolution_bench.two(
        {"b": ("10.9.9.9",)}, order=f"{service} files", hosts=b"127.0.0.1 localhost\n"
    )
    order = resolution_bench.written(resolution_bench.plan_of(state), resolution_bench.NSSWITCH)
    assert (order is not None) is is_changed


@pytest.mark.parametrize("path", ["/etc/nsswitch.conf", "/etc/resolv.conf", "/etc/host.conf"])
def test_every_user_has_to_read_what_the_resolver_reads(path: str) -> None:
    fleet = resolution_bench.two(resolution_bench.RIGHT)
    state = fleet.states["a"]
    closed = File(path=path, real_path=path, exists=True, content=b"hosts: files\n", mode=0o600)
    state = state.model_copy(update={"files": {**state.files, path: closed}})
    whole = replace(fleet, states={**fleet.states, "a": state})
    plan = resolution_bench.plan_of(whole, "resolver")
    assert [change.title for change in plan.for_host("a")] == [f"let every user read {path}"]


# ---- places of variables

LOGIN = "login shells, and batch scripts that start one"
EVERY = "every shell of this kind, commands over ssh too"
SHELLS = "shells: interactive ones, and bash over ssh where nothing before it returns"
SSH = "commands over ssh, and mpirun over ssh"
SERVICES = "every service of systemd (slurmd, kubelet, ray)"
USER_SERVICES = "services of the user's systemd, and graphical sessions"
GPU_CONTAINERS = "new containers with GPUs"
EXPORT, SETENV, PLAIN = "export X_Y=1", "setenv X_Y 1", "X_Y=1"
PLACES = [
    ("/etc/profile", EXPORT, LOGIN),
    ("/etc/profile.local", EXPORT, LOGIN),
    ("/etc/profile.d/a.csh", SETENV, LOGIN),
    ("/etc/profile.d/a.sh", EXPORT, LOGIN),
    ("/root/.bash_profile", EXPORT, LOGIN),
    ("/root/.bash_login", EXPORT, LOGIN),
    ("/root/.profile", EXPORT, LOGIN),
    ("/etc/bash.bashrc.local", EXPORT, SHELLS),
    ("/etc/bashrc", EXPORT, SHELLS),
    ("/root/.bashrc", EXPORT, SHELLS),
    ("/root/.bash_aliases", EXPORT, SHELLS),
    ("/etc/zsh/zshenv", EXPORT, EVERY),
    ("/etc/zsh/zprofile", EXPORT, LOGIN),
    ("/root/.zlogin", EXPORT, LOGIN),
    ("/root/.zshrc", EXPORT, SHELLS),
    ("/etc/csh.login", SETENV, LOGIN),
    ("/root/.login", SETENV, LOGIN),
    ("/root/.tcshrc", SETENV, EVERY),
    ("/etc/fish/config.fish", "set -gx X_Y 1", EVERY),
    ("/etc/security/pam_env.conf", "X_Y DEFAULT=1", SSH),
    ("/root/.pam_environment", "X_Y DEFAULT=1", SSH),
    ("/root/.pam_environment", PLAIN, SSH),
    ("/etc/default/locale", PLAIN, SSH),
    ("/etc/ssh/sshrc", EXPORT, SSH),
    ("/root/.ssh/environment", PLAIN, SSH),
    ("/root/.ssh/authorized_keys", 'environment="X_Y=1" ssh-ed25519 A', SSH),
    ("/root/.ssh/rc", EXPORT, SSH),
    ("/etc/crontab", PLAIN, "jobs of cron"),
    ("/etc/cron.d/a", PLAIN, "jobs of cron"),
    ("/root/.config/environment.d/a.conf", PLAIN, USER_SERVICES),
    ("/etc/systemd/system.conf", "DefaultEnvironment=X_Y=1", SERVICES),
    ("/etc/systemd/system.conf.d/a.conf", "DefaultEnvironment=X_Y=1", SERVICES),
    ("/etc/systemd/user.conf", "DefaultEnvironment=X_Y=1", USER_SERVICES),
    ("/etc/systemd/user.conf.d/a.conf", "DefaultEnvironment=X_Y=1", USER_SERVICES),
    ("/etc/supervisord.conf", 'environment=X_Y="1"', "programs of supervisord"),
    ("/etc/containers/containers.conf.d/a.conf", 'env = ["X_Y=1"]', "every new container of podman"),
    ("/etc/nvidia-container-runtime/config.toml", 'environment = ["X_Y=1"]', GPU_CONTAINERS),
    ("/etc/cdi/a.json", '"env": ["X_Y=1"]', GPU_CONTAINERS),
    ("/var/run/cdi/a.yaml", "  - X_Y=1", GPU_CONTAINERS),
    ("/opt/c/etc/conda/activate.d/a.sh", EXPORT, "jobs in that conda environment"),
    ("/opt/c/conda-meta/state", '{"env_vars": {"X_Y": "1"}}', "jobs in that conda environment"),
    ("/opt/venv/bin/activate", EXPORT, "jobs in that virtual environment"),
    ("/etc/modulefiles/a", "setenv X_Y 1", "jobs that load the module"),
    ("/root/privatemodules/a", "setenv X_Y 1", "jobs that load the module"),
    ("/etc/slurm/TaskProlog.sh", "echo export X_Y=1", "tasks of Slurm"),
    ("/etc/slurm-llnl/prolog", "echo export X_Y=1", "tasks of Slurm"),
    ("/etc/enroot/environ.d/a.env", PLAIN, "containers of enroot, and of Slurm by pyxis"),
    ("/var/spool/pbs/pbs_environment", PLAIN, "jobs of PBS"),
    ("/etc/default/ray", PLAIN, "ray and what it starts"),
    ("/etc/sysconfig/ray", PLAIN, "ray and what it starts"),
    ("/etc/systemd/system/ray.service", "Environment=X_Y=1", "ray and what it starts"),
    ("/root/x/systemd/user/ray.service.d/a.conf", "Environment=X_Y=1", "user service ray and what it starts"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "text", "reach"), PLACES)
def test_who_gets_what_a_file_sets(path: str, text: str, reach: str) -> None:
    state = record(HostState, host="a").model_copy(
        update={"mentions": (Mention(path=path, line=3, text=text),)}
    )
    (variable,) = placed_variables(state)
    assert (variable.path, variable.line) == (path, 3)
    assert (variable.name, variable.value, variable.place.reach) == ("X_Y", "1", reach)


def inert(*lines: tuple[str, str]) -> list[str]:
    mentions = tuple(Mention(path=path, line=1, text=text) for path, text in lines)
    state = record(HostState, host="a").model_copy(update={"mentions": mentions})
    return [variable.place.inert for variable in placed_variables(state)]


@pytest.mark.parametrize("name", ["docker", "containerd", "crio", "podman"])
def test_no_container_gets_what_its_daemon_is_started_with(name: str) -> None:
    reason = "no container gets what its daemon has"
    path = f"/etc/systemd/system/{name}.service"
    assert inert((path, "Environment=X=1"), (f"{path}.d/a.conf", "Environment=X=1")) == [reason] * 2
    assert inert(("/etc/systemd/system/slurmd.service", "Environment=X=1")) == [""]


def test_the_session_file_is_not_read_a_second_time_by_another_name() -> None:
    unit = ("/etc/systemd/system/ray.service", "EnvironmentFile=/etc/environment")
    pam = ("/etc/pam.d/sshd", "session required pam_env.so envfile=/etc/environment")
    shell = ("/etc/profile", ". /etc/environment")
    for line in (unit, pam, shell):
        assert inert(line, ("/etc/environment", PLAIN)) == []
    link = "/usr/lib/environment.d/99-environment.conf"
    assert inert((link, PLAIN)) == []


@pytest.mark.parametrize(
    "name", ["PATH", "HOME", "SHELL", "USER", "LOGNAME", "LD_PRELOAD", "IFS", "ENV", "BASH_ENV"]
)
def test_variables_that_decide_who_can_log_in_are_not_set(name: str) -> None:
    with pytest.raises(ValueError, match="decides who can log in"):
        EnvironmentSpec(variables={name: "x"})


@pytest.mark.parametrize(
    ("name", "label", "effect"),
    [
        ("NCCL_P2P_DISABLE", "p2p-acs-iommu", "no direct traffic between GPUs"),
        ("NCCL_SHM_DISABLE", "shm-too-small", "no shared memory between GPUs of a host"),
        ("NCCL_IB_DISABLE", "ib-misconfig", "sockets instead of RDMA"),
        ("NCCL_NET_GDR_LEVEL", "gdr-peermem", "a fixed limit for GPUDirect"),
        ("NCCL_ALGO", "env-not-propagated", "a fixed algorithm instead of the tuned choice"),
        ("NCCL_PROTO", "env-not-propagated", "a fixed protocol instead of the tuned choice"),
        ("CUDA_LAUNCH_BLOCKING", "env-not-propagated", "every kernel is waited for"),
    ],
)
def test_a_switch_for_finding_faults_hides_a_cause(name: str, label: str, effect: str) -> None:
    line = ("/root/.bashrc", f"export {name}=1")
    (finding,) = places_bench.findings(places_bench.host(line), FindingKind.REPORT)
    assert finding.label == label
    assert finding.title == (f"/root/.bashrc sets {name}=1, a switch for finding faults: {effect}")


@pytest.mark.parametrize("name", ["http_proxy", "https_proxy", "all_proxy", "grpc_proxy"])
def test_variables_that_name_a_proxy(name: str) -> None:
    for spelt in (name, name.upper()):
        state = host_state("a", "10.0.0.1").model_copy(update={"environment": {spelt: "http://p"}})
        assert proxy_variables(state)[0] == [(spelt, "http://p")]


# ---- memory and leftovers


@pytest.mark.parametrize(
    ("kind", "is_named"),
    [
        *((kind, True) for kind in (
            "none", "kvm", "qemu", "amazon", "vmware", "microsoft", "xen", "oracle", "parallels", "google",
            "apple",
        )),
        *((kind, False) for kind in ("lxc", "systemd-nspawn", "wsl", "")),
    ],
)  # fmt: skip
def test_machines_whose_shared_memory_systemd_mounts(kind: str, is_named: bool) -> None:
    """Live it is large enough; half of the memory, at the next boot, is not."""
    state = memory_host(shm=4 * GIB, memory=2 * GIB)
    booted = record(LoginSession, present=frozenset({"/run/systemd/system"}))
    update = {"identity": record(Identity, virtualization=kind), "session": booted}
    state = state.model_copy(update=update)
    titles = [f.title for f in plan_of(state, DevShmSpec())[1].findings]
    expected = "after the next boot, /dev/shm is too small, by /etc/fstab"
    assert titles == ([expected] if is_named else [])
    for group, lost in (
        ("session", record(LoginSession)), ("identity", Unknown(reason="x")), ("kernel", Unknown(reason="x")),
    ):  # fmt: skip
        blind = state.model_copy(update={group: lost})
        assert plan_of(blind, DevShmSpec())[1].findings == ()


@pytest.mark.parametrize(
    ("name", "program"),
    [
        ("nccl-AbCd09", "NCCL"), ("nccl-AbCd0", ""), ("nccl-AbCd09x", ""), ("torch_12_34", "PyTorch"),
        ("torch_12_34_5", "PyTorch"), ("torch_12", ""), ("vader_segment.gpu01.0", "Open MPI"),
        ("sm_segment.gpu01.1.f", "Open MPI"), ("open_mpi.0000", "Open MPI"), ("psm3_shm.4", "PSM3"),
        ("psm3_nic_affinity", "PSM3"), ("sem.psm3_nic_affinity_sem", "PSM3"), ("sem.psm3_shm.4", ""),
        ("ucx_shm_posix_4f1c", "UCX"), ("ucx_shm_posix_xyz", ""), ("nccl-AbCd0 ", ""), ("wave", ""),
    ],
)  # fmt: skip
def test_who_makes_files_of_this_name(name: str, program: str) -> None:
    assert maker(name) == program


@pytest.mark.parametrize(
    ("kind", "marks", "is_shared"),
    [
        *((kind, (), True) for kind in ("docker", "podman", "rkt", "pouch", "container-other")),
        *((kind, (), False) for kind in ("lxc", "kvm", "none", "")),
        ("", ("/.dockerenv",), True),
        ("", ("/run/.containerenv",), True),
        ("docker", ("/.dockerenv", "/run/systemd/system"), False),
    ],
)
def test_containers_that_may_share_their_memory(
    kind: str, marks: tuple[str, ...], is_shared: bool
) -> None:
    state = host_state("a", "10.0.0.1").model_copy(
        update={
            "identity": record(Identity, virtualization=kind),
            "session": record(LoginSession, present=frozenset(marks)),
        }
    )
    assert bool(_leftovers.shared_with(state)) is is_shared


@pytest.mark.parametrize(
    ("uid", "is_service"),
    [
        (0, False), (1, True), (999, True), (1000, False), (61183, False), (61184, True), (65534, True),
        (65535, False),
    ],
)  # fmt: skip
def test_accounts_of_services(uid: int, is_service: bool) -> None:
    assert _leftovers.is_service(uid) is is_service


# ---- interfaces of containers


@pytest.mark.parametrize(
    "name", ["veth1", "docker0", "br-1f", "cni0", "cali1", "flannel.1", "lxcbr0", "podman0"]
)
def test_interfaces_of_containers_keep_their_ipv6(name: str) -> None:
    keys = {n: f"net.ipv6.conf.{n}.disable_ipv6" for n in ("all", "default", "eth0", name)}
    target = target_now(dict.fromkeys(keys.values(), "0"), Ipv6Spec(mode="disable"))
    assert target == {keys[n]: "1" for n in ("all", "default", "eth0")}


@pytest.mark.parametrize(
    ("name", "framework"),
    [
        ("paddlepaddle", "paddle"), ("paddlepaddle_gpu", "paddle"), ("mindspore", "mindspore"),
        ("mindspore_gpu", "mindspore"), ("mindspore_ascend", "mindspore"), ("torch", ""), ("numpy", ""),
    ],
)  # fmt: skip
def test_packages_that_show_which_framework_trains(name: str, framework: str) -> None:
    found = _frameworks.in_use(hosts({**software(**{name: "1"}), "session": record(LoginSession)}))
    assert found == (("torch", framework) if framework else ("torch",))
