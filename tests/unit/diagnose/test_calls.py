"""What ended at its other end, and what was never reached, is no error of the program and no healthy run."""

from __future__ import annotations

import pytest

from remedy.diagnose.logs import diagnose_lines

CALL = """\
Traceback (most recent call last):
  File "/root/train.py", line 95, in main
    mean = reduce(request, timeout=15)
grpc._channel._InactiveRpcError: <_InactiveRpcError of RPC that terminated with:
\tstatus = StatusCode.{status}
\tdetails = "workers [1] did not push step 8"
>"""
STEPS = [f"gpu01: step {number} loss 0.5" for number in range(20)] + ["gpu01: training finished"]


@pytest.mark.parametrize(
    ("status", "label"),
    [
        ("ABORTED", "peer-died-timeout"),
        ("CANCELLED", "peer-died-timeout"),
        ("INVALID_ARGUMENT", "application-error"),
        ("UNIMPLEMENTED", "application-error"),
    ],
)
def test_the_status_of_a_call_says_whose_end_it_was(status: str, label: str) -> None:
    answer = diagnose_lines({"log": CALL.format(status=status).splitlines()})
    assert answer.label == label


@pytest.mark.parametrize("launcher", ["gpu77: ", "pdsh@gpu01: gpu77: ", ""])
def test_a_host_without_an_address_is_not_made_up_for_by_others(launcher: str) -> None:
    line = f"{launcher}ssh: Could not resolve hostname gpu77: Temporary failure in name resolution"
    answer = diagnose_lines({"log": [line, *STEPS]})
    assert answer.label == "hostname-unresolvable"
    assert "gpu77" in str(answer.lead)


def test_a_server_of_the_web_without_an_address_is_none_of_the_jobs_hosts() -> None:
    line = "ssh: Could not resolve hostname github.com: Temporary failure in name resolution"
    assert diagnose_lines({"log": [line, *STEPS]}).label == "healthy"


@pytest.mark.parametrize("path", ["/sys/fs/cgroup/job/cgroup.procs", "/proc/sys/vm/overcommit"])
def test_what_the_kernel_lets_nobody_write_is_hardly_the_storage(path: str) -> None:
    line = f"job.sh: 3: cannot create {path}: Read-only file system"
    assert diagnose_lines({"log": [line]}).confidence == "possible"
    kept = diagnose_lines({"log": [line.replace(path, "/ckpt/step-8.pt")]})
    assert (kept.label, kept.confidence) == ("storage-fault", "certain")
