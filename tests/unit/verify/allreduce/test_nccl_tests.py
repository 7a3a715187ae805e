"""The engine nccl-tests: its table, in the format of nccl-tests' src/util.cu, and what it proves.

The samples are made by the printf formats of that file (snapshot a0b82b2); no GPU was at hand for them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.spec import VerifySpec
from remedy.verify.allreduce.judge import judge
from remedy.verify.allreduce.nccl_tests import read_table
from remedy.verify.allreduce.plan import RankPlan, plan_ranks
from remedy.verify.allreduce.script import config
from remedy.verify.hosts import Participant
from remedy.verify.onhost.agent import MARK
from remedy.verify.onhost.engines import nccl_tests
from remedy.verify.onhost.engines import openmpi as _openmpi
from remedy.verify.verdict import Verdict

SIZES = (8, 1_048_576)
NAMES = ("gpu01", "gpu02")
GPUS = 2


def plan_of(**spec: Any) -> RankPlan:
    hosts = [
        Participant(name=name, address=f"10.0.0.{n + 1}", gpus=GPUS) for n, name in enumerate(NAMES)
    ]
    return plan_ranks(hosts, VerifySpec(engine="nccl-tests", sizes=SIZES, **spec))


def number(value: float, width: int) -> str:
    """getFloatStr of src/util.cu."""
    for digits in (2, 1, 0):
        text = f"{value:{width}.{digits}f}"
        if len(text) <= width:
            return text
    return f"{value:{width}.1e}"


def half(size: int, world: int, microseconds: float, wrong: str = "     0") -> str:
    """writeBenchmarkLineBody of src/util.cu."""
    algbw = size / microseconds / 1e3
    busbw = algbw * 2 * (world - 1) / world
    return f"  {number(microseconds, 7)}  {number(algbw, 6)}  {number(busbw, 6)}  {wrong}"


SWEEP = [8 * 2**n for n in range(18)]


def table(
    world: int = 4,
    sizes: Sequence[int] = SWEEP,
    wrong: dict[int, str] | None = None,
) -> str:
    """All lines of one run on rank 0."""
    lines = [
        "# nccl-tests version 2.19.6 nccl-headers=23007 nccl-library=23007",
        "# Collective test starting: all_reduce_perf",
        (
            "# nThread 1 nGpus 1 minBytes 8 maxBytes 1048576 step: 2(factor) warmup iters: 5 iters: 20"
            " agg iters: 1 validation: 1 graph: 0 unalign: 0"
        ),
        "#",
        "# Using devices",
    ]
    for rank in range(world):
        name = f"{NAMES[rank // GPUS]:>10s}"
        lines.append(
            f"#  Rank {rank:2d} Group {0:2d} Pid {1000 + rank:6d} on {name} device {rank % GPUS:2d} "
            "[0000:1b:00] NVIDIA H200"
        )
    lines += ["#", "#                                              out-of-place        in-place"]
    for place, size in enumerate(sizes):
        row = f"{size:12d}  {size // 4:12d}  {'float':>8s}  {'sum':>6s}  {'    -1':>6s}"
        row += half(size, world, 31.25 + size / 9e3)
        lines.append(row + half(size, world, 30.5 + size / 1e4, (wrong or {}).get(place, "     0")))
    lines += [
        "# Out of bounds values : 0 OK",
        "# Avg bus bandwidth    : 1.23456 ",
        "#",
        "# Collective test concluded: all_reduce_perf",
    ]
    return "\n".join(lines)


@dataclass(frozen=True)
class NcclOutput:
    host: str
    stdout: str
    stderr: str = ""
    exit_code: int | None = 0
    seconds: float = 0.0
    error: Any = None


def records(plan: RankPlan, text: str) -> dict[str, list[dict[str, Any]]]:
    """What the agents of a good run say."""
    found: dict[str, list[dict[str, Any]]] = {}
    for node, name in enumerate(NAMES):
        ranks = []
        for local in range(GPUS):
            rank = node * GPUS + local
            identity = {
                "nonce": plan.nonce,
                "rank": rank,
                "pid": 1000 + rank,
                "boot_id": f"boot-{node}",
            }
            ranks.append(
                {
                    "kind": "rank",
                    "local_rank": local,
                    "phase": "started",
                    "times": {},
                    "result": None,
                    "error": None,
                    "missing": [],
                    "exit_code": None,
                    "network": [],
                    "log": [],
                    "process": {**identity, "hostname": f"{name}.cluster"},
                }
            )
        launcher = {"kind": "launcher", "exit_code": 0, "log": [], "output": []}
        launcher["output"] = text.splitlines() if node == 0 else []
        found[name] = [*ranks, launcher, {"kind": "end", "how": "exited", "hostname": name}]
    return found


def verdict_of(plan: RankPlan, records: dict[str, list[dict[str, Any]]]) -> Verdict:
    outputs = {
        name: NcclOutput(name, "".join(f"{MARK} {plan.nonce} {json.dumps(r)}\n" for r in lines))
        for name, lines in records.items()
    }
    return judge(plan, outputs)  # type: ignore[arg-type]


def test_a_good_run_is_a_proof() -> None:
    plan = plan_of()
    verdict = verdict_of(plan, records(plan, table()))
    assert verdict.passed, verdict
    assert (verdict.engine, verdict.backend) == ("nccl-tests", "nccl")
    assert verdict.world_size == verdict.expected_world_size == 4
    assert verdict.hosts == 2
    assert verdict.sum_exact
    assert verdict.nccl == ("2.30.7",)
    assert verdict.software == ("nccl-tests 2.19.6",)
    last = verdict.bandwidth[-1]
    assert len(verdict.bandwidth) == 18
    assert last.bytes == SIZES[-1]
    assert last.busbw == pytest.approx(last.algbw * 1.5)
    assert last.busbw == pytest.approx(1_048_576 / 135.36 / 1e3 * 1.5, rel=0.01)
    assert last.out_of_place_busbw
    assert last.out_of_place_busbw < last.busbw


Damage = Callable[[str], str]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda _: "", "lists 0 ranks"),
        (lambda _: table(world=3), "lists 3 ranks"),
        (lambda text: text.replace("Pid   1002", "Pid   7777"), "not those of this run"),
        (lambda text: text.replace("     gpu02", "     gpu09"), "not those of this run"),
        (lambda text: text.replace("Rank  3 Group  0", "Rank  3 Group  1"), "into groups"),
        (lambda text: text.replace("validation: 1", "validation: 0"), "did not check"),
        (lambda text: text.replace("values : 0 OK", "values : 3 FAILED"), "3 values out of bounds"),
        (lambda text: text.partition("# Out of")[0], "did not come to its end"),
        (lambda _: table(wrong={4: "    12"}), "128 bytes in-place: 12 wrong elements"),
        (lambda _: table(wrong={4: "   N/A"}), "128 bytes in-place: the result was not checked"),
        (lambda _: table(sizes=(8, 16)), "2 sizes measured"),
        (lambda _: table(sizes=()), "nothing was measured"),
        # Each process a world of its own: a build without MPI.
        (lambda text: text.replace("Rank  1", "Rank  0"), "lists 4 ranks"),
    ],
)
def test_what_is_missing_or_wrong_fails(damage: Damage, said: str) -> None:
    plan = plan_of()
    verdict = verdict_of(plan, records(plan, damage(table())))
    assert not verdict.passed
    assert any(said in line for line in (verdict.reason, *verdict.evidence)), verdict.evidence


def test_bandwidths_of_another_world_fail() -> None:
    plan = plan_of()
    two = [line for line in table(world=2).splitlines() if not line.startswith("#")]
    four = [line for line in table().splitlines() if line.startswith("#")]
    text = "\n".join([*four[:-4], *two, *four[-4:]])
    verdict = verdict_of(plan, records(plan, text))
    assert "not those of 4 ranks" in verdict.reason


def test_a_smaller_memory_ends_the_table_earlier() -> None:
    plan = plan_of()
    text = table(sizes=(8, 16, 32)).replace(
        "# Using devices", "# Using devices\n# Reducing maxBytes to 50 due to memory limitation"
    )
    assert verdict_of(plan, records(plan, text)).passed


def test_ranks_of_an_earlier_run_or_of_one_machine_are_no_proof() -> None:
    plan = plan_of()
    old, same, gone, failed = (records(plan, table()) for _ in range(4))
    old["gpu02"][0]["process"]["nonce"] = "0" * 16
    assert "its ranks are" in verdict_of(plan, old).reason
    for rank in same["gpu02"][:GPUS]:
        rank["process"]["boot_id"] = "boot-0"
    assert "one machine" in verdict_of(plan, same).reason
    gone["gpu02"][1]["process"] = None
    assert not verdict_of(plan, gone).passed
    failed["gpu01"][-2]["exit_code"] = 1
    assert not verdict_of(plan, failed).passed


def test_the_mark_is_of_the_largest_size_and_not_of_the_average() -> None:
    plan = plan_of(min_busbw=500)
    assert "is below 500 GB/s" in verdict_of(plan, records(plan, table())).reason
    low = plan_of(min_busbw=10)
    assert verdict_of(low, records(low, table())).passed


@given(st.integers(0, 60), st.text(alphabet="0123456789.# NA/efloatsum-\t", max_size=60))
def test_a_damaged_line_is_never_an_error(place: int, text: str) -> None:
    lines = table().splitlines()
    lines[place % len(lines)] = text
    seen = read_table("\n".join(lines))
    assert len(seen.rows) >= 17
    assert len(seen.devices) >= 3


def test_a_missing_or_unusable_program_is_refused_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_openmpi, "lacking", lambda: "")
    monkeypatch.setattr(nccl_tests, "FOLDERS", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    host_config: dict[str, Any] = {"all_reduce_perf": "", "ranks": 10**6}
    assert nccl_tests.unfit(host_config) == (
        "no-engine",
        "all_reduce_perf is not in its PATH or in /opt",
    )
    assert "/nowhere is no program" in str(
        nccl_tests.unfit({**host_config, "all_reduce_perf": "/nowhere"})
    )
    program = tmp_path / "all_reduce_perf"
    program.write_bytes(b"\x7fELF no message passing")
    program.chmod(0o755)
    assert "was built without MPI" in str(nccl_tests.unfit(host_config))
    program.write_bytes(b"\x7fELF libmpi.so.40")
    assert "ranks are to run there" in str(nccl_tests.unfit(host_config))
    assert nccl_tests.unfit({**host_config, "ranks": 0}) is None
    monkeypatch.setattr(_openmpi, "lacking", lambda: "no mpirun")
    assert nccl_tests.unfit(host_config) == ("no-engine", "no mpirun")


def test_the_program_is_named_in_the_spec() -> None:
    plan = plan_of(all_reduce_perf="/opt/x/all_reduce_perf")
    host_config = config(plan, 0)
    assert host_config["all_reduce_perf"] == "/opt/x/all_reduce_perf"
    words = nccl_tests.arguments(host_config)
    assert words[words.index("-b") + 1] == "8"
    assert words[words.index("-e") + 1] == "1048576"
    assert words[words.index("-c") + 1] == "1"
    # It stays in the spec where another engine is asked for on the command line.
    assert VerifySpec(engine="mpi", all_reduce_perf="/opt/x").engine == "mpi"
