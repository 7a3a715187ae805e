"""What else a log shows weighs the causes of its failure: hosts, networks, containers, one rank or all."""

from __future__ import annotations

import pytest

from remedy.diagnose.catalogue import CauseWeight
from remedy.diagnose.diagnosis import CERTAIN
from remedy.diagnose.judgement.context import FITS, RULED_OUT, factors_of, unfit_in, weighed
from remedy.diagnose.logs import diagnose_lines
from remedy.diagnose.scanner.job_setting import ROCE, SOCKET, JobSetting, setting_of, together

NCCL = (
    "{host}:812:90{local} [{local}] NCCL INFO comm 0x55d rank {local} nRanks {world} - Init START"
)
ROW = "#  Rank  {0} Group  0 Pid   22 on     v1 device  {0} [0x1a] V100"
RETRY = (
    "gpu01:1:2 [0] NCCL WARN NET/IB : Got completion with error 12, opcode 0, len 0, vendor err 129"
)


@pytest.mark.parametrize(
    ("text", "is_one", "is_many"),
    [
        ("torchrun --standalone --nproc-per-node 8 train.py", True, False),
        ("torchrun --nnodes=1 --nproc-per-node 8 train.py", True, False),
        ("torchrun --nnodes 2 --nproc-per-node 8 train.py", False, True),
        ("torchrun --nnodes 1:4 train.py", False, False),
        ("[INFO] [launch.py] nnodes=1, num_local_procs=8, node_rank=0", True, False),
        ("INFO: world_size=2 rank=0 distributed_init_method=tcp://127.0.0.1:41", True, False),
        ("INFO: world_size=2 rank=0 distributed_init_method=tcp://10.0.0.1:41", False, False),
        ("export MASTER_ADDR=localhost", True, False),
        ("g1:1:2 [0] NCCL INFO comm 0x1 rank 0 nRanks 8 nNodes 1 localRanks 8", True, False),
        ("g1:1:2 [0] NCCL INFO comm 0x1 rank 0 nRanks 8 nNodes 2 localRanks 4", False, True),
        ("\n".join(NCCL.format(host="g1", local=n, world=2) for n in range(2)), True, False),
        ("\n".join(NCCL.format(host="g1", local=n, world=4) for n in range(2)), False, False),
        ("\n".join(NCCL.format(host=f"g{n}", local=n, world=2) for n in range(2)), False, True),
        ("\n".join(ROW.format(n) for n in range(2)), True, False),
        ("step 1 loss 3.2", False, False),
    ],
)
def test_on_how_many_hosts_a_job_runs(text: str, is_one: bool, is_many: bool) -> None:
    setting = setting_of(text)
    assert (setting.is_of_one_host, setting.is_of_many_hosts) == (is_one, is_many)


@pytest.mark.parametrize(
    ("text", "networks", "is_contained"),
    [
        ("NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.0.1<0>", {ROCE}, False),
        ("NCCL INFO Using network Socket", {SOCKET}, False),
        ("4c217144f0b1:113168:113168 [0] NCCL INFO Bootstrap : Using eth0", set(), True),
        ("docker run --gpus all --shm-size 1g image python train.py", set(), True),
        ("[pod/trainer-0/main] step 3", set(), False),
        ("gpu01:113168:113168 [0] NCCL INFO Bootstrap : Using eth0", set(), False),
    ],
)
def test_networks_and_containers(text: str, networks: set[str], is_contained: bool) -> None:
    setting = setting_of(text)
    assert setting.networks == networks
    assert setting.is_contained is is_contained


def test_two_logs_of_two_hosts_are_no_job_on_one() -> None:
    both = [setting_of(NCCL.format(host=host, local=0, world=1)) for host in ("g1", "g2")]
    assert together(both).is_of_many_hosts
    assert not together([*both, JobSetting(is_at_home=True)]).is_of_one_host


def test_a_job_on_one_host_has_no_cause_between_hosts() -> None:
    setting = JobSetting(nodes=frozenset((1,)))
    assert factors_of(setting)["firewall-ports"] == RULED_OUT
    assert {"firewall-ports", "mtu-mismatch", "ib-link-fault"} <= unfit_in(setting)
    assert "wrong-interface" not in unfit_in(setting)
    assert factors_of(JobSetting()) == {}


@pytest.mark.parametrize(
    ("weight", "factor", "expected"),
    [(0.5, FITS, 0.54), (0.8, FITS, CERTAIN - 0.001), (0.9, RULED_OUT, 0.9), (0.5, 1.0, 0.5)],
)
def test_nothing_becomes_certain_by_it_and_proof_stays(
    weight: float, factor: float, expected: float
) -> None:
    cause = CauseWeight(label="firewall-ports", weight=weight)
    assert weighed(cause, {"firewall-ports": factor}).weight == pytest.approx(expected)


def test_a_connection_within_one_host_is_not_blamed_on_a_firewall() -> None:
    failure = "fatal: connect to 10.0.0.4 port 41235: Connection timed out"
    assert diagnose_lines({"log": [failure]}).label == "firewall-ports"
    alone = diagnose_lines({"log": ["torchrun --standalone train.py", failure]})
    assert alone.label != "firewall-ports"
    assert alone.candidates[0].label != "firewall-ports"


def test_a_hang_within_one_host_offers_what_one_host_can_have() -> None:
    rows = [NCCL.format(host="g1", local=n, world=2) for n in range(2)]
    labels = [candidate.label for candidate in diagnose_lines({"log": rows}).candidates]
    assert "firewall-ports" not in labels
    assert "p2p-acs-iommu" in labels
    many = [NCCL.format(host=f"g{n}", local=n, world=2) for n in range(2)]
    assert diagnose_lines({"log": many}).candidates[0].label == "firewall-ports"


def _scores(lines: dict[str, list[str]]) -> dict[str, float]:
    return {c.label: c.score for c in diagnose_lines(lines).candidates}


def test_what_one_rank_shows_alone_is_its_host_and_what_all_show_is_common() -> None:
    text = [
        "Traceback (most recent call last):",
        '  File "train.py", line 3, in main',
        "OSError: [Errno 2] No such file or directory: '/data/shards/0'",
    ]
    quiet = {f"rank_{n}.log": ["begin"] for n in range(1, 4)}
    alone = _scores({"rank_0.log": text, **quiet})
    everywhere = _scores({f"rank_{n}.log": text for n in range(4)})
    assert alone["storage-fault"] > everywhere["storage-fault"]
    assert alone["application-error"] < everywhere["application-error"]


def test_without_a_subnet_manager_the_settings_come_before_the_link() -> None:
    roce = "gpu01:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.0.1<0>"
    with_roce, without = _scores({"log": [roce, RETRY]}), _scores({"log": [RETRY]})
    assert with_roce["ib-misconfig"] > without["ib-misconfig"]
    assert with_roce["ib-link-fault"] == without["ib-link-fault"]


LOOPBACK = (
    "{host}:21:21 [0] NCCL INFO socketPollConnect: connect to 127.0.0.1<42707> returned Connection refused, "
    "retrying (1/34) after sleep for 100 msec"
)


def test_a_loopback_address_of_a_peer_is_wrong_where_peers_are_on_other_hosts() -> None:
    start = "{host}:21:21 [0] NCCL INFO Bootstrap: Using lo:127.0.0.1<0>"
    one = {"gpu02.log": [start.format(host="gpu02"), LOOPBACK.format(host="gpu02")]}
    other = {"gpu01.log": [start.format(host="gpu01")]}
    found = diagnose_lines({**one, **other})
    assert (found.label, found.confidence) == ("wrong-interface", "likely")
    assert "loopback-hostname" in [candidate.label for candidate in found.candidates]
    # Of one host alone it is the address at which its ranks meet.
    assert diagnose_lines(one).label != "wrong-interface"
    counted = [*one["gpu02.log"], "gpu02:21:21 [0] NCCL INFO comm 0x1 rank 1 nRanks 2 nNodes 2"]
    assert diagnose_lines({"gpu02.log": counted}).label == "wrong-interface"


def test_a_hang_after_nccls_ranks_met_may_lose_long_messages() -> None:
    def stops(host: str) -> list[str]:
        return [
            f"{host}:22:22 [0] NCCL INFO ncclCommInitRankConfig comm 0x4 rank 0 nranks 2 - Init START",
            f"{host}:22:22 [0] NCCL INFO Bootstrap timings total 0.177486 (create 0.000023)",
        ]

    found = diagnose_lines({"a.log": stops("gpu01"), "b.log": stops("gpu02")})
    assert (found.label, found.candidates[0].label) == ("unknown", "mtu-mismatch")
    before = diagnose_lines({"a.log": stops("gpu01")[:1], "b.log": stops("gpu02")[:1]})
    assert before.candidates[0].label == "firewall-ports"
    assert "mtu-mismatch" in [candidate.label for candidate in before.candidates]


def test_lines_before_the_first_time_of_a_log_stand_before_it() -> None:
    busy = "cudaSetDevice(0) error( cudaErrorDevicesUnavailable): CUDA-capable device(s) is/are busy or"
    abort = (
        "MPICH ERROR [Rank 3] [job id 5.0] [Fri Aug 28 22:45:13 2026] [nid004069] - Abort(1) (rank 3 in comm "
        "432): application called MPI_Abort(comm=0xC4000001, 1) - process 3"
    )
    lines = [f"{busy} unavailable", abort]
    found = diagnose_lines({"log": lines})
    assert (found.label, found.confidence) == ("stale-process", "possible")
    assert found.lead is not None
    assert found.lead.line == 1
    labels = [candidate.label for candidate in found.candidates]
    assert {"container-gpu-runtime", "nofile-limit"} <= set(labels)
