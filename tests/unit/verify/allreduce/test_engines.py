"""Engines: what they are given, what they refuse, and what keeps a host from taking part."""

from __future__ import annotations

import contextlib
import json
import runpy
import socket
import struct
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from remedy.spec import VerifySpec
from remedy.verify.allreduce.engines import ENGINES, NAMES
from remedy.verify.allreduce.plan import RankPlan, plan_ranks
from remedy.verify.allreduce.script import config
from remedy.verify.hosts import Participant, Participants
from remedy.verify.ladder import climb
from remedy.verify.onhost.agent import MARK
from remedy.verify.onhost.engines import mindspore, paddle
from remedy.verify.onhost.engines import openmpi as _openmpi
from remedy.verify.onhost.rank.group import WAVE, Buffer, Group
from remedy.verify.onhost.rank.proof import prove_sum
from remedy.verify.onhost.rank.sweep import sweep

ORTED = [
    *("orted", "-mca", "orte_leave_session_attached", "1", "-mca", "ess", "env"),
    *("-mca", "ess_base_jobid", "396034048", "-mca", "ess_base_vpid", "1"),
    *("-mca", "orte_node_regex", "gpu[2:1],[2:10].214.2.12@0(2)"),
    *("-mca", "orte_hnp_uri", "396034048.0;tcp://10.214.2.11:60243"),
    *("--mca", "oob_tcp_if_include", "enp194s0f1", "--tree-spawn"),
]


def hosts(*gpus: int) -> list[Participant]:
    return [
        Participant(name=f"h{n}", address=f"10.0.0.{n + 1}", gpus=g) for n, g in enumerate(gpus)
    ]


def test_every_engine_has_a_name_that_the_user_can_give() -> None:
    assert tuple(ENGINES) == NAMES
    for name, engine in ENGINES.items():
        assert engine.name == name
        assert VerifySpec(engine=name).engine == name
    with pytest.raises(ValidationError):
        VerifySpec(engine="pvm")


def test_only_torch_has_a_choice_of_backends() -> None:
    assert VerifySpec(engine="torch", backend="gloo").backend == "gloo"
    with pytest.raises(ValidationError, match="only the engine torch"):
        VerifySpec(engine="mpi", backend="gloo")


def test_the_first_host_alone_is_told_of_the_others() -> None:
    plan = plan_ranks(hosts(0, 0, 0), VerifySpec(engine="mpi"))
    assert plan.backend == "mpi"
    assert config(plan, 0)["hosts"] == [["10.0.0.1", 1], ["10.0.0.2", 1], ["10.0.0.3", 1]]
    assert config(plan, 1)["hosts"] == []
    assert plan.secret != plan_ranks(hosts(0, 0), VerifySpec(engine="mpi")).secret
    assert plan.secret not in repr(plan)


def test_a_daemon_is_started_as_mpirun_gives_it_and_nothing_else_is() -> None:
    assert _openmpi.odd(ORTED) == ""
    assert "only orted" in _openmpi.odd(["sh", "-c", "true"])
    assert "only orted" in _openmpi.odd(["/tmp/orted"])
    assert _openmpi.odd([])
    assert "a word" in _openmpi.odd([*ORTED, "/tmp/x"])
    assert "a parameter" in _openmpi.odd(["orted", "-mca", "a b", "c"])
    assert "a parameter" in _openmpi.odd(["orted", "-mca", "a"])


@given(st.lists(st.text(max_size=12), max_size=6))
def test_a_daemons_words_are_never_an_error(words: list[str]) -> None:
    assert isinstance(_openmpi.odd(words), str)


def test_each_host_uses_its_own_interface(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(_openmpi.CHOSEN, raising=False)
    assert _openmpi.without_choice(ORTED) == ORTED
    monkeypatch.setenv(_openmpi.CHOSEN, "oob")
    assert "oob_tcp_if_include" not in _openmpi.without_choice(ORTED)
    assert _openmpi.odd(_openmpi.without_choice(ORTED)) == ""
    assert _openmpi.named("127.0.0.1") == "lo"
    assert _openmpi.named("192.0.2.77") == "192.0.2.77/31"


def test_what_the_user_chose_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "mca-params.conf"
    monkeypatch.setattr(_openmpi, "MCA_FILES", (str(file), str(tmp_path / "none")))
    for name in ("OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_oob_tcp_if_include"):
        monkeypatch.delenv(name, raising=False)
    assert _openmpi.interface("btl", "127.0.0.1") == {"OMPI_MCA_btl_tcp_if_include": "lo"}
    file.write_text("# btl_tcp_if_include = eth9\nbtl_tcp_if_exclude = docker0\n")
    assert _openmpi.interface("btl", "127.0.0.1") == {}
    assert _openmpi.interface("oob", "127.0.0.1") == {"OMPI_MCA_oob_tcp_if_include": "lo"}
    monkeypatch.setenv("OMPI_MCA_oob_tcp_if_include", "eth3")
    assert _openmpi.interface("oob", "127.0.0.1") == {}


def test_a_host_without_open_mpi_says_what_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "mpirun and orted are not" in _openmpi.lacking()
    for name, text in (("orted", ""), ("mpirun", "echo 'mpirun (Open MPI) 4.1.4'")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    assert _openmpi.lacking() == ""
    (tmp_path / "mpirun").write_text("#!/bin/sh\necho 'HYDRA build details:'\n")
    assert "HYDRA" in _openmpi.lacking()


def head_config(secret: str) -> dict[str, Any]:
    """Make the configuration of the head of a run of two hosts."""
    hosts = [["127.0.0.1", 1], ["127.0.0.2", 1]]
    return {"nonce": "0" * 16, "secret": secret, "nodes": 2, "hosts": hosts}


def joined(head: dict[str, Any], node: int, secret: str) -> dict[int, _openmpi.SignedLine]:
    """What the head has after one follower tried to join, which has this secret."""
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        door.listen(1)

        def follower() -> None:
            with socket.create_connection(door.getsockname()) as link:
                line = _openmpi.SignedLine(link)
                theirs = line.hear()["challenge"]
                proof = _openmpi.sign({**head, "secret": secret}, "join", theirs, str(node))
                line.say({"node": node, "proof": proof, "challenge": "c"})

        thread = threading.Thread(target=follower)
        thread.start()
        # With nobody else to come the head would wait for its whole time.
        soon = {**head, "began": time.monotonic(), "join_seconds": 0.5}
        found = _openmpi.gathered(soon, door)
        thread.join()
    return found


def test_only_who_has_the_secret_is_a_follower() -> None:
    head = head_config("right")
    assert set(joined(head, 1, "right")) == {1}
    assert joined(head, 1, "wrong") == {}
    assert joined(head, 7, "right") == {}


def test_who_did_not_come_is_named_by_ranks(tmp_path: Path) -> None:
    run_config = {"directory": str(tmp_path), "port": 29500, "nodes": 3}
    run_config["hosts"] = [["10.0.0.1", 2], ["10.0.0.2", 2], ["10.0.0.3", 2]]
    _openmpi.absent(run_config, [2])
    assert json.loads((tmp_path / "missing.0.json").read_text()) == {"ranks": [4, 5]}


class Alone(Group):
    """A group of one that adds nothing, or something wrong."""

    rank, world, backend, software = 0, 1, "mpi", "none"

    def __init__(self, wrong: int) -> None:
        self.off = wrong

    def sum_ints(self, values: list[int]) -> list[int]:
        return [value + self.off for value in values]

    def gather(self, data: bytes) -> list[bytes]:
        return [data]

    def buffer(self, count: int) -> Buffer:
        return Kept(count, self.off)


class Kept(Buffer):
    def __init__(self, count: int, off: int) -> None:
        self.values = [0] * count
        self.off = off

    def fill(self, base: int, step: int) -> None:
        self.values = [base + n % WAVE * step for n in range(len(self.values))]

    def all_reduce(self) -> None:
        self.values[-1] += self.off

    def all_reduce_copy(self) -> None:
        pass

    def wrong(self, base: int, step: int) -> int:
        return sum(v != base + n % WAVE * step for n, v in enumerate(self.values))


@pytest.mark.parametrize("wrong", [0, 1])
def test_a_sum_that_is_off_by_one_is_seen(wrong: int) -> None:
    group = Alone(wrong)
    assert bool(prove_sum("ab" * 8, group)["missing"]) == bool(wrong)
    rows = sweep({"sizes": {"mpi": [8, 64]}, "sweep_seconds": 60.0}, group)
    assert [row["bytes"] for row in rows] == [8, 64]
    assert {row["exact"] for row in rows} == {not wrong}
    assert all(row["seconds"] > 0 and row["out_of_place"] > 0 for row in rows)


@dataclass(frozen=True)
class EngineOutput:
    host: str
    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = 0
    seconds: float = 0.0
    error: Any = None


def say(plan_text: str, how: str, detail: str = "") -> str:
    nonce = (
        plan_text.partition('\\"nonce\\": \\"')[2][:16] or plan_text.partition('"nonce": "')[2][:16]
    )
    return f"{MARK} {nonce} {json.dumps({'kind': 'end', 'how': how, 'detail': detail})}\n"


def test_nothing_runs_where_one_host_lacks_the_engine() -> None:
    asked: list[Mapping[str, Any]] = []

    def run(scripts: Mapping[str, Any]) -> dict[str, Any]:
        asked.append(scripts)
        ends = {"h0": ("ready", ""), "h1": ("no-engine", "mpirun and orted are not in its PATH")}
        return {n: EngineOutput(n, say(s.text, *ends[n])) for n, s in scripts.items()}

    spec = VerifySpec(engine="mpi", reach=False)
    verdict = climb(run, Participants(hosts(0, 0)), spec)
    assert len(asked) == 1
    assert not verdict.passed
    assert not verdict.possible
    assert verdict.engine == "mpi"
    assert [rung.name for rung in verdict.rungs] == ["facts", "engine"]
    assert "h1: mpirun and orted are not in its PATH" in verdict.reason
    assert [cause.name for cause in verdict.culprits] == ["h1"]
    assert "apt-get install openmpi-bin" in verdict.culprits[0].next_step
    ends = {one.host: one.outcome for one in verdict.outcomes}
    assert ends == {"h0": "not-tested", "h1": "fail"}


def test_a_host_that_does_not_answer_the_look_is_named() -> None:
    def run(scripts: Mapping[str, Any]) -> dict[str, Any]:
        return {
            n: EngineOutput(n, say(s.text, "ready") if n == "h0" else "")
            for n, s in scripts.items()
        }

    verdict = climb(run, Participants(hosts(0, 0)), VerifySpec(engine="mpi", reach=False))
    assert [cause.name for cause in verdict.culprits] == ["h1"]
    assert not verdict.passed


@settings(max_examples=20)
@given(st.text(max_size=30))
def test_a_plan_that_travels_is_one_line_of_ascii(text: str) -> None:
    plan: RankPlan = plan_ranks(hosts(0, 0), VerifySpec(engine="mpi", python=text or None))
    assert json.dumps(config(plan, 0)).isascii()


def test_mindspore_sums_whole_numbers_in_pieces_that_float32_holds() -> None:
    ranks = 4096
    assert ranks * (2**mindspore.BITS - 1) < 2**24
    assert mindspore.BITS * mindspore.PIECES >= 56

    class Array(list):  # type: ignore[type-arg]
        """What numpy and MindSpore do with the numbers, as far as it matters."""

        def asnumpy(self) -> Array:
            return self

        def tolist(self) -> list[float]:
            return list(self)

    class Numpy:
        @staticmethod
        def array(values: list[int], dtype: str) -> Array:
            assert dtype == "float32"
            return Array(struct.unpack(f"{len(values)}f", struct.pack(f"{len(values)}f", *values)))

    group = mindspore.MindSporeGroup.__new__(mindspore.MindSporeGroup)
    group.numpy, group.tensor = Numpy, Array
    # Every rank gives the same, so that the sum over all is a multiple, in float32.
    group.reduce = lambda mine: Array(
        struct.unpack("f", struct.pack("f", n * ranks))[0] for n in mine
    )
    values = [2**41 - 1, 1, 0, 2**40 + 12_345]
    assert group.sum_ints(values) == [value * ranks for value in values]


@pytest.mark.parametrize(
    ("engine", "said"), [(paddle, "has no Paddle"), (mindspore, "has no MindSpore")]
)
def test_a_python_without_the_framework_says_so(engine: Any, said: str) -> None:
    host_config = {"world": 2, "alike": True, "ranks": 1}
    for name in engine.DISTRIBUTIONS:
        with contextlib.suppress(PackageNotFoundError):
            version(name)
            pytest.skip(f"{name} is installed here")
    how, detail = engine.unfit(host_config)
    assert how == "no-engine"
    assert said in detail


def test_what_msrun_and_float32_cannot_do_is_refused() -> None:
    assert "exactly" in str(mindspore.unfit({"world": 5000, "alike": True}))
    assert "as many" in str(mindspore.unfit({"world": 3, "alike": False}))


@pytest.mark.parametrize("engine", [paddle, mindspore])
def test_a_framework_is_told_the_first_host_by_address_and_who_it_is(engine: Any) -> None:
    plan = plan_ranks(hosts(0, 0), VerifySpec(engine=engine.WORKER.rpartition(".")[2]))
    words, _ = engine.command(config(plan, 1), "/tmp/run")
    text = " ".join(words)
    assert "10.0.0.1" in text
    assert str(plan.port) in text
    assert "rank 1" in text or "rank=1" in text
    assert words[-2:] == ["/tmp/run/worker.py", "/tmp/run"]


def test_paddles_own_check_has_to_say_that_it_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(runpy, "run_module", lambda *_, **__: print(*said))
    with pytest.raises(RuntimeError, match="without saying"):
        paddle.engine_check()
    said.append(paddle.COMPLETED)
    paddle.engine_check()
