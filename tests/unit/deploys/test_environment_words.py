"""What is said of the environment of jobs."""

from __future__ import annotations

from typing import Any

import pytest

from remedy.deploys._environment import label_of
from remedy.deploys.environment import EnvironmentSpec
from remedy.plan import Plan
from remedy.probe import HostState, Mention, ServiceVariable
from remedy.values import Unknown
from tests.unit.deploys import environment_bench
from tests.unit.deploys.environment_bench import ENV, HOME, NCCL, PROFILE, host, port, whole
from tests.unit.deploys.words_bench import Said, Write, planned_for, said, written

HOST = "gpu01"
REST = "programs that run keep the environment they were started with"
EXCEPT = "a switch for finding faults: no direct traffic between GPUs"


def plan(*states: HostState, **settings: Any) -> Plan:
    return planned_for("environment", whole(*states, spec=EnvironmentSpec(**settings)))


def test_what_the_spec_asks_for_is_written() -> None:
    found = plan(host(), variables={"X_A": "1", "X_B": "2"})
    assert said(found, HOST) == [
        Said(
            "drift", "/etc/environment does not set X_A, X_B",
            ("X_A=1: environment.variables of the spec", "X_B=2: environment.variables of the spec"), "",
        ),
        Said("drift", f"{PROFILE} is not what /etc/environment holds for login shells", (), ""),
    ]  # fmt: skip
    assert [write[:5] for write in written(found, HOST)] == [
        ("write /etc/environment", "low", True, REST, ENV),
        (f"write {PROFILE}", "low", True, REST, PROFILE),
    ]


@pytest.mark.parametrize(
    ("settings", "lines"),
    [
        ({"interface": "auto"}, [
            "GLOO_SOCKET_IFNAME=eno2: environment.interface of the spec",
            "TP_SOCKET_IFNAME=eno2: environment.interface of the spec",
        ]),
        ({"interface": "docker0"}, [
            "GLOO_SOCKET_IFNAME=docker0: environment.interface of the spec",
            "TP_SOCKET_IFNAME=docker0: environment.interface of the spec",
        ]),
    ],
)  # fmt: skip
def test_why_an_interface_is_set(settings: dict[str, Any], lines: list[str]) -> None:
    evidence = [line for found in said(plan(host(), **settings), HOST) for line in found.evidence]
    assert [line for line in evidence if not line.startswith("NCCL_")] == lines
    name = settings["interface"].replace("auto", "eno2")
    why = "environment.interface of the spec"
    assert f"NCCL_SOCKET_IFNAME=={name}: {why}" in evidence


def test_why_ports_of_one_kind_are_set() -> None:
    state = host(rdma=(port("mlx5_0", "InfiniBand"), port("mlx5_1", "InfiniBand")))
    evidence = [line for found in said(plan(state, hcas="auto"), HOST) for line in found.evidence]
    assert "NCCL_IB_HCA==mlx5_0:1,mlx5_1:1: the active InfiniBand ports" in evidence


def test_an_interface_that_is_not_there() -> None:
    assert said(plan(host(), interface="eno9"), HOST) == [
        Said(
            "blocked", "environment.interface of the spec is eno9, which this host does not have",
            ("it has eno2, docker0",), 'Give "auto": each host then gets its own.',
        )
    ]  # fmt: skip
    blind = host().model_copy(update={"network": Unknown(reason="no ip")})
    assert said(plan(blind, interface="auto"), HOST)[0][:2] == (
        "unknown", "the interface of the cluster network is not known",
    )  # fmt: skip


def test_a_line_that_says_otherwise() -> None:
    found = plan(host(files={ENV: b"#\nX_A=2\n"}), variables={"X_A": "1"})
    assert said(found, HOST)[0] == Said(
        "drift", "/etc/environment says X_A=2: environment.variables of the spec", ("line 2",), ""
    )
    found = plan(host(files={ENV: b"NCCL_P2P_DISABLE=1\n"}), debug="remove")
    assert said(found, HOST) == [
        Said(
            "drift", "/etc/environment says NCCL_P2P_DISABLE=1: a debug switch: no direct traffic between GPUs",
            ("line 1",), "",
        )
    ]  # fmt: skip


def test_a_block_that_nothing_asks_for() -> None:
    block = environment_bench.block("X_A=1")
    found = plan(host(files={NCCL: block.replace(b"X_A", b"NCCL_A"), PROFILE: b"export X_A=1\n"}))
    assert said(found, HOST) == [
        Said(
            "drift", "remedy's block in /etc/nccl.conf holds what nothing asks for any more", (), ""
        ),
        Said("drift", f"{PROFILE} is not what /etc/environment holds for login shells", (), ""),
    ]
    assert written(found, HOST) == [
        Write(
            f"remove {path}, which holds nothing any more", "low", path == PROFILE, REST, path, None
        )
        for path in (NCCL, PROFILE)
    ]


def test_a_file_that_cannot_be_read() -> None:
    state = host()
    state = state.model_copy(update={"files": {**state.files, ENV: Unknown(reason="no answer")}})
    assert Said("unknown", "could not read /etc/environment", ("no answer",), "") in said(
        plan(state, variables={"X_A": "1"}), HOST
    )
    assert said(plan(state), HOST) == []


SHELL = "/etc/profile.d/x.sh"
BEFORE = "it counts before what remedy writes."


def line(path: str, text: str) -> tuple[Mention, ...]:
    return (Mention(path=path, line=7, text=text),)


@pytest.mark.parametrize(
    ("state", "settings", "expected"),
    [
        (host(mentions=line(SHELL, "export X_A=2")), {"variables": {"X_A": "1"}}, Said(
            "blocked", f"{SHELL} sets X_A=2: environment.variables of the spec requires 1",
            (f"{SHELL}:7: X_A=2", "who gets it: login shells, and batch scripts that start one"),
            f"Correct or remove line 7 of {SHELL}: {BEFORE}",
        )),
        (host(files={HOME: b"NCCL_X=2\n"}), {"variables": {"NCCL_X": "1"}}, Said(
            "blocked", f"{HOME} sets NCCL_X=2: environment.variables of the spec requires 1",
            (f"{HOME}:1: NCCL_X=2",),
            f"Correct or remove line 1 of {HOME}: {BEFORE} Or set environment.user_files: true.",
        )),
        (host(environment={"X_A": "2"}), {"variables": {"X_A": "1"}}, Said(
            "blocked", "sessions over ssh have X_A=2: environment.variables of the spec requires 1",
            ("no file that the probe reads sets it",),
            "Check the user's shell start-up files, PAM's own files and the site's modules.",
        )),
        (host(mentions=line(SHELL, "export NCCL_P2P_DISABLE=1")), {}, Said(
            "report", f"{SHELL} sets NCCL_P2P_DISABLE=1, {EXCEPT}",
            (f"{SHELL}:7: NCCL_P2P_DISABLE=1",), f"Remove line 7 of {SHELL}.",
        )),
        (host(files={ENV: b"NCCL_P2P_DISABLE=1\n"}), {}, Said(
            "report", f"{ENV} sets NCCL_P2P_DISABLE=1, {EXCEPT}",
            (f"{ENV}:1: NCCL_P2P_DISABLE=1",), f"Remove line 1 of {ENV}, or set environment.debug: remove.",
        )),
        (host(files={ENV: b"HCCL_BUFFSIZE=201\n"}), {}, Said(
            "report",
            f"{ENV} sets HCCL_BUFFSIZE=201: each communicator takes twice as many MB of device memory, "
            f"usually 2 x 200",
            (f"{ENV}:1: HCCL_BUFFSIZE=201",),
            "Where memory runs out as groups are made, lower it: ascend.buffer in remedy.yaml.",
        )),
        (host(files={ENV: b"HCCL_BUFFSIZE=200\n"}), {}, None),
        (host(files={NCCL: b"#\nNCCL_X= 1\n"}), {}, Said(
            "report", "/etc/nccl.conf line 2 does not do what it seems to: NCCL neither trims nor unquotes",
            ("NCCL_X= 1",), "Write NAME=VALUE, without blanks, quotes and $.",
        )),
        (host(files={ENV: b"X_P=$HOME/x\n"}), {}, Said(
            "report", "/etc/environment line 1 does not do what it seems to: pam_env puts no variables in",
            ("X_P=$HOME/x",), "Write NAME=VALUE, without blanks, quotes and $.",
        )),
        (host(mentions=line(SHELL, "export RANK=3")), {}, Said(
            "blocked",
            f"{SHELL} sets RANK=3: only a launcher sets it, for its own processes; in a file every later job "
            f"gets it",
            (f"{SHELL}:7: RANK=3",), f"Remove line 7 of {SHELL}.",
        )),
        (host(environment={"RANK": "3"}), {}, Said(
            "blocked",
            "sessions over ssh have RANK=3: only a launcher sets it, for its own processes; in a file every "
            "later "
            "job gets it",
            ("no file that the probe reads sets it",),
            "Check the user's shell start-up files, PAM's own files and the site's modules.",
        )),
        (host(files={ENV: b"RANK=3\n"}), {}, Said(
            "drift",
            f"{ENV} says RANK=3: only a launcher sets it, for its own processes; in a file every later job "
            f"gets it",
            ("line 1",), "",
        )),
    ],
)  # fmt: skip
def test_what_is_said_of_lines(
    state: HostState, settings: dict[str, Any], expected: Said | None
) -> None:
    found = said(plan(state, **settings), HOST)
    strange = [f for f in found if "does not set" not in f.title and PROFILE not in f.title]
    assert strange == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("pid", "process", "expected"),
    [
        (1, "systemd", Said(
            "blocked", "systemd hands GLOO_SOCKET_IFNAME=eth9 on to what it starts: ",
            ("systemctl show-environment: GLOO_SOCKET_IFNAME=eth9",),
            "Run systemctl unset-environment GLOO_SOCKET_IFNAME, then restart what starts the jobs.",
        )),
        (9, "slurmd", Said(
            "blocked", "slurmd (pid 9) hands GLOO_SOCKET_IFNAME=eth9 on to what it starts: ",
            ("/proc/9/environ: GLOO_SOCKET_IFNAME=eth9",),
            "Start it again without it; for a service: systemctl restart UNIT",
        )),
        *((9, name, Said(
            "report", f"{name} (pid 9) hands GLOO_SOCKET_IFNAME=eth9 on to what it starts: ",
            ("/proc/9/environ: GLOO_SOCKET_IFNAME=eth9",),
            "Start it again without it; for a service: systemctl restart UNIT",
        )) for name in ("dockerd", "containerd")),
    ],
)  # fmt: skip
def test_what_services_hand_on(pid: int, process: str, expected: Said) -> None:
    running = (ServiceVariable(process, pid, "GLOO_SOCKET_IFNAME", "eth9"),)
    (found,) = said(plan(host().model_copy(update={"service_environments": running})), HOST)
    assert found._replace(title=found.title[: len(expected.title)]) == expected
    assert "eth9" in found.title[len(expected.title) :]
    right = (ServiceVariable(process, pid, "GLOO_SOCKET_IFNAME", "eno2"),)
    assert said(plan(host().model_copy(update={"service_environments": right})), HOST) == []
    unread = host().model_copy(update={"service_environments": Unknown(reason="x")})
    assert said(plan(unread), HOST) == []


def test_what_differs_between_hosts() -> None:
    states = [host(number, environment={"NCCL_DEBUG": "WARN"}) for number in range(1, 11)]
    states.append(host(11, environment={}))
    assert said(plan(*states), None) == [
        Said(
            "report", "NCCL_DEBUG is not the same on all hosts",
            ("WARN: " + ", ".join(f"gpu{n:02d}" for n in range(1, 9)) + " and 2 more", "not set: gpu11"),
            "Set it for all in environment.variables of remedy.yaml.",
        )
    ]  # fmt: skip
    eight = said(plan(*states[:8], states[-1]), None)
    assert eight[0].evidence[0] == "WARN: " + ", ".join(f"gpu{n:02d}" for n in range(1, 9))


@pytest.mark.parametrize(
    ("name", "is_compared"),
    [
        *((name, True) for name in (
            "NCCL_X", "TORCH_NCCL_X", "TORCH_X", "GLOO_X", "UCX_X", "OMPI_MCA_x", "HCCL_X", "LD_LIBRARY_PATH",
            "PYTHONPATH",
        )),
        *((name, False) for name in (
            "NCCL_SOCKET_IFNAME", "UCX_NET_DEVICES", "HCCL_IF_IP", "TORCHELASTIC_RUN_ID", "TORCH_RANK", "HOME",
            "PYTHONPATHS", "XNCCL_X", "NCCL_ALGO",
        )),
    ],
)  # fmt: skip
def test_which_variables_are_compared(name: str, is_compared: bool) -> None:
    found = said(plan(host(1, environment={name: "1"}), host(2, environment={name: "2"})), None)
    assert bool(found) is is_compared


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("NCCL_SOCKET_IFNAME", "wrong-interface"), ("GLOO_SOCKET_IFNAME", "wrong-interface"),
        ("TP_SOCKET_IFNAME", "wrong-interface"), ("HCCL_SOCKET_IFNAME", "wrong-interface"),
        ("RANK", "rank-mismatch"), ("HCCL_BUFFSIZE", "hccl-memory"), ("NCCL_IB_HCA", "ib-roce-mixed"),
        ("NCCL_DEBUG", "env-not-propagated"), ("UCX_TLS", "mpi-nic-mismatch"), ("OMPI_MCA_btl",
         "mpi-nic-mismatch"),
        ("X", "env-not-propagated"),
    ],
)  # fmt: skip
def test_the_cause_that_a_wrong_variable_is(name: str, label: str) -> None:
    assert label_of(name) == label


def test_what_a_launcher_sets_in_files_of_all_hosts() -> None:
    files = {ENV: b"MASTER_ADDR=10.0.0.1\n"}
    fix = "Set it alike on all hosts, or remove it: it counts where a launcher sets none."
    title = "MASTER_ADDR is set in files of {}, and a launcher sets it for each job"
    every = said(plan(*(host(n, files) for n in (1, 2, 3))), None)
    assert every == [
        Said("report", title.format("all hosts"), ("gpu[01-03]: MASTER_ADDR=10.0.0.1",), fix)
    ]
    most = said(plan(host(1, files), host(2, files), host(3)), None)
    assert most == [
        Said(
            "report", title.format("2 of 3 hosts"),
            ("gpu[01-02]: MASTER_ADDR=10.0.0.1", "gpu03: not so"), fix,
        )
    ]  # fmt: skip
    assert said(plan(host(1, files), host(2)), None) == []
    # A host that is read alone agrees with nobody.
    alone = said(plan(host(1, files)), None)
    evidence = ("gpu01: MASTER_ADDR=10.0.0.1",)
    assert alone == [Said("report", title.format("the host"), evidence, fix)]
    asked = plan(host(1, files), host(2, files), variables={"MASTER_ADDR": "10.0.0.1"})
    assert said(asked, None) == []


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"variables": {"1X": "1"}}, "'1X' is not the name of a variable"),
        ({"variables": {"X-Y": "1"}}, "'X-Y' is not the name of a variable"),
        ({"variables": {"HOME": "1"}}, "HOME decides who can log in at all, so remedy does not set it"),
        ({"variables": {"API_TOKEN": "1"}},
         "API_TOKEN looks like a secret: every user of a host can read these"),
        ({"variables": {"X": "http://u:p@h"}},
         "a URL with a password in it: every user of a host can read these"),
        *(({"variables": {"X": f"a{c}b"}}, ", which not every place can hold") for c in "\"'`$\\#\n"),
        ({"variables": {"X": " a"}}, "has 'a blank at an end', which not every place can hold"),
        *(({"interface": name}, "interface") for name in ("e", "e" * 16, "^lo", "a b")),
    ],
)  # fmt: skip
def test_what_is_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the words are looked for below
        EnvironmentSpec(**settings)
    assert words in str(caught.value)


@pytest.mark.parametrize("name", ["e0", "e" * 15, "eth0.1_x-y", "auto"])
def test_names_of_interfaces(name: str) -> None:
    assert EnvironmentSpec(interface=name).interface == name
