"""What a terminal shows beside output, as people keep it: prompts, commands, and how they ended."""

from __future__ import annotations

import pytest

from remedy.diagnose.logs import diagnose_lines
from remedy.diagnose.scanner.sessions import commands_of, exit_status, is_prompt, is_typed

STEPS = [f"step {number} loss {9 - number / 10:.3f}" for number in range(10, 40, 10)]
LIMIT = "memlock limit too low: ulimit -l says 64, RDMA needs unlimited"
DMESG = "[Fri Mar 28 06:25:38 2025] NVRM: Xid (PCI:0000:cb:00): 79, pid=812, name=python3, GPU has fallen off the bus."  # noqa: E501
LAUNCH = "[rank6]: RuntimeError: CUDA error: unspecified launch failure"


@pytest.mark.parametrize(
    ("line", "typed", "prompt"),
    [
        ("$ nvidia-smi", True, False),
        ("node0$ torchrun --nnodes=2 train.py", True, False),
        ("ana@gpu01:~/train$ ls", True, False),
        ("(venv) ana@gpu01:~$ python train.py", True, False),
        ("[root@gpu01 ~]# dmesg | tail", True, False),
        ("[gpu01] # ibstat", True, False),
        ("[root@gpu01 ~]# ", False, True),
        ("root@gpu01:~#", False, True),
        ("$", False, True),
        ("# journalctl -k | grep -i xid", True, False),
        ("# nThread 1 nGpus 1 minBytes 8", False, False),
        ("[gpu01] # Avg bus bandwidth    : 0", False, False),
        ("# Out of bounds values : 12 FAILED", False, False),
        ("100% done", False, False),
        ("[rank0] step 3", False, False),
        ("#", False, False),
    ],
)
def test_a_command_is_no_output_and_a_prompt_is_no_command(
    line: str, typed: bool, prompt: bool
) -> None:
    assert (is_typed(line), is_prompt(line)) == (typed, prompt)


def test_the_status_counts_only_where_it_was_asked_for_last() -> None:
    assert exit_status(["done", "$ echo $?", "0"]) == 0
    assert exit_status(["done", "ana@gpu01:~$ echo $?", "1", "ana@gpu01:~$"]) == 1
    assert exit_status(["$ echo $?", "0", "Traceback"]) is None
    assert exit_status(["0"]) is None


def test_commands_are_numbered_as_the_lines_of_their_log() -> None:
    assert commands_of(b"step 1\n$ dmesg\nnothing\nroot@gpu01:~# ls\n", 10) == (11, 13)
    assert commands_of(b"step 1\nstep 2\n", 10) == ()


def test_what_a_command_names_is_no_failure() -> None:
    said = diagnose_lines({"log": [*STEPS, "root@w1:~# ulimit -l", "unlimited", "root@w1:~#"]})
    assert said.label != "memlock-limit"
    assert diagnose_lines({"log": [*STEPS, LIMIT]}).label == "memlock-limit"


def test_a_program_whose_prompt_came_back_has_ended() -> None:
    lone = diagnose_lines({"log": [STEPS[0], "saved"]})
    ended = diagnose_lines({"log": [STEPS[0], "saved", "[root@gpu01 ~]#"]})
    assert lone.label == "unknown"
    assert ended.label == "healthy"
    stopped = diagnose_lines({"log": [STEPS[0], "^C", "[root@gpu01 ~]#"]})
    assert stopped.label != "healthy"


def test_the_steps_of_a_later_command_refute_nothing_of_an_earlier_one() -> None:
    fault = (
        "nvidia 0000:41:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x002b address=0xc00e8000]"
    )
    again = "$ NCCL_P2P_DISABLE=1 torchrun train.py"
    assert diagnose_lines({"log": [fault, again, *STEPS]}).label == "p2p-acs-iommu"
    assert diagnose_lines({"log": [fault, *STEPS]}).label == "healthy"


def test_what_dmesg_was_asked_for_leads_where_it_is_as_good_as_proof() -> None:
    session = ["2025-03-28 06:25:40 step 12 loss 2.1", LAUNCH, "$ ssh hgx3 dmesg -T", DMESG]
    assert diagnose_lines({"log": session}).label == "gpu-hardware-xid"


def test_commands_of_several_hosts_are_compared() -> None:
    launch = "torchrun --nnodes={} --node_rank={} --master_addr=10.0.0.1 train.py"
    waits = "torch.distributed.DistStoreError: Socket Timeout"
    two_first = [f"node{host}$ {launch.format(2, 0)}" for host in (0, 1)]
    assert diagnose_lines({"log": [*two_first, waits]}).label == "rank-mismatch"
    right = [f"node{host}$ {launch.format(2, host)}" for host in (0, 1)]
    assert diagnose_lines({"log": [*right, waits]}).label == "peer-died-timeout"
    differ = [f"node{host}$ {launch.format(2 + host, host)}" for host in (0, 1)]
    causes = diagnose_lines({"log": [*differ, waits]}).candidates
    assert "rank-mismatch" in [cause.label for cause in causes][:2]
