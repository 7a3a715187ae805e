"""What the log of a host reports from before the job's last steps did not end the job."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from remedy.diagnose.logs import diagnose_lines

XID = "NVRM: Xid (PCI:0000:18:00): 63, pid=1, Row Remapper: New row marked for remapping."
KILLED = "Memory cgroup out of memory: Killed process 99120 (python3) total-vm:11GB, anon-rss:9GB"
CLOSED = "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]:40123"


def _kernel(clock: str, text: str, day: str = "Fri Nov 27") -> list[str]:
    return [f"[{day} {clock} 2026] {text}"]


def _rank(rank: int, end: str) -> list[str]:
    """Return a log of eight steps, one a minute from 10:01 on, and a last line."""
    steps = [
        f"2026-11-27 10:0{step}:00 INFO rank={rank} step {step}/8 loss 3.0" for step in range(1, 9)
    ]
    return [*steps, f"2026-11-27 10:08:{30 + rank} {end}"]


FAILED = {
    "rank0.log": _rank(0, f"ERROR {CLOSED}"),
    "rank1.log": _rank(1, "ERROR rank=1 ValueError: bad batch"),
}


@pytest.mark.parametrize(
    ("kernel", "label"),
    [
        (_kernel("10:01:20", KILLED), "application-error"),
        (_kernel("10:08:20", KILLED), "host-oom"),
        (_kernel("03:11:44", XID, "Fri Nov 20"), "application-error"),
        (_kernel("10:08:20", XID), "gpu-hardware-xid"),
        # The same moment in another zone.
        (_kernel("08:08:20", XID), "gpu-hardware-xid"),
        (_kernel("04:38:20", KILLED), "host-oom"),
    ],
    ids=["amid steps", "at the end", "a week before", "card", "zone of hours", "zone of minutes"],
)
def test_a_host_reports_the_cause_only_where_the_job_did_not_go_on(
    kernel: list[str], label: str
) -> None:
    assert diagnose_lines({**FAILED, "dmesg-n1.txt": kernel}).label == label


def test_what_a_host_killed_while_a_job_ended_well_is_nothing_of_the_job() -> None:
    logs: Mapping[str, list[str]] = {
        "rank0.log": _rank(0, "INFO Training finished"),
        "rank1.log": _rank(1, "INFO Training finished"),
        "dmesg-n1.txt": _kernel("10:01:20", KILLED),
    }
    found = diagnose_lines(logs)
    assert (found.label, found.is_open) == ("healthy", False)


SOFTWARE = "NVRM: Xid (PCI:0000:65:00): 31, pid=18, name=python, MMU Fault: ENGINE GRAPHICS"
TAKEN = "2026-11-27 10:00:40 OSError: [Errno 98] Address already in use"


@pytest.mark.parametrize(
    ("clock", "text", "label"),
    [
        # Minutes before a job that found its port taken, and near its end in no zone.
        ("09:41:20", XID, "master-port-in-use"),
        ("09:41:20", KILLED, "master-port-in-use"),
        # Two hours before it by a clock that may be that of another zone.
        ("08:00:20", KILLED, "host-oom"),
        ("10:00:20", KILLED, "host-oom"),
        # What the program did to its card, it would have said itself.
        ("10:00:20", SOFTWARE, "master-port-in-use"),
    ],
)
def test_what_came_before_the_job_is_a_hint(clock: str, text: str, label: str) -> None:
    own = [f"2026-11-27 10:00:{second:02d} INFO started" for second in range(0, 40, 8)]
    found = diagnose_lines({"job.log": [*own, TAKEN, "$ dmesg -T", *_kernel(clock, text)]})
    assert found.label == label
