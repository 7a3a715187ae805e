"""Several files in one log, as tail prints them: told apart, and their lines keep their numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.diagnose.logs import diagnose_lines, diagnose_sources
from remedy.diagnose.scanner.parts import PASTE, parts_of
from remedy.diagnose.scanner.reader import Source, blocks_of, from_text

STEPS = [f"step {number} loss {3 - number / 100:.2f}" for number in range(10, 60, 10)]
LOST = "OSError: [Errno 28] No space left on device: '/ckpt/a'"


def texts(log: str) -> dict[str, str]:
    source = from_text("job.log", log.encode())
    parts, _ = parts_of(source, *blocks_of(source))
    return {part.name: b"".join(part.read()).decode() for part in parts}


def test_each_file_is_a_log_of_its_own() -> None:
    log = ["==> rank0.log <==", *STEPS, "", "==> rank1.log <==", STEPS[0], LOST]
    assert list(texts("\n".join(log))) == ["job.log/rank0.log", "job.log/rank1.log"]
    found = diagnose_lines({"job.log": log})
    assert found.label == "disk-full"
    assert found.lead is not None
    assert (found.lead.file, found.lead.line, found.lead.rank) == ("job.log/rank1.log", 10, 1)


def test_what_one_rank_outlived_another_did_not() -> None:
    log = ["==> a <==", LOST, "==> b <==", *STEPS, "Training completed"]
    assert diagnose_lines({"job.log": log}).label == "disk-full"


def test_a_log_that_names_no_files_stays_whole() -> None:
    assert texts("step 1\nfor x in ==> here <== there") == {}
    assert texts("==> only <==\nstep 1") == {}
    assert texts("") == {}


def test_what_stands_before_the_first_file_is_kept() -> None:
    assert texts("started\n==> a <==\none\n==> b <==\ntwo") == {
        "job.log/a": "\n\none",
        "job.log/b": "\n\n\n\ntwo",
        "job.log": "started",
    }


@given(st.lists(st.tuples(st.sampled_from("abc"), st.text("xy \t", max_size=8)), max_size=20))
def test_no_line_is_lost_and_each_keeps_its_number(rows: list[tuple[str, str]]) -> None:
    log = [line for name, text in rows for line in (f"==> {name} <==", text)]
    parts = texts("\n".join(log))
    if parts:
        kept = {
            (number, line)
            for text in parts.values()
            for number, line in enumerate(text.split("\n"))
            if line
        }
        assert kept == {(n, line) for n, line in enumerate(log) if n % 2 and line}


JOB = [f"it {number} loss 0.{99 - number}" for number in range(10, 60, 10)]
KERNEL = "[Wed Mar  6 20:{0}:44 2024] {1}"
STALLS = KERNEL.format(10, "nfs: server 10.0.0.9 not responding, still trying")
WAITED = (
    "[rank1]:[E306 20:40:44.1 ProcessGroupNCCL.cpp:632] [Rank 1] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=91, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran for 1800000 ms"
)


def test_what_hosts_say_below_a_job_is_a_log_of_its_own() -> None:
    log = [*JOB, "$ ssh gpu01 dmesg -T", STALLS, "$ free -g"]
    assert texts("\n".join(log)) == {
        "job.log": "\n".join([*JOB, "$ ssh gpu01 dmesg -T", "", "$ free -g"]),
        "job.log//host": "\n" * 6 + STALLS,
    }


def test_a_job_that_goes_on_below_what_its_host_said_outlived_it() -> None:
    assert texts("\n".join([*JOB, STALLS, *JOB])) == {}


def test_a_file_that_is_called_host_is_a_log_like_others() -> None:
    lacks = "OSError: [Errno 28] No space left on device: '/ckpt/a'"
    found = diagnose_lines(
        {"logs/host": [*JOB, lacks], "logs/other": [*JOB, "Training completed."]}
    )
    assert (found.label, found.confidence) == ("disk-full", "certain")


def test_a_log_of_a_host_alone_stays_whole() -> None:
    assert texts("\n".join([STALLS] * 9)) == {}
    assert texts("\n".join([*JOB[:2], STALLS])) == {}


def test_a_stall_that_ended_too_late_is_why_ranks_waited() -> None:
    def label(minute: int) -> str:
        back = KERNEL.format(minute, "nfs: server 10.0.0.9 OK")
        return diagnose_lines({"job.log": [*JOB, WAITED, "--- dmesg ---", STALLS, back]}).label

    assert label(49) == "storage-fault"
    assert label(11) == "peer-died-timeout"


def test_what_a_host_reports_of_a_card_that_the_job_did_not_need_ends_no_job() -> None:
    unplugged = KERNEL.format(
        10, "mlx5_core 0000:5e:00.0: Port module event: module 0, Cable unplugged"
    )
    lost = KERNEL.format(10, "NVRM: Xid (PCI:0000:4f:00): 79, GPU has fallen off the bus.")
    done = "Training completed."
    assert diagnose_lines({"job.log": [*JOB, done, "--- dmesg ---", unplugged]}).label == "healthy"
    waited = [*JOB, WAITED, "--- dmesg ---", unplugged]
    assert diagnose_lines({"job.log": waited}).label == "ib-link-fault"
    found = diagnose_lines({"job.log": [*JOB, done, "--- dmesg ---", lost]})
    assert found.label == "healthy"
    assert [candidate.label for candidate in found.candidates] == ["gpu-hardware-xid"]
    # A job that reports a failure itself is not excused by another one that ended well.
    wrong = [
        "# Out of bounds values : 6 FAILED",
        "$ ./all_reduce_perf -g 4",
        "# Out of bounds values : 0 OK",
    ]
    fault = KERNEL.format(
        10, "nvidia 0000:41:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x002b]"
    )
    found = diagnose_lines({"job.log": [*JOB, *wrong, "--- dmesg ---", fault]})
    assert found.label == "p2p-acs-iommu"


def test_a_daemon_that_was_killed_is_none_of_the_jobs() -> None:
    def label(program: str) -> str:
        text = f"Memory cgroup out of memory: Killed process 771 ({program}) total-vm:61184kB, anon-rss:2601kB"
        own = "KeyError: 'completion'"
        trace = [
            "Traceback (most recent call last):",
            '  File "/app/a.py", line 1, in main',
            "    a[b]",
            own,
        ]
        return diagnose_lines({"job.log": [*JOB, *trace, KERNEL.format(10, text)]}).label

    assert label("fluent-bit") == "application-error"
    assert label("python3") == "host-oom"


def test_what_only_a_host_says_is_not_certain_where_the_job_says_something_else() -> None:
    killed = KERNEL.format(
        10, "Out of memory: Killed process 771 (python3) total-vm:61184kB, anon-rss:2601kB"
    )
    full = "OSError: [Errno 28] No space left on device: '/ckpt/a'"
    alone, beside = (diagnose_lines({"job.log": [*JOB, *own, killed]}) for own in ([], [full]))
    assert (alone.label, alone.confidence) == ("host-oom", "certain")
    assert (beside.label, beside.confidence) == ("host-oom", "likely")
    assert "only a host's log names this" in " ".join(beside.notes)
    assert "disk-full" in [candidate.label for candidate in beside.candidates]


@pytest.mark.parametrize("cut", ["it 30", "number 4", "$ tail", "Errno"])
def test_a_log_that_comes_in_pieces_is_the_same_log(cut: str) -> None:
    full = "OSError: [Errno 28] No space left on device: '/ckpt/a'"
    plain = KERNEL.format(10, "usb 1-1: new high-speed USB device number 4")
    data = "\n".join([*JOB, "$ dmesg -T", plain, "$ tail -1 job.log", full]).encode()
    at = data.index(cut.encode())
    pieces = [data[:at], data[at:]]
    found = diagnose_sources([Source("-", lambda: iter(pieces))])
    assert found.label == "disk-full"
    assert found.lead is not None
    assert (found.lead.file, found.lead.line) == ("-", 9)


def test_a_long_log_is_no_paste() -> None:
    data = "\n".join([*JOB, STALLS, "x" * PASTE]).encode()
    source = Source("job.log", lambda: iter([data[:500], data[500:]]))
    parts, blocks = parts_of(source, *blocks_of(source))
    assert parts == ()
    assert b"".join(blocks) == data
