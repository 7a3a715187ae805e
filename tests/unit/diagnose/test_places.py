"""What a text can mean where it happened, beside what else was said, and how sure that lets an answer be."""

from __future__ import annotations

import pytest

from remedy.diagnose.catalogue import catalogue
from remedy.diagnose.diagnosis import Diagnosis
from remedy.diagnose.logs import diagnose_lines, diagnose_sources
from remedy.diagnose.scanner.reader import from_text

FAMILIES = frozenset(entry.family for entry in catalogue())
CONNECT = "[E socket.cpp:957] [c10d] The client socket has timed out after 60s while trying to connect to {}."
FULL = [
    "Traceback (most recent call last):",
    '  File "train.py", line 9, in main',
    "    work()",
    '  File "{}", line 59, in __init__',
    "    made()",
    "OSError: [Errno 28] No space left on device",
]
WATCHDOG = (
    "[rank1]:[E817 09:44:12.1 ProcessGroupNCCL.cpp:689] [Rank 1] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=36, OpType=ALLGATHER, Timeout(ms)=600000) ran for 600073 milliseconds before timing out."
)
DAEMONS = [
    "ORTE was unable to reliably start one or more daemons.",
    "This usually is caused by:",
]
CLOSED = "gpu01:812:901 [0] include/socket.h:371 NCCL WARN Net : Connection closed by remote peer"


def said(*lines: str) -> Diagnosis:
    """Diagnose one log."""
    return diagnose_lines({"log": lines})


@pytest.mark.parametrize(
    ("target", "label"),
    [
        ("(localhost, 29500)", "unknown"),
        ("(127.0.0.1, 29500)", "unknown"),
        ("(gpu01, 0)", "unknown"),
        ("(gpu01, 29500)", "firewall-ports"),
        ("(localhost.example.org, 29500)", "firewall-ports"),
    ],
)
def test_no_network_stands_between_a_process_and_its_own_host(target: str, label: str) -> None:
    found = said(CONNECT.format(target))
    assert found.label == label
    offered = {candidate.label for candidate in found.candidates}
    assert ("firewall-ports" in offered) == (label == "firewall-ports")


def test_a_head_that_is_looked_for_on_the_own_host_is_behind_no_firewall() -> None:
    text = "WARNING node.py:1465 -- Unable to connect to GCS at {}:6379. Check that (1) Ray started"
    own, other = said(text.format("127.0.0.1")), said(text.format("10.0.0.9"))
    assert other.label == "firewall-ports"
    assert "firewall-ports" not in {own.label, *(c.label for c in own.candidates if c.evidence)}


@pytest.mark.parametrize(
    ("file", "label"),
    [
        ("/usr/lib/python3.12/multiprocessing/synchronize.py", "shm-too-small"),
        ("/usr/lib/python3.12/multiprocessing/shared_memory.py", "shm-too-small"),
        ("/venv/torch/serialization.py", "disk-full"),
        ("/home/u/multiprocessing/writer.py", "disk-full"),
    ],
)
def test_what_is_full_is_told_by_the_innermost_frame(file: str, label: str) -> None:
    found = said(*(line.format(file) for line in FULL))
    assert found.label == label
    # The disk is the surer one: the text says so without the frame.
    assert found.confidence == ("certain" if label == "disk-full" else "likely")


def test_a_collective_that_timed_out_is_no_healthy_run_whoever_knows_the_text() -> None:
    steps = [f"step {n} loss {3 - n / 9:.3f}" for n in range(4)]
    log = from_text("log", "\n".join([*steps, WATCHDOG]).encode())
    assert diagnose_sources([log], without=FAMILIES).label == "unknown"
    # A setting with the same words is no failure.
    ended = ["group of 8, Timeout(ms)=600000", *steps, "training finished"]
    setting = from_text("log", "\n".join(ended).encode())
    assert diagnose_sources([setting], without=FAMILIES).label == "healthy"


def test_another_line_says_which_of_the_causes_it_is_that_an_entry_leaves() -> None:
    assert said(*DAEMONS).label == "unknown"
    found = said("debug1: Exit status 127", *DAEMONS)
    assert (found.label, found.confidence) == ("env-not-propagated", "possible")
    assert found.lead is not None
    assert found.lead.text == "debug1: Exit status 127"
    # Words for a cause that the entry does not leave decide nothing.
    assert said("ringer: dial gpu02: Host is down", *DAEMONS).label == "unknown"
    assert said("debug1: Exit status 0", *DAEMONS).label == "unknown"


def test_who_suffers_from_another_is_certain_only_where_nothing_was_said_before() -> None:
    dial = "ringer: dial gpu02: Host is down"
    alone, before, after = said(WATCHDOG), said(dial, WATCHDOG), said(WATCHDOG, dial)
    assert {found.label for found in (alone, before, after)} == {"peer-died-timeout"}
    assert alone.confidence == after.confidence == "certain"
    assert before.confidence == "likely"


def test_a_sign_with_several_causes_bears_out_the_clearest_of_them_only() -> None:
    refused = "ringer: dial 10.0.0.9:7001: Connection refused"
    alone, beside = said(CLOSED), said(refused, CLOSED)
    assert alone.label == beside.label == "peer-died-timeout"
    assert alone.certainty == beside.certainty


def test_a_unit_that_fails_is_at_fault_for_certain_only_where_cuda_waits_for_it() -> None:
    unit = "nvidia-fabricmanager.service: Failed with result 'exit-code'."
    waits = "RuntimeError: CUDA error: system not yet initialized"
    assert (said(unit).label, said(unit).confidence) == ("fabricmanager-not-running", "likely")
    assert said(unit, waits).confidence == "certain"


@pytest.mark.parametrize(
    ("line", "label"),
    [
        ("dist.init_process_group('nccl', world_size=4, rank=4)", "rank-mismatch"),
        ("dist.init_process_group('nccl', world_size=4, rank=3)", "unknown"),
        ("dist.init_process_group('nccl', world_size=1, rank=10)", "unknown"),
    ],
)
def test_a_rank_that_a_world_so_small_does_not_have(line: str, label: str) -> None:
    assert said(line).label == label


def test_an_interface_among_others_is_no_choice() -> None:
    listed = "gpu01:1:2 [0] NCCL INFO NET : Using interface {}<0>"
    found = "gpu01:1:2 [0] NCCL INFO NET/Socket : {} interfaces found"
    bridge = listed.format("virbr0:192.168.122.1")
    assert said(bridge, found.format(1)).label == "wrong-interface"
    assert said(listed.format("eno2:10.0.0.9"), bridge, found.format(2)).label == "unknown"


def test_an_exception_that_was_raised_from_a_lost_connection_says_no_more_than_that() -> None:
    inner = ["Traceback (most recent call last):", '  File "store.py", line 1, in get', "    f()"]
    mark = "The above exception was the direct cause of the following exception:"
    outer = [
        "Traceback (most recent call last):",
        '  File "run.py", line 33, in <module>',
        "    main()",
        "RendezvousConnectionError: The connection to the C10d store has failed.",
    ]
    lost = said(*inner, "RuntimeError: Broken pipe", "", mark, "", *outer)
    assert lost.label == "peer-died-timeout"
    # Raised from one that never met its peer, and beside one that lost it, it stands.
    never = said(*inner, "RuntimeError: connect() timed out.", "", mark, "", *outer)
    beside = said(*inner, "RuntimeError: Broken pipe", "", *outer)
    assert (never.label, beside.label) == ("firewall-ports", "firewall-ports")
