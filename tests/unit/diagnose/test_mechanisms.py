"""What a log says beside its error texts: steps that go on or stop, cut heads, who is behind."""

from __future__ import annotations

import os
import random

import pytest

from remedy.diagnose.logs import diagnose_lines

MEMLOCK = (
    "[1700000000.1] [gpu01:221:0] ib_md.c:293  UCX  WARN memlock limits are set too low, "
    "Please set max locked memory (ulimit -l) to 'unlimited'"
)
WARNED = "UserWarning: of something that comes to nothing"
STEPS = [f"2026-01-01 10:00:{10 * n:02d} step {n} loss {4 - n / 10}" for n in range(5)]
END = "slurmstepd: error: *** STEP 12.0 ON gpu01 CANCELLED AT 2026-01-01T{} DUE TO TIME LIMIT ***"
CONNECT = (
    "gpu01:{pid}:902 [{gpu}] misc/socket.cc:457 NCCL WARN socketStartConnect: Connect to "
    "10.0.0.9<41235> failed : Connection refused"
)
COMPLETE = (
    "gpu01:{pid}:902 [{gpu}] NCCL INFO ncclCommInitRank comm 0x55d rank {gpu} nranks 4 cudaDev {gpu} "
    "nvmlDev {gpu} busId 4000 commId 0x9a1c - Init COMPLETE"
)


def test_steps_after_a_warning_refute_it_and_steps_before_it_do_not() -> None:
    assert diagnose_lines({"log": [MEMLOCK, *STEPS]}).label == "healthy"
    assert diagnose_lines({"log": [*STEPS, MEMLOCK]}).label == "memlock-limit"


def test_the_same_words_again_are_no_step() -> None:
    assert diagnose_lines({"log": [MEMLOCK, *["step 1 loss 3.2"] * 9]}).label == "memlock-limit"


def test_a_rank_that_was_set_up_refutes_its_own_warning_and_not_that_of_another() -> None:
    warned = CONNECT.format(pid=812, gpu=0)
    own = [warned, COMPLETE.format(pid=812, gpu=0)]
    other = [warned, COMPLETE.format(pid=813, gpu=1)]
    assert diagnose_lines({"log": own}).label == "unknown"
    assert diagnose_lines({"log": other}).label == "firewall-ports"


def test_a_job_that_was_ended_long_after_its_last_step_was_a_hang() -> None:
    hang = diagnose_lines({"log": [*STEPS, END.format("14:00:00")]})
    assert (hang.label, hang.confidence) == ("peer-died-timeout", "possible")
    assert any("a hang" in note for note in hang.notes)
    assert diagnose_lines({"log": [*STEPS, END.format("10:00:50")]}).label == "healthy"


@pytest.mark.parametrize(
    ("way", "first"),
    [
        ("P2P/IPC", "p2p-acs-iommu"),
        ("NET/IB/0", "ib-misconfig"),
        ("NET/Socket/0", "firewall-ports"),
    ],
)
def test_a_log_that_stops_in_the_middle_of_a_start_is_a_hang(way: str, first: str) -> None:
    start = [
        f"gpu01:812:901 [0] NCCL INFO Channel {n:02d}/0 : 0[0] -> 1[1] via {way}" for n in range(2)
    ]
    found = diagnose_lines({"log": start})
    assert (found.label, found.candidates[0].label) == ("unknown", first)
    assert any("the log stops" in note for note in found.notes)


def test_bytes_that_are_no_text_are_not_healthy() -> None:
    noise = random.Random(7).randbytes(20_000) + os.linesep.encode()  # noqa: S311 - not for secrets
    text = noise.decode("utf-8", "replace") + "\nstep 1 loss 3\nstep 2 loss 2\n"
    assert diagnose_lines({"log": [text]}).label == "unknown"


def test_a_bandwidth_of_nothing_proves_nothing() -> None:
    end = ["# Out of bounds values : 0 OK", "# Avg bus bandwidth    : {} "]
    assert diagnose_lines({"log": [end[0], end[1].format("182.4")]}).label == "healthy"
    assert diagnose_lines({"log": [end[0], end[1].format("0")]}).label == "rank-mismatch"


def test_one_process_that_prints_twice_is_not_two() -> None:
    row = "#  Rank  0 Group  0 Pid {:6} on  gpu01 device  0 [0000:07:00] NVIDIA H100"
    assert diagnose_lines({"log": [row.format(812), row.format(812)]}).label != "rank-mismatch"
    assert diagnose_lines({"log": [row.format(812), row.format(813)]}).label == "rank-mismatch"


def test_a_traceback_without_its_head_is_read_at_the_beginning_of_a_log() -> None:
    frames = ['  File "/app/train.py", line 3, in main', "    f(1)", "ValueError: batch of 7"]
    for prefix in ("", "[rank1]: ", "2026-01-01 10:00:00,123 ERROR "):
        found = diagnose_lines({"log": [prefix + frame for frame in frames]})
        assert found.label == "application-error"
        assert found.lead is not None
        assert (found.lead.line, found.lead.text) == (3, "ValueError: batch of 7")


WAITED = (
    "[rank{0}]:[E709 17:05:38.1 ProcessGroupNCCL.cpp:632] [Rank {0}] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum={1}, OpType={2}, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600000 ms"
)


def test_the_rank_that_says_nothing_is_named() -> None:
    logs = {f"r{n}": [WAITED.format(n, 12, "ALLREDUCE")] for n in (0, 1, 3)}
    found = diagnose_lines(logs)
    assert found.label == "peer-died-timeout"
    assert any("rank 2 did not say so" in note for note in found.notes)


def test_the_rank_that_is_behind_is_named() -> None:
    logs = {f"r{n}": [WAITED.format(n, 12, "ALLREDUCE")] for n in (0, 1, 2)}
    logs["r3"] = [WAITED.format(3, 11, "BROADCAST")]
    assert any("rank 3 stands at collective 11" in note for note in diagnose_lines(logs).notes)


def test_what_a_program_says_could_have_been_is_no_evidence() -> None:
    guess = (
        "Worker unexpectedly exits with a connection error code 2. End of file. There are some potential root "
        "causes. (1) The process is killed by SIGKILL by OOM killer due to high memory usage. (2) SIGSEGV."
    )
    assert diagnose_lines({"log": [guess]}).label == "peer-died-timeout"
    assert diagnose_lines({"log": [guess, "oom_reaper: reaped process 812"]}).label == "host-oom"


REFUSED = "gpu01:1:2 [0] NCCL WARN Call to ibv_modify_qp failed with error Invalid argument"
ACCESS = (
    "gpu01:1:2 [0] NCCL WARN NET/IB : Got completion with error 4, opcode 1, len 0, vendor err 81"
)
PORTS = "gpu01:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/{}; OOB eth0:10.0.0.9<0>"
DIRECT = "gpu01:1:2 [0] NCCL INFO NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'"


@pytest.mark.parametrize(
    ("lines", "label"),
    [
        ([PORTS.format("IB"), REFUSED], "ib-misconfig"),
        ([PORTS.format("RoCE"), REFUSED], "ib-roce-mixed"),
        ([PORTS.format("IB"), ACCESS], "ib-misconfig"),
        ([DIRECT, ACCESS], "gdr-peermem"),
    ],
)
def test_texts_that_decide_together(lines: list[str], label: str) -> None:
    assert diagnose_lines({"log": lines}).label == label


def test_a_bar_at_its_beginning_is_no_step() -> None:
    bar = "Training Epoch:   {0}%|          | {0}/188 [00:00<?, ?it/s]"
    assert diagnose_lines({"log": [bar.format(0)]}).label == "unknown"
    assert diagnose_lines({"log": [WARNED, bar.format(3)]}).label == "healthy"


def test_a_process_that_is_killed_after_its_exception_was_not_killed_for_nothing() -> None:
    raised = [
        "Traceback (most recent call last):",
        '  File "a.py", line 1, in <module>',
        "ValueError: x",
    ]
    assert diagnose_lines({"log": [*raised, "Killed"]}).label == "application-error"
    assert diagnose_lines({"log": ["Killed"]}).label == "unknown"


@pytest.mark.parametrize(
    ("lines", "label"),
    [
        # A number beside the word can be a setting, or the first step of a hang.
        ([WARNED, "Starting from step 0 (total_tokens=0)"], "unknown"),
        ([WARNED, "# nThread 1 nGpus 4 minBytes 8 step: 2(factor) warmup iters: 5"], "unknown"),
        ([WARNED, "done with step 1", "done with step 2"], "healthy"),
        ([WARNED, "step 1 loss 0.5"], "healthy"),
        ([WARNED, "val_loss: 31.17", "val_loss: 22.90"], "healthy"),
        # What is done before the first step is none.
        (
            [WARNED, "Loading checkpoint shards: 100%|####| 14/14 [01:19<00:00,  5.69s/it]"],
            "unknown",
        ),
        ([WARNED, " 14%|#   | 14/100 [01:19<06:00,  5.69s/it]"], "healthy"),
    ],
)
def test_a_run_goes_on_where_its_steps_follow_each_other(lines: list[str], label: str) -> None:
    assert diagnose_lines({"log": lines}).label == label


def test_hosts_that_met_may_hang_in_their_first_collective() -> None:
    met = "LAUNCH INFO 2022-07-20 12:10:25,860 Run Pod: bpdjev, replicas 2, status ready"
    done = "LAUNCH INFO 2022-07-20 12:19:41,802 Pod completed"
    hang = diagnose_lines({"log": [met]})
    assert hang.label == "unknown"
    assert any("the log stops" in note for note in hang.notes)
    assert diagnose_lines({"log": [met, done]}).label == "healthy"


@pytest.mark.parametrize(
    "text",
    [
        "ValueError: shard 0 is there, but there are other ranks that didn't finish loading",
        "tracker: fatal: worker 3 of this group became unresponsive",
        "tracker: lost all workers",
        "RpcError: keepalive watchdog timeout",
    ],
)
def test_who_speaks_of_others_suffers_from_them(text: str) -> None:
    assert diagnose_lines({"log": ["begin", text]}).label == "peer-died-timeout"


def test_a_field_called_error_reports_what_stands_in_it() -> None:
    record = '{"grpc_status":14,"os_error":"Broken pipe","syscall":"sendmsg"}'
    assert diagnose_lines({"log": ["begin", record]}).label == "peer-died-timeout"
    warning = "UserWarning: strides do not match. This is not an error, but may be slow."
    assert diagnose_lines({"log": ["step 1 loss 3", warning, "step 2 loss 2"]}).label == "healthy"


def test_an_errno_in_words_of_a_library_is_read() -> None:
    text = "OSError: Unable to open file (name = '/data/part.h5', errno = 2, flags = 0)"
    labels = {c.label for c in diagnose_lines({"log": ["begin", text]}).candidates}
    assert {"application-error", "storage-fault"} <= labels


FRAME = '  File "/app/train.py", line 3, in main'


def test_an_exception_that_python_ignored_is_no_failure() -> None:
    ignored = [
        "Exception ignored in: <function Result.__del__ at 0x7ff112867600>",
        "Traceback (most recent call last):",
        FRAME,
        "ImportError: sys.meta_path is None, Python is likely shutting down",
    ]
    assert diagnose_lines({"log": [*STEPS, *ignored, "Training finished"]}).label == "healthy"
    assert diagnose_lines({"log": [*STEPS, *ignored[1:]]}).label == "application-error"
    killed = "[2026-11-26 07:49:54,033: ERROR/MainProcess] Process 'Worker-1' exited with 'signal 9 (SIGKILL)'"
    assert diagnose_lines({"log": [*STEPS, killed, *ignored]}).label == "unknown"


@pytest.mark.parametrize(
    "rule", ["-" * 22, '"""', "", "-- Process 0 terminated with the following error:"]
)
def test_an_exception_whose_message_is_another_traceback_says_nothing_itself(rule: str) -> None:
    lost = "RuntimeError: [gloo/transport/tcp/pair.cc:537] Read error [10.0.0.9]:900: Connection reset by peer"
    outer = [
        "Traceback (most recent call last):",
        FRAME,
        "submitit.core.utils.FailedJobError: Job (task=0) failed during processing with trace:",
        rule,
        "Traceback (most recent call last):",
        FRAME,
    ]
    assert diagnose_lines({"log": [*outer, lost]}).label == "peer-died-timeout"
    own = [*outer[:3], "Something else was printed", *outer[4:], lost]
    assert diagnose_lines({"log": own}).label == "application-error"


def test_what_a_launcher_prints_below_an_exception_is_not_its_message() -> None:
    raised = [
        f"[rank1]: {line}"
        for line in ("Traceback (most recent call last):", FRAME, "KeyError: 'labels'")
    ]
    launcher = ["ERROR:composer.cli.launcher:Rank 1 crashed with exit code 1."]
    assert diagnose_lines({"log": [*raised, *launcher]}).label == "application-error"


def test_an_exception_that_repeats_that_of_another_log_in_fewer_words_is_left_out() -> None:
    missing = "FileNotFoundError: [Errno 2] No such file or directory"
    head = ["Traceback (most recent call last):", FRAME]
    logs = {
        "driver": ["2026-01-01 10:00:00 start", *head, missing],
        "worker": [
            "2026-01-01 10:00:09 task",
            *head,
            f"{missing}: '/mnt/lustre/tokens/shard-00017.bin'",
        ],
    }
    assert diagnose_lines(logs).label == "storage-fault"


@pytest.mark.parametrize(
    ("address", "label"),
    [
        ("http://gpu77:29510", "hostname-unresolvable"),
        ("http://head.train.svc:29510", "hostname-unresolvable"),
        ("https://hub.example.com/api", "application-error"),
    ],
)
def test_an_address_of_the_job_is_none_of_the_web(address: str, label: str) -> None:
    message = (
        f"RuntimeError: failed to connect to {address}: transport error: dns error: "
        "failed to lookup address information: Temporary failure in name resolution"
    )
    raised = ["Traceback (most recent call last):", FRAME, message]
    assert diagnose_lines({"log": raised}).label == label


LABELS = ["Traceback (most recent call last):", FRAME, "KeyError: 'labels'"]
IPV6 = (
    "[W1001 10:00:00.101 socket.cpp:752] [c10d] The IPv6 network addresses of (gpu01, 29500) cannot be "
    "retrieved (gai error: -2 - Name or service not known)."
)


def test_a_program_that_only_warned_and_failed_of_its_own_later_has_its_own_error() -> None:
    assert diagnose_lines({"log": [IPV6]}).label == "hostname-unresolvable"
    assert diagnose_lines({"log": [IPV6, *LABELS]}).label == "application-error"
    # Another failure, or another process, leaves open which of them was first.
    lost = "torch.distributed.DistNetworkError: The client socket has timed out while connecting to (a, 1)"
    assert diagnose_lines({"log": [IPV6, *LABELS, lost]}).label == "hostname-unresolvable"
    ranks = [f"[rank1]: {IPV6}", *(f"[rank0]: {line}" for line in LABELS)]
    assert diagnose_lines({"log": ranks}).label == "hostname-unresolvable"


@pytest.mark.parametrize(
    ("warning", "answer", "label"),
    [
        (
            "nslookup: can't resolve 'bert-master-0'",
            "Name:      bert-master-0",
            "hostname-unresolvable",
        ),
        (
            "gpu01:812:905 [0] NCCL WARN NET/IB : mlx5_0:1 Got async event : port error",
            "gpu01:812:905 [0] NCCL WARN NET/IB : mlx5_0:1 Got async event : port active",
            "ib-link-fault",
        ),
        (
            "nfs: server nas1 not responding, still trying",
            "nfs: server nas1 OK",
            "storage-fault",
        ),
        (
            "E rendezvous.cc:38] This thread has been waiting for `clique` for 10 seconds and may be stuck.",
            "E rendezvous.cc:43] Thread is unstuck! Warning above was a false-positive.",
            "peer-died-timeout",
        ),
        (
            "[2026-10-01 10:00:10,100 E 812 812] gcs_rpc_client.h:179: Failed to connect to GCS at 10.0.0.1",
            "2026-10-01 10:00:20,100 SUCC scripts.py:1063 -- Ray runtime started.",
            "firewall-ports",
        ),
    ],
)
def test_what_was_missing_and_came_is_no_failure(warning: str, answer: str, label: str) -> None:
    assert diagnose_lines({"log": [warning]}).label == label
    answered = diagnose_lines({"log": [warning, answer]})
    assert answered.is_open or answered.label == "unknown"
    assert diagnose_lines({"log": [answer, warning]}).label == label
    assert diagnose_lines({"log": [warning], "other": [answer]}).label == label


def test_another_name_that_was_found_answers_nothing() -> None:
    missing = "nslookup: can't resolve 'bert-master-0'"
    assert diagnose_lines({"log": [missing, "Name:      other-0"]}).label == "hostname-unresolvable"


def test_iterations_without_nan_are_steps_and_a_loss_that_is_nan_is_none() -> None:
    line = "iteration {0}/ 500 | lm loss: 9.{0}E+00 | number of nan iterations:   0 |"
    run = [MEMLOCK, *(line.format(n) for n in range(5))]
    assert diagnose_lines({"log": run}).label == "healthy"
    raised = [
        *LABELS[:2],
        "RuntimeError: Rank 12, device 4: Unexpected result nan (message='found NaN in loss')",
    ]
    assert diagnose_lines({"log": [*run, *raised]}).label == "application-error"


def test_that_one_rank_reached_the_store_answers_nothing_of_another() -> None:
    missing = (
        "[rank{rank}]:[W1127 10:00:00.112 socket.cpp:752] [c10d] The IPv6 network addresses of (head01, 29400) "
        "cannot be retrieved (gai error: -3 - Temporary failure in name resolution)."
    )
    reached = (
        "[rank0]:[I1127 10:00:09.112 socket.cpp:787] [c10d] The client socket has connected to "
        "[head01]:29400"
    )
    alone = diagnose_lines({"log": [missing.format(rank=1), reached]})
    assert alone.label == "hostname-unresolvable"
    assert diagnose_lines({"log": [missing.format(rank=0), reached]}).is_open
