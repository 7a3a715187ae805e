"""What a line is: a warning that another is gone, a setting, a command, an answer of a tool, or a failure."""

from __future__ import annotations

import pytest

from remedy.diagnose.logs import diagnose_lines

STEPS = [
    f"iteration {n}/ 20 | lm loss: {9 - n / 10:.4f} | learning rate: 1.0E-05" for n in range(20)
]
STORE = [
    (
        "[rank3]:[W403 11:49:27.818398188 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=102, "
        "addr=[::]:1727, remote=[fd00::1]:1842): Failed to recv, got 0 bytes. Connection was likely closed. "
        "Did the remote server shutdown or crash?"
    ),
    (
        "Exception raised from recvBytes at /pytorch/torch/csrc/distributed/c10d/Utils.hpp:682 (most recent "
        "call first):"
    ),
    "frame #0: c10::Error::Error(c10::SourceLocation, std::__cxx11::basic_string<char>) + 0x80 ",
    "frame #5: c10d::ProcessGroupNCCL::HeartbeatMonitor::runLoop() + 0x3c8 (0x7f1d7a618868)",
    (
        "[rank3]:[W403 11:49:27.822031915 ProcessGroupNCCL.cpp:1771] [PG ID 0 PG GUID 0(default_pg) Rank 3] "
        'Failed to check the "should dump" flag on TCPStore, (maybe TCPStore server has shut down too early), '
        "with error: Broken pipe"
    ),
]


def test_a_store_that_leaves_first_is_how_a_good_run_ends() -> None:
    end = (
        "[2026-04-03 11:49:30,177] [INFO] [launch.py:367:main] Process 2472921 exits successfully."
    )
    diagnosis = diagnose_lines({"log": [*STEPS, *STORE, end]})
    assert diagnosis.label == "healthy"


def test_a_process_that_ended_well_says_nothing_of_another() -> None:
    well = "[INFO] [launch.py:367:main] Process 2472921 exits successfully."
    end = "[ERROR] [launch.py:321:sigkill_handler] ['python', 't.py'] exits with return code = 1"
    assert diagnose_lines({"log": [*STEPS, well, end]}).label != "healthy"


def test_a_launcher_that_ends_the_rest_saw_another_fail() -> None:
    well = "[INFO] [launch.py:347:main] Process 3668201 exits successfully."
    rest = "[INFO] [launch.py:319:sigkill_handler] Killing subprocess 3668202"
    end = "[INFO] [launch.py:328:sigkill_handler] Main process received SIGTERM, exiting"
    assert diagnose_lines({"log": [*STEPS, well, rest, end]}).label == "unknown"


def test_a_store_that_is_gone_proves_nothing_by_itself() -> None:
    diagnosis = diagnose_lines({"log": STORE})
    assert diagnosis.label == "unknown"
    assert diagnosis.candidates[0].label == "peer-died-timeout"


@pytest.mark.parametrize(
    "line",
    [
        (
            "0: _CUDA_COMPAT_STATUS=System has unsupported display driver / cuda driver combination "
            "(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)"
        ),
        "checking whether clock skew breaks make... no",
        "[2026-06-07 12:15:50] server_args=ServerArgs(model_path='q', hccl_connect_timeout=None, tp_size=1)",
        "fill_size=8192, chunking=False, max_prefill_tokens=16384, policy='fcfs', hccl_timeout=600, x=1",
        (
            "Starting node, node_ip='192.168.0.184' other_args=['--nnodes', '2', '--device', 'npu', "
            "'--hccl-timeout', '600']"
        ),
        "OOM killer disabled.",
        "  'f:conditions': {'k:{\"type\":\"DiskPressure\"}': {'f:lastHeartbeatTime': {}},",
        "I0513 14:12:16.507035 23409115776832 utils.py:151] Running: eval --model=models/000053.minigo",
        (
            "gpu01:533746:534200 [2] proxy.cc:1458 NCCL WARN [Service thread] Accept failed Resource "
            "temporarily unavailable"
        ),
        (
            "Could not cache non-existence of file. Will ignore error and continue. Error: [Errno 30] "
            "Read-only file system: '/root/.cache/x'"
        ),
        "tests/test_names.py::test_error_text[Expected to mark a variable ready only once] PASSED",
        "[       OK ] ErrorNames/GetErrorString.Known/hipErrorLaunchFailure (0 ms)",
        "gpu01: [       OK ] CublasStatus.ToString/CUBLAS_STATUS_NOT_INITIALIZED (0 ms)",
        'test_error_strings: cuGetErrorString(999) == "unknown error" ... ok',
        "SKIPPED [4] tests/test_gpu_ops.py:31: Torch not compiled with CUDA enabled",
        'slurm_jobs{partition="train",state="OUT_OF_MEMORY"} 0',
        "amdgpu 0000:63:00.0: socket: 0, die: 0, 0 new uncorrectable hardware errors detected in umc block",
        "[INFO] DMP: device 3: hbm multi bit ecc error count: 0, single bit 2",
        "+ grep -c 'Invalid value when checking the pattern at' /var/log/nvbandwidth.log",
        "gpu01: + grep -c 'Invalid value when checking the pattern at' /var/log/nvbandwidth.log",
    ],
)
def test_what_is_printed_of_settings_and_questions_is_no_failure(line: str) -> None:
    assert diagnose_lines({"log": [line, "nothing else"]}).label == "unknown"


@pytest.mark.parametrize(
    ("line", "label"),
    [
        (
            (
                "RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: "
                "CollectiveFingerPrint(SequenceNumber=41, OpType=ALLREDUCE, TensorShape=[128], "
                "TensorDtypes=Float, TensorDeviceTypes=TensorOptions(dtype=float (default)))"
            ),
            "application-error",
        ),
        (
            "rank 0 failed: RuntimeError: CUDA error: an illegal memory access was encountered",
            "application-error",
        ),
        (
            "1 failed, 0 failed to start: OSError: [Errno 28] No space left on device: '/ckpt/a'",
            "disk-full",
        ),
        (
            "run=Config(lr=0.1): OSError: [Errno 28] No space left on device: '/ckpt/a'",
            "disk-full",
        ),
    ],
)
def test_a_failure_that_shows_settings_is_one(line: str, label: str) -> None:
    assert diagnose_lines({"log": [line]}).label == label


SUCCESS = (
    ':::MLLOG {"namespace": "", "time_ms": 1745354278263, "event_type": "INTERVAL_END", "key": "run_stop", '
    '"value": null, "metadata": {"file": "engine.py", "lineno": 315, "status": "success"}}'
)


@pytest.mark.parametrize(
    ("success", "label"), [(SUCCESS, "healthy"), (SUCCESS.replace("success", "aborted"), "unknown")]
)
def test_what_stands_around_a_stated_success_is_no_failure_of_the_run(
    success: str, label: str
) -> None:
    before = "[2021-10-18 23:19:48.4: W horovod/common/stall_inspector.cc:105] One or more tensors "
    before += (
        "were submitted to be reduced, gathered or broadcasted by subset of ranks and are waiting"
    )
    after = "n1:533746:534200 [2] proxy.cc:1458 NCCL WARN [Service thread] Accept failed Resource temporarily"
    answer = diagnose_lines({"log": [before, success, after]}).label
    assert (answer == "healthy") == (label == "healthy")


def test_a_stated_success_excuses_no_rank_that_was_killed() -> None:
    killed = "torch.distributed.elastic ERROR: failed (exitcode: -9) local_rank: 3 (pid: 812)"
    assert diagnose_lines({"log": [SUCCESS, killed]}).label != "healthy"


@pytest.mark.parametrize(
    "after",
    [
        ["OSError: [Errno 28] No space left on device: '/ckpt/checkpoint-0.pt'"],
        [
            "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer"
        ],
        [
            *(f"iteration {n}/ 90 | lm loss: {n / 7:.4f}" for n in range(40)),
            "ValueError: no such mask",
        ],
    ],
)
def test_a_success_excuses_no_run_that_follows_it_in_the_same_log(after: list[str]) -> None:
    assert diagnose_lines({"log": [*STEPS, SUCCESS, *after]}).label != "healthy"


def test_a_name_that_was_answered_later_is_no_fault() -> None:
    lines = [
        "2023-05-16T20:58:52.531906663Z ** server can't find lammps-0.flux.svc: NXDOMAIN",
        "2023-05-16T20:58:52.534023283Z Server is not ready",
        "2023-05-16T20:58:52.587126702Z Name:\tlammps-0.flux.svc",
        "2023-05-16T20:58:52.587273838Z Address: 10.116.3.4",
    ]
    assert diagnose_lines({"log": lines}).label == "unknown"
    assert diagnose_lines({"log": lines[:2]}).label == "hostname-unresolvable"


def test_a_loss_that_was_in_a_buffer_is_no_progress() -> None:
    loss = "{'loss': 1.4358, 'learning_rate': 6.5e-05, 'epoch': 0.52}"
    lines = [
        *(loss.replace("0.52", f"0.{n}") for n in range(10, 30)),
        "Traceback (most recent call last):",
        '  File "/opt/train.py", line 281, in save_file',
        (
            "safetensors_rust.SafetensorError: Error while serializing: IoError(Os { code: 122, kind: "
            'FilesystemQuotaExceeded, message: "Disk quota exceeded" })'
        ),
        loss,
    ]
    assert diagnose_lines({"log": lines}).label == "disk-full"


def test_where_numpy_was_imported_is_no_exception() -> None:
    lines = [
        "We expect that some modules will need time to support NumPy 2.",
        'Traceback (most recent call last):  File "/opt/train.py", line 4, in <module>',
        "    import torch",
        "Hostname: gpu01, Rank: 3",
        *STEPS,
        "Training finished",
    ]
    assert diagnose_lines({"log": lines}).label == "healthy"


def test_a_link_that_ip_lists_has_no_rank() -> None:
    line = "3: ib0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 4092 qdisc mq state DOWN group default"
    lead = diagnose_lines({"log": [line]}).lead
    assert lead is not None
    assert lead.rank is None


@pytest.mark.parametrize(
    ("line", "label"),
    [
        ("[Error] HOSTFILE is required when PP>1", "application-error"),
        ("0: Error: HOSTFILE must be set", "application-error"),
        ("Error: the tracker cannot use this interface", "unknown"),
        ("srun: error: something that nobody knows", "unknown"),
    ],
)
def test_an_error_in_words_of_the_program_is_its_own_unless_it_is_about_a_host(
    line: str, label: str
) -> None:
    diagnosis = diagnose_lines({"log": ["start", line]})
    assert diagnosis.label == label
    assert diagnosis.confidence in ("possible", "none")


def test_a_warning_far_from_a_quiet_end_is_not_certain() -> None:
    warning = "WARNING on proc 0: Cannot open log.lammps for writing: Read-only file system (lammps.cpp:511)"
    rest = [f"atoms of domain {n} are placed" for n in range(60)]
    assert diagnose_lines({"log": [warning, *rest]}).confidence == "likely"


@pytest.mark.parametrize(
    "text",
    [
        "On the node I see an OOM kill, so I raised memory to 400Gi.",
        "I already checked: no space left on device is not it.",
        "I tried the fix for 'Address already in use' first.",
    ],
)
def test_what_somebody_looked_for_is_nothing_that_happened(text: str) -> None:
    assert diagnose_lines({"log": [text]}).label == "unknown"


def test_what_somebody_gets_happened() -> None:
    text = "I get OSError: [Errno 98] Address already in use, each time."
    assert diagnose_lines({"log": [text]}).label == "master-port-in-use"


@pytest.mark.parametrize(("percent", "label"), [("88.8", "host-oom"), ("61.4", "unknown")])
def test_a_kill_where_memory_was_nearly_full_is_for_memory(percent: str, label: str) -> None:
    memory = f"[INFO] [utils.py:811] CPU Virtual Memory:  used = 447.3 GB, percent = {percent}%"
    killed = (
        "[ERROR] [launch.py:321:sigkill_handler] ['python', 'train.py'] exits with return code = -9"
    )
    assert diagnose_lines({"log": [memory, killed]}).label == label
    assert diagnose_lines({"log": [memory]}).label == "unknown"
