"""NCCL's RAS service: its answers, as its source writes them, and a conversation with one that answers.

The answers in the folder ``ras`` are those of NCCL 2.28.9 to four ranks on a GPU (benchmarks/hangs.py --gpu):
rank 1 stopped, rank 0 asleep, and none behind. The texts of other versions have the format strings of
NVIDIA/nccl, src/ras/client_support.cc, at the tags that are named; they were not taken from a run.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.verify.allreduce.judge import judge
from remedy.verify.onhost import nccl_ras as ras
from remedy.verify.onhost import ras_answer
from tests.unit.verify.proof_bench import answers, failed_records, make_plan, outcomes
from tests.unit.verify.ras_bench import document, lost

# v2.24.3-1: the ranks in one line.
OLD = """\
Communicators... (2.05s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         4       7-8        32        32   RUNNING  INCOMPLETE

Errors
======

INCOMPLETE
  Missing communicator data from 2 job processes
  Process 3487984 on node 172.16.64.213 managing GPU 5
  Process 3487985 on node 172.16.64.213 managing GPU 6

#0-0 (cf264af53edbe986) INCOMPLETE
  Missing communicator data from 2 ranks
  The missing ranks: 21,22

#1-0 (aaaaaaaaaaaaaaaa) INCOMPLETE
  Missing communicator data from 1 rank
  The missing rank: 3

Warnings
========

TIMEOUT
  Encountered 2 communication timeouts while gathering communicator data

"""

# v2.27.7-1: a line a rank.
NEW = """\
Errors
======

DEAD
  1 job process is considered dead (unreachable via the RAS network)
  Process 3487984 on node 172.16.64.213 managing GPU 5

#0-0 (cf264af53edbe986) INCOMPLETE
  Missing communicator data from 2 ranks
  Rank 21 -- GPU 5 managed by process 3487984 on node 172.16.64.213
  Rank 22 -- [process information not found]

#0-0 (cf264af53edbe986) MISMATCH
  Communicator ranks have different AllReduce operation counts
  26 ranks have launched up to operation 6650
  Rank 0 -- GPU 0 managed by process 483072 on node 172.16.64.210

"""


SEEN = Path(__file__).parent / "ras"


@pytest.mark.parametrize(
    ("answer", "state"), [("stopped.json", "unresponsive"), ("stopped.txt", "missing")]
)
def test_a_stopped_rank_is_named_with_its_process_and_its_host(answer: str, state: str) -> None:
    (rank,) = ras_answer.ranks_of((SEEN / answer).read_text())
    assert (rank.rank, rank.state, rank.pid, rank.node) == (1, state, "30", "10.77.0.2")


@pytest.mark.parametrize("answer", ["asleep.json", "asleep.txt"])
def test_a_rank_that_does_not_come_is_behind(answer: str) -> None:
    (rank,) = ras_answer.ranks_of((SEEN / answer).read_text())
    assert (rank.rank, rank.state, rank.pid, rank.node) == (0, "behind", "20", "10.77.0.1")
    assert rank.launched == 5


def test_the_comma_that_nccl_forgets_before_a_state_is_no_matter() -> None:
    text = (SEEN / "stopped.json").read_text()
    with pytest.raises(json.JSONDecodeError):
        json.loads(text)
    assert ras_answer.missing(text) == {1: "unresponsive"}


def test_ranks_that_all_launched_as_much_are_not_named() -> None:
    assert ras_answer.ranks_of((SEEN / "even.json").read_text()) == []


def test_most_of_the_ranks_are_not_behind_the_one_that_is_further() -> None:
    assert ras_answer.missing(document([], {0: 7, 1: 6, 2: 6, 3: 6})) == {}
    assert ras_answer.missing(document([], {0: 7, 1: 6})) == {1: "behind"}


def test_the_text_of_old_versions_lists_ranks() -> None:
    assert ras_answer.missing(OLD) == {21: "missing", 22: "missing"}


def test_the_text_of_newer_versions_has_a_line_a_rank() -> None:
    assert ras_answer.missing(NEW) == {21: "missing", 22: "missing"}


def test_the_document_says_how_a_rank_is_missing() -> None:
    text = document(
        [lost(2, True, False), lost(3, True, True), lost(4, False, False)], {0: 5, 1: 5}
    )
    assert ras_answer.missing(text) == {2: "unresponsive", 3: "dead", 4: "missing"}


def test_a_rank_that_launched_less_is_behind() -> None:
    assert ras_answer.missing(document([], {0: 5, 1: 4, 2: 5})) == {1: "behind"}
    assert ras_answer.missing(document([], {0: 5, 1: 5})) == {}


@given(st.text())
def test_no_answer_makes_it_raise(text: str) -> None:
    assert isinstance(ras_answer.missing(text), dict)


@pytest.mark.parametrize("text", ["[]", "1", "null", '{"communicators": [{}]}', '{"a": 1}'])
def test_json_of_another_shape_says_nothing(text: str) -> None:
    assert ras_answer.missing(text) == {}


@contextmanager
def service(*, as_json: bool, silent: bool = False) -> Iterator[tuple[tuple[str, int], list[str]]]:
    """A listener that speaks as rasClientEventLoop does, and the lines that it received."""
    commands: list[str] = []

    def serve(server: socket.socket) -> None:
        line, _ = server.accept()
        with line, line.makefile("rwb") as file:
            for raw in file:
                word = raw.decode().strip()
                commands.append(word)
                if silent:
                    continue
                if word.upper().endswith("STATUS"):
                    file.write(
                        (document([lost(1, True, False)], {0: 1}) if as_json else NEW).encode()
                    )
                    return
                if word.startswith("CLIENT PROTOCOL"):
                    file.write(b"SERVER PROTOCOL 2\n")
                elif word.startswith("TIMEOUT") or as_json:
                    file.write(b"OK\n")
                else:
                    file.write(f"ERROR: Unknown command {word}\n".encode())
                file.flush()

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, args=(server,), daemon=True)
        thread.start()
        yield server.getsockname(), commands
    thread.join(10)


def test_a_service_that_knows_json_is_asked_for_it() -> None:
    with service(as_json=True) as (where, commands):
        assert ras_answer.missing(ras.ask(where, 5.0)) == {1: "unresponsive"}
    assert commands == ["CLIENT PROTOCOL 2", "TIMEOUT 3", "SET FORMAT json", "STATUS"]


def test_a_service_that_does_not_is_asked_for_text() -> None:
    with service(as_json=False) as (where, commands):
        assert ras_answer.missing(ras.ask(where, 5.0)) == {21: "missing", 22: "missing"}
    assert commands[-1] == "VERBOSE STATUS"


def test_one_that_says_nothing_or_is_not_there_is_left() -> None:
    with service(as_json=True, silent=True) as (where, _):
        assert ras.ask(where, 0.3) == ""
    assert ras.ask(where, 0.3) == ""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", ("localhost", 28028)),
        ("localhost:4711", ("localhost", 4711)),
        ("[::1]:4711", ("::1", 4711)),
        (":4711", ("localhost", 4711)),
        ("nonsense", ("localhost", 28028)),
    ],
)
def test_where_it_listens(value: str, expected: tuple[str, int]) -> None:
    assert ras.address({"NCCL_RAS_ADDR": value} if value else {}) == expected


def test_whom_nccl_misses_is_named() -> None:
    plan = make_plan(hosts=3, gpus=2)
    records = failed_records(plan, "barrier")
    records["gpu01"][-1]["missed"] = [[2, "behind"], [4, "unresponsive"]]
    verdict = judge(plan, answers(plan, records))
    assert verdict.reason == ("NCCL waits for gpu03 (its RAS service reports: rank 4 unresponsive)")
    assert outcomes(verdict) == {"gpu01": "not-tested", "gpu02": "not-tested", "gpu03": "fail"}


@pytest.mark.parametrize(
    ("state", "says"),
    [("T", "it is stopped (SIGSTOP)"), ("D", "it is stuck in the kernel")],
)
def test_a_worker_that_does_not_run_is_named(state: str, says: str) -> None:
    plan = make_plan(hosts=3)
    records = failed_records(plan, "reduced")
    for name in records:
        records[name][0]["state"] = "S"
    records["gpu02"][0]["state"] = state
    verdict = judge(plan, answers(plan, records))
    assert verdict.reason.startswith(f"a rank on gpu02 does not run: {says}")
    assert outcomes(verdict)["gpu02"] == "fail"
