"""What the recorded answers of real hosts tell, group by group."""

from __future__ import annotations

from typing import TypeVar

import pytest

from remedy.probe import (
    HostState,
    Limit,
    ProbeRequest,
    Sysctls,
    SysctlSetting,
    differing,
    fingerprint,
)
from remedy.probe.names import NOT_ASKED
from remedy.probe.request import mark
from remedy.probe.session import UNLIMITED
from remedy.values import Fact, Unknown
from tests.unit.probe_data import NONCE, RECORDED, parse, recorded, replaced, state

T = TypeVar("T")


def known(fact: Fact[T]) -> T:
    assert not isinstance(fact, Unknown), fact
    return fact


@pytest.mark.parametrize("name", RECORDED)
def test_everything_is_known_of_a_healthy_host_as_root(name: str) -> None:
    found = state(name)
    assert found.root
    groups = [
        group for group in HostState.model_fields if isinstance(getattr(found, group), Unknown)
    ]
    assert groups == []


def test_identity() -> None:
    identity = known(state("lab-idle").identity)
    assert (identity.static_name, identity.transient_name) == ("node", "node")
    assert (identity.os_id, identity.virtualization) == ("debian", "systemd-nspawn")
    assert len(identity.machine_id) == 32
    assert len(identity.boot_id) == 36
    clock = known(state("lab-idle").clock)
    assert 0 <= clock.epoch_ns / 1e9 - identity.booted_at < 3600


def getent(*answers: tuple[str, str, tuple[str, ...]]) -> str:
    """What getent says of names: the mark of each, its canonical name, its addresses."""
    lines = []
    for end, title, addresses in answers:
        for address, name in ((a, title if a == addresses[0] else "") for a in addresses):
            lines += [
                f"{address:<15} STREAM {name}",
                f"{address:<15} DGRAM  ",
                f"{address:<15} RAW",
            ]
        lines += [f"{end:<15} STREAM {end}", f"{end:<15} DGRAM  ", f"{end:<15} RAW    "]
    return "\n".join(lines) + "\n"


def test_names() -> None:
    names = known(state("lab-idle").names)
    assert names.local == ("127.0.1.1",)
    assert names.peers == {"gpu01": (), "gpu02": (), "gpu03": ()}
    assert names.order == ("files", "dns")


def test_a_name_that_was_not_asked_is_missing_and_not_empty() -> None:
    answer = getent(
        (mark(0), "node", ("127.0.1.1",)),
        (mark(3), "gpu03.example", ("10.0.0.3", "10.1.0.3", "10.0.0.3")),
        (mark(1), "", ()),
    )
    names = known(
        parse(replaced(recorded("lab-idle"), "names", answer, "timeout", "not all")).names
    )
    assert names.peers == {"gpu03": ("10.0.0.3", "10.1.0.3"), "gpu01": ()}
    assert names.local == ("127.0.1.1",)


def test_the_own_name_that_could_not_be_asked_is_told_apart() -> None:
    names = known(parse(replaced(recorded("lab-idle"), "names", getent((mark(1), "", ())))).names)
    assert names.local == NOT_ASKED


@pytest.mark.parametrize(
    "answer",
    [
        getent((mark(1), "a", ("1.1.1.1",)), (mark(1), "", ())),
        getent((mark(9), "", ())),
        getent((mark(1), "a", (mark(1),)), (mark(1), mark(1), (mark(1),))),
    ],
)
def test_a_hosts_file_that_plays_with_the_marks_is_unknown(answer: str) -> None:
    assert isinstance(parse(replaced(recorded("lab-idle"), "names", answer)).names, Unknown)


def test_network() -> None:
    network = known(state("lab-idle").network)
    eth0 = network.interface("eth0")
    assert eth0 is not None
    assert (eth0.kind, eth0.up, eth0.running, eth0.mtu) == ("veth", True, True, 1500)
    assert len(eth0.ipv4) == 1
    assert network.carrier_of(eth0.ipv4[0]) is eth0
    lo = network.interface("lo")
    assert lo is not None
    assert (lo.kind, lo.ipv4) == ("loopback", ("127.0.0.1",))
    assert any(route.interface == "eth0" for route in network.routes)


def test_sysctls_live_and_persisted() -> None:
    sysctls = known(state("lab-busy").sysctls)
    assert sysctls.live["net.ipv4.ip_local_port_range"] == "32768 60999"
    assert sysctls.live["net.ipv4.conf.eth0.rp_filter"] in ("0", "1", "2")
    winner = sysctls.winner("net.ipv4.ip_local_port_range")
    assert winner is not None
    assert (winner.value, winner.path, winner.line) == (
        "50000 51000",
        "/etc/sysctl.d/99-zz.conf",
        1,
    )
    assert sysctls.unread == ("/etc/sysctl.d/80-dangling.conf",)
    assert not [
        setting for setting in sysctls.persisted if setting.path.endswith("50-pid-max.conf")
    ]


def test_the_last_line_of_a_key_wins_and_an_exact_one_over_patterns() -> None:
    def line(key: str, value: str) -> SysctlSetting:
        return SysctlSetting(key=key, value=value, path="/etc/sysctl.d/a.conf", line=1)

    lines = (line("a.*.x", "1"), line("a.b.x", "2"), line("a.*.x", "3"), line("a.b.x", "4"))
    sysctls = Sysctls(live={}, persisted=lines, unread=(), excluded=frozenset({"a.d.x"}))
    keys = ("a.b.x", "a.c.x", "a.d.x", "b")
    assert {key: found.value for key, found in sysctls.winners(keys).items()} == {
        "a.b.x": "4",
        "a.c.x": "3",
    }
    assert [sysctls.winner(key) for key in keys] == [lines[3], lines[2], None, None]
    alone = sysctls.model_copy(update={"persisted": lines[1:2]})
    assert alone.winners(keys) == {"a.b.x": lines[1]}


def test_limits_of_the_session() -> None:
    limits = known(state("lab-idle").limits)
    assert limits["nofile"].soft == 1024
    assert limits["stack"] == Limit(8 * 1024 * 1024, UNLIMITED)
    assert limits["memlock"].soft > 0


def test_the_environment_has_no_secret() -> None:
    environment = known(state("lab-busy").environment)
    assert environment["HF_TOKEN"] == "<redacted>"
    assert environment["http_proxy"] == "http://<redacted>@proxy:3128"
    assert environment["HOME"] == "/root"


def test_services() -> None:
    units = known(state("lab-firewalld").units)
    assert (units["ssh.service"].running, units["ssh.service"].enabled) == (True, "enabled")
    assert (units["firewalld.service"].running, units["firewalld.service"].enabled) == (
        True,
        "disabled",
    )
    assert units["slurmd.service"].load == "not-found"
    assert units["systemd-timesyncd.service"].enabled == "masked"
    assert known(state("lab-idle").units)["firewalld.service"].active == "inactive"


def test_limits_of_services_are_read() -> None:
    text = (
        "unit docker.service loaded active\nunit x.service masked inactive\n"
        "wanted /usr/lib/systemd/system/a.wants/docker.service\n"
        "wanted /etc/systemd/system/b.wants/docker.service\n"
        "main docker.service 7\n"
        "/proc/7/limits:Max locked memory         unlimited            unlimited            bytes     \n"
        "/proc/7/limits:Max open files            1024                 1048576              files     \n"
        "/proc/8/limits:Max open files            1                    1                    files     \n"
    )
    units = known(parse(replaced(recorded("lab-idle"), "units", text)).units)
    docker = units["docker.service"]
    assert (docker.enabled, docker.memlock, docker.nofile) == ("enabled", UNLIMITED, 1048576)
    assert (units["x.service"].enabled, units["x.service"].memlock) == ("masked", None)


def test_processes_and_listeners() -> None:
    found = state("lab-busy")
    processes = {process.pid: process for process in known(found.processes)}
    assert processes[1].name == "systemd"
    listener = next(one for one in known(found.listeners) if one.port == 29500)
    (pid,) = listener.holders
    orphan = processes[pid]
    assert (orphan.parent, orphan.uid, orphan.name) == (1, 0, "python3")
    assert orphan.cgroup is not None
    assert orphan.cgroup.endswith(".scope")
    assert orphan.arguments is not None
    assert orphan.arguments[:2] == ("python3", "-c")
    assert not [
        process
        for process in processes.values()
        if process.arguments and "base64" in process.arguments[0]
    ]


def test_secrets_on_a_command_line_are_not_sent() -> None:
    assert b"canary-one" not in recorded("lab-busy")
    assert b"canary-two" not in recorded("lab-busy")
    assert b"--api-key=" in recorded("lab-busy")


SS = "LISTEN 0 128 [::1]:29500 [::]:* uid:1000 ino:5 sk:1 <->\n"


@pytest.mark.parametrize(
    ("lines", "holders"),
    [
        ("/proc/1/fd:socket:[5]\n/proc/9/fd:socket:[5]\n/proc/3/fd:socket:[6]\n", (1, 9)),
        ("/proc/7/fd:\nsocket:[6]\n/proc/8/fd:\nsocket:[5]\n", (8,)),  # ls of busybox
        ("socket:[5]\n/proc/x/fd:socket:[5]\n/proc/1/fd:socket:[5] socket:[5]\n", ()),
        ("", ()),
        ('users:(("systemd",pid=1,fd=3))', (1,)),
        ('users:(("evil",pid=1,fd=3))', ()),
        ('users:(("",pid=1,fd=9),(",pid=1,fd=3))', ()),
    ],
)
def test_who_listens_is_known_by_the_socket(lines: str, holders: tuple[int, ...]) -> None:
    text = SS.replace("uid", f"{lines} uid") if lines.startswith("users") else SS + lines
    (listener,) = known(parse(replaced(recorded("lab-busy"), "listeners", text)).listeners)
    assert listener == ("::1", 29500, holders)


def test_who_listens_is_known_where_ss_was_not_asked_for_inodes() -> None:
    text = (
        'LISTEN 0 128 0.0.0.0:22 0.0.0.0:* users:(("systemd",pid=1,fd=3))\n'
        "LISTEN 0 128 0.0.0.0:23 0.0.0.0:*\n"
    )
    found = known(parse(replaced(recorded("lab-busy"), "listeners", text)).listeners)
    assert [(one.port, one.holders) for one in found] == [(22, (1,)), (23, ())]


ANY6 = "0" * 32


def test_listeners_of_the_kernels_table() -> None:
    lines = (
        "/proc/net/tcp:  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"
        "/proc/net/tcp:   0: 0100007F:733C 00000000:0000 0A 0:0 00:0 0  1000        0 5 1 x\n"
        "/proc/net/tcp:1001: 00000000:0017 00000000:0000 0A 0:0 00:0 0     0        0 8 1 x\n"
        "/proc/net/tcp:   1: 0100007F:0016 0100007F:9C40 01 0:0 00:0 0     0        0 6 1 x\n"
        f"/proc/net/tcp6:   0: {ANY6}:0016 0:0 0A 0:0 00:0 0     0        0 7 1 x\n"
        f"/proc/net/tcp6:   1: {ANY6}:0017 0:0 0A 0:0 00:0 0     0        0 9 1 x\n"
        "/proc/net/tcp6:   2: B80D0120000000000000000001000000:0018 0:0 0A 0:0 00:0 0 0 0 10 1 x\n"
        "/proc/net/tcp6:   3: 0000000000000000FFFF00000100007F:0019 0:0 0A 0:0 00:0 0 0 0 11 1 x\n"
        "/proc/4/fd:socket:[7]\n"
    )
    found = known(parse(replaced(recorded("lab-idle"), "listeners", lines)).listeners)
    assert found == (
        ("127.0.0.1", 29500, ()),
        ("0.0.0.0", 23, ()),  # noqa: S104
        ("*", 22, (4,)),
        ("::", 23, ()),
        ("2001:db8::1", 24, ()),
        ("127.0.0.1", 25, ()),
    )


def test_shared_memory_and_who_uses_it() -> None:
    memory = known(state("lab-busy").shared_memory)
    files = {file.path.removeprefix("/dev/shm/"): file for file in memory.files}
    holders = known(memory.holders)
    assert set(files) == {"nccl-abc123", "torch_1_2_3", "sp ace"}
    assert len(holders[files["nccl-abc123"].inode]) == 1
    assert len(holders[files["torch_1_2_3"].inode]) == 1
    assert files["sp ace"].inode not in holders
    assert memory.size > memory.used > 0


def test_who_uses_shared_memory_is_unknown_without_root() -> None:
    body = recorded("lab-busy").replace(
        b"/proc/self/status:Uid:\t0\t0", b"/proc/self/status:Uid:\t1000\t1000"
    )
    found = parse(body)
    assert not found.root
    assert isinstance(known(found.shared_memory).holders, Unknown)


def test_system_v_objects() -> None:
    ipc = known(state("lab-busy").ipc)
    (segment,), (semaphores,), (queue,) = ipc.segments, ipc.semaphores, ipc.queues
    assert (segment.size, segment.attached, segment.mode, segment.creator_started_at) == (
        1000,
        0,
        0o644,
        None,
    )
    assert semaphores.size == 3
    assert queue.messages == 0


def test_a_living_creator_is_seen() -> None:
    head = "key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime rss swap"
    row = "0 7 1600 4096 1 2147483647 0 0 0 0 0 0 0 1700000000 0 0"
    body = recorded("lab-busy") + b""
    start, end = body.index(b"/proc/sysvipc/shm:"), body.index(b"/proc/sysvipc/sem:")
    table = f"/proc/sysvipc/shm:{head}\n/proc/sysvipc/shm:{row}\n".encode()
    (segment,) = known(parse(body[:start] + table + body[end:]).ipc).segments
    assert (segment.id, segment.mode, segment.marked, segment.last_started_at) == (
        7,
        0o600,
        True,
        None,
    )
    assert segment.creator_started_at


def test_room_on_file_systems() -> None:
    space = known(state("lab-idle").space)
    assert space["/"].size >= space["/"].used > 0
    assert space["/dev/shm"].kind == "tmpfs"


def test_software_of_any_layout() -> None:
    text = (
        "interpreter /opt/venv/bin/python\ninterpreter /usr/bin/python3\n"
        "package /opt/venv/lib/python3.12/site-packages/torch-2.9.0+cu128.dist-info\n"
        "package /opt/venv/lib/python3.12/site-packages/nvidia_nccl_cu12-2.27.5.dist-info\n"
        "conda /opt/conda/conda-meta/pytorch-2.5.1-py3.12_cuda12.4_0.json\n"
        "library /usr/lib/x86_64-linux-gnu/libnccl.so.2.27.5\n"
        "library /usr/lib64/libcuda.so.580.65.06\nlibrary /usr/lib64/libcuda.so.1.x\n"
        "library /usr/lib64/openmpi/lib/libmpi.so.40.30.4\nlibrary /usr/lib/libmpi.so.12.1.0.bak\n"
        "/opt/venv/lib/python3.12/site-packages/torch/version.py:cuda: Optional[str] = '12.8'\n"
        "/opt/b/lib/python3.12/site-packages/torch/version.py:cuda: Optional[str] = None\n"
    )
    software = known(parse(replaced(recorded("lab-idle"), "software", text)).software)
    site = "/opt/venv/lib/python3.12/site-packages"
    assert software.versions("torch", "pytorch") == (
        ("torch", "2.9.0+cu128", site),
        ("pytorch", "2.5.1", "/opt/conda/conda-meta"),
    )
    assert software.cuda == ((site, "12.8"), ("/opt/b/lib/python3.12/site-packages", ""))
    assert software.nccl == (("/usr/lib/x86_64-linux-gnu/libnccl.so.2.27.5", "2.27.5"),)
    assert software.libcuda == (("/usr/lib64/libcuda.so.580.65.06", "580.65.06"),)
    assert software.libmpi == (("/usr/lib64/openmpi/lib/libmpi.so.40.30.4", "40.30.4"),)


def test_ipv6_default_route() -> None:
    zero = "0" * 32
    line = (
        f"/proc/net/ipv6_route:{zero} 00 {zero} 00 fd000000000000000000000000000001 00000400 00000001 00000000"
        " 00000003     eth0\n"
    )
    body = recorded("lab-idle")
    at = body.index(b"/proc/net/ipv6_route:")
    network = known(parse(body[:at] + line.encode() + body[at:]).network)
    assert [(r.gateway, r.metric) for r in network.routes if r.metric] == [("fd00::1", 1024)]


def test_the_fingerprint_is_of_what_matters() -> None:
    body = recorded("lab-busy")
    same = fingerprint(state("lab-busy"))
    later = replaced(body, "clock", "1900000000.000000000\n")
    later = replaced(later, "processes", "")
    later = replaced(later, "process-details", "", "none", "")
    later = replaced(later, "listeners", "")
    later = replaced(later, "shm", "", "none", "no file")
    assert fingerprint(parse(later)) == same
    assert differing(state("lab-busy"), parse(later)) == ()
    for old, new, group in (
        (b"/etc/environment:HF_TOKEN", b"/etc/environment:HF_TOKEM", "files"),
        (b"/ip_local_port_range:32768", b"/ip_local_port_range:32769", "sysctls"),
        (b'"mtu":1500', b'"mtu":9000', "network"),
        (b"/boot_id:", b"/boot_id:f", "identity"),
    ):
        assert old in body
        changed = parse(body.replace(old, new))
        assert fingerprint(changed) != same, old
        assert differing(state("lab-busy"), changed) == (group,)
    assert fingerprint(parse(replaced(body, "ip", "", "timeout", ""))) != same
    assert fingerprint(state("lab-idle")) != same


def test_an_answer_of_one_section_is_an_answer() -> None:
    body = recorded("lab-idle")
    end = body.index(b"\n", body.index(f"@{NONCE} end clock".encode())) + 1
    found = parse(body[:end], ProbeRequest(nonce=NONCE))
    assert not isinstance(found.clock, Unknown)
    assert not found.root
    unknown = [
        group for group in HostState.model_fields if isinstance(getattr(found, group), Unknown)
    ]
    assert len(unknown) >= 18
