"""Good ends that are not believed, and failures that a run survived."""

from __future__ import annotations

import pytest

from remedy.diagnose.logs import diagnose_lines

TOO_OLD = (
    "/opt/venv/lib/python3.11/site-packages/torch/cuda/__init__.py:129: UserWarning: CUDA initialization: The "
    "NVIDIA driver on your system is too old (found version 11040)."
)
STEPS = [f"step {step} loss {8 - step / 100:.2f}" for step in range(100, 600, 100)]
END = "Training completed after 20 iterations at 2025-02-25 17:24:57."
KILLED = "srun: error: gpu07: task 7: Killed"
LOST = "torch.distributed.DistBackendError: NCCL communicator was aborted on rank 0."


def _alone(rank: str, count: int) -> list[str]:
    return [f"I0214 11:20:3{n}.11 1402113 pretrain.py:88] {rank}" for n in range(count)]


@pytest.mark.parametrize(
    "device", ["device: cpu (cuda not available)", "GPU available: False, used: False"]
)
def test_a_run_without_the_gpu_that_it_looked_for_is_no_good_run(device: str) -> None:
    found = diagnose_lines({"log": [TOO_OLD, device, *STEPS, END]})
    assert (found.label, found.confidence) == ("driver-mismatch", "likely")
    assert "on the CPU" in found.notes[0]


@pytest.mark.parametrize("device", ["device: cuda:0", "epoch 1"])
def test_a_run_that_may_have_had_its_gpu_is_a_good_one(device: str) -> None:
    assert diagnose_lines({"log": [TOO_OLD, device, *STEPS, END]}).label == "healthy"


def test_a_run_on_the_cpu_that_misses_nothing_is_a_good_one() -> None:
    assert diagnose_lines({"log": ["device: cpu", *STEPS, END]}).label == "healthy"


def test_processes_that_were_each_alone_made_no_job_together() -> None:
    found = diagnose_lines({"log": [*_alone("JAX process: 0 / 1", 4), *STEPS, END]})
    assert found.label == "rank-mismatch"
    assert "each alone" in found.notes[0]


def test_processes_that_ran_one_after_the_other_were_to_be_alone() -> None:
    run = [*_alone("JAX process: 0 / 1", 1), *STEPS]
    assert diagnose_lines({"log": [*run, *run, END]}).label == "healthy"


@pytest.mark.parametrize(("rank", "count"), [("JAX process: 0 / 1", 1), ("JAX process: 0 / 4", 4)])
def test_a_process_that_is_one_of_many_or_was_started_alone_is_well(rank: str, count: int) -> None:
    assert diagnose_lines({"log": [*_alone(rank, count), *STEPS, END]}).label == "healthy"


@pytest.mark.parametrize("failure", [KILLED, LOST])
def test_a_failure_amid_the_work_of_a_run_that_ended_well_was_survived(failure: str) -> None:
    log = [*STEPS[:2], failure, *STEPS[2:]]
    assert diagnose_lines({"log": [*log, END]}).label == "healthy"


@pytest.mark.parametrize(
    "log",
    [
        [KILLED, *STEPS, END],
        [*STEPS, KILLED, END],
        [*STEPS[:4], KILLED, STEPS[4], END],
        [*STEPS[:2], KILLED, *STEPS[2:], END, KILLED],
    ],
    ids=["before the work", "after it", "before the last step", "once more"],
)
def test_a_failure_that_is_not_amid_the_work_was_survived_by_nobody(log: list[str]) -> None:
    assert diagnose_lines({"log": log}).label != "healthy"


def test_what_tests_provoked_is_no_failure() -> None:
    log = ["tests/test_faults.py::test_peer", KILLED, LOST, "PASSED"]
    summary = "============= {} in 48.22s ============="
    assert diagnose_lines({"log": [*log, summary.format("7 passed, 1 xfailed")]}).label == "healthy"
    assert diagnose_lines({"log": [*log, summary.format("1 failed, 6 passed")]}).label != "healthy"


def test_steps_that_were_left_out_of_a_paste_were_made() -> None:
    """Who pastes a log keeps a step of each kind."""
    library = (
        "ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory"
    )
    log = [
        "Traceback (most recent call last):",
        '  File "a.py", line 9, in <module>',
        library,
        STEPS[0],
    ]
    assert diagnose_lines({"log": log}).confidence == "certain"
    assert diagnose_lines({"log": [*log, "..."]}).confidence == "likely"


SOCKETS = "n1:71204:71262 [0] NCCL INFO Using network Socket"
UCX = "[1742311120.311008] [n1:38870:0]  ucp_worker.c:1888 UCX  INFO  ep_cfg[2]: tag({}/{})"
IBSTAT = ["\t\tState: Active", "\t\tRate: {}"]


@pytest.mark.parametrize(
    ("sent", "there", "label"),
    [
        (SOCKETS, ["provider: efa"], "efa-plugin-missing"),
        (SOCKETS, [line.format(400) for line in IBSTAT], "ib-misconfig"),
        (UCX.format("tcp", "eno1"), [line.format(200) for line in IBSTAT], "mpi-nic-mismatch"),
        (UCX.format("tcp", "eno1"), [line.format(10) for line in IBSTAT], "healthy"),
        (UCX.format("rc_mlx5", "mlx5_0:1"), [line.format(200) for line in IBSTAT], "healthy"),
        (SOCKETS, [], "healthy"),
    ],
)
def test_a_network_that_is_there_and_was_not_used(sent: str, there: list[str], label: str) -> None:
    assert diagnose_lines({"log": [sent, *STEPS, END, *there]}).label == label


def test_a_run_that_could_not_write_is_no_good_run() -> None:
    room = "OSError: [Errno 28] No space left on device: '/data/out/checkpoint-800'"
    log = [*STEPS[:2], room, *STEPS[2:], END]
    assert diagnose_lines({"log": log}).label == "disk-full"
    nearly = "(raylet) /tmp/ray is over 95% full, available space: 20 GB. Object creation will fail"
    assert diagnose_lines({"log": [*STEPS[:2], nearly, *STEPS[2:], END]}).label == "healthy"


def test_what_failed_again_after_steps_was_not_got_over() -> None:
    bus = (
        "ERROR: Unexpected bus error encountered in worker. "
        "This might be caused by insufficient shared memory (shm)."
    )
    once = [*STEPS[:2], bus, bus, *STEPS[2:], END]
    assert diagnose_lines({"log": once}).label == "healthy"
    again = [*STEPS[:2], bus, *STEPS[2:4], bus, STEPS[4], END]
    assert diagnose_lines({"log": again}).label == "shm-too-small"


def test_a_host_that_could_not_be_reached_is_not_part_of_what_ended_well() -> None:
    log = ["[sweep] pair s1,s4", "Host key verification failed.", "[sweep] pair s2,s3"]
    good = "# Out of bounds values : 0 OK"
    assert diagnose_lines({"log": [*log, good]}).label == "ssh-launch-failure"


def test_what_a_good_run_outlived_is_named_below_it() -> None:
    disabled = "n1:21:29 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'"
    found = diagnose_lines({"log": [disabled, *STEPS, END]})
    assert (found.label, [c.label for c in found.candidates]) == ("healthy", ["gdr-peermem"])


NO_NAME = "ssh: Could not resolve hostname worker-0.bench.svc: Name or service not known"
RANK = "#  Rank  0 Group  0 Pid     61 on {} device  0 [0000:19:00] NVIDIA H100 80GB HBM3"
GOOD = "# Out of bounds values : 0 OK"


def test_a_host_that_is_heard_of_later_was_reached() -> None:
    reached = [NO_NAME, NO_NAME, RANK.format("worker-0"), *STEPS, GOOD]
    assert diagnose_lines({"log": reached}).label == "healthy"
    others = [NO_NAME, NO_NAME, RANK.format("worker-1"), *STEPS, GOOD]
    assert diagnose_lines({"log": others}).label == "hostname-unresolvable"


def test_nothing_is_certain_above_a_good_end() -> None:
    assert diagnose_lines({"log": [NO_NAME]}).confidence == "certain"
    found = diagnose_lines({"log": [NO_NAME, GOOD]})
    assert found.confidence == "likely"
    assert "a line below it says that all went well" in found.notes[-1]


def test_what_went_on_from_what_was_kept_needs_no_steps_to_end_well() -> None:
    trial = "INFO tune_controller.py:1493 -- Trial t7: attempting to restore from checkpoint c4"
    lost = "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task."
    assert diagnose_lines({"log": [lost, trial, END]}).label == "healthy"
    assert diagnose_lines({"log": [lost, END]}).label != "healthy"
    assert diagnose_lines({"log": [lost, trial]}).label != "healthy"


def test_files_that_were_not_written_are_no_good_end_unless_their_server_came_back() -> None:
    lost = "WARNING - saving e.pth failed: [Errno 5] Input/output error: '/lustre/p/e.pth', skip"
    assert diagnose_lines({"log": [*STEPS[:2], lost, *STEPS[2:], END]}).label == "storage-fault"
    server = "nfs: server nas2 {}"
    gone, back = server.format("not responding, still trying"), server.format("OK")
    assert diagnose_lines({"log": [*STEPS[:2], gone, back, *STEPS[2:], END]}).label == "healthy"


DASK = "2025-02-20 14:19:58,311 - distributed."
OVER = f"{DASK}nanny.memory - WARNING - Worker tcp://a:35 (pid=61) exceeded 95% memory budget. Restarting..."
GAVE_UP = f"{DASK}scheduler - ERROR - Task 'x' marked as failed because 4 workers died while trying to run it"
CLOSED = f"{DASK}scheduler - INFO - Closing scheduler. Reason: scheduler-close"


def test_a_worker_of_dask_that_came_back_failed_nobody_and_a_task_that_was_given_up_did() -> None:
    again = [OVER, f"{DASK}nanny - WARNING - Restarting worker"]
    good = diagnose_lines({"log": [*again, "wrote 1204 rows", "Total time: 611.4", CLOSED]})
    assert good.label == "healthy"
    assert diagnose_lines({"log": [*again, GAVE_UP, CLOSED]}).label == "host-oom"


def test_tests_that_passed_excuse_what_stands_above_them_alone() -> None:
    tests = "============= 7 passed in 48.22s ============="
    run = [TOO_OLD, "device: cpu", *STEPS, END]
    assert diagnose_lines({"log": [tests, *run]}).label == "driver-mismatch"
    assert diagnose_lines({"log": [*run, tests]}).label == "healthy"
