"""What a job outlived is not what ended it: commands of its script, warnings, quoted commands, counts of 0."""

from __future__ import annotations

import pytest

from remedy.diagnose.logs import diagnose_lines

# What stands at the beginning of logs, and ended nothing.
BEFORE = {
    "rm": "rm: cannot remove '/dev/shm/nccl-*': No such file or directory",
    "git": "ssh: Could not resolve hostname github.com: Temporary failure in name resolution",
    "pip": "ERROR: pip's dependency resolver does not currently take into account all the packages that are "
    "installed. This behaviour is the source of the following dependency conflicts.",
    "tensorboard": "E0304 10:00:00.1 program.py:300] TensorBoard could not bind to port 6006, it was already "
    "in use",
    "open mpi": "[n1:211] mca_base_component_repository_open: unable to open mca_mtl_ofi: libefa.so.1: cannot "
    "open shared object file: No such file or directory (ignored)",
    "modprobe": "modprobe: FATAL: Module nvidia_peermem not found in directory /lib/modules/5.15.0-118-generic",
    "hub": "WARNING:urllib3.connectionpool:Retrying (Retry(total=2, connect=None)) after connection broken by "
    "'NewConnectionError(<x>: Failed to establish a new connection: [Errno -3] Temporary failure in name "
    "resolution)': /gpt2",
    "df": "df: /mnt/old: Stale file handle",
    "ulimit": "run.sh: line 3: ulimit: max locked memory: cannot modify limit: Operation not permitted",
    "bitsandbytes": "/opt/py/lib/python3.10/site-packages/bitsandbytes/cuda_setup/main.py:166: UserWarning: "
    "/usr/lib/libcudart.so: cannot open shared object file",
    "ngc": "  [[Forward compatibility was attempted on non supported HW "
    "(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE) cuInit()=804]]",
    "verbs": "libibverbs: Warning: couldn't load driver 'libefa-rdmav34.so': libefa-rdmav34.so: cannot open "
    "shared object file: No such file or directory",
    "trace of a shell": "+ grep -q 'GPU has fallen off the bus' /var/log/dmesg",
    "sudo": "sudo: trainer : TTY=pts/0 ; PWD=/ ; COMMAND=/usr/bin/grep 'No space left on device' log",
    "nothing happened": "ERROR summary: 0 Xid, 0 ECC, 0 NVLink errors",
    "debugging": "[1709542820.1] [n3:881:0]  ib_md.c:214  UCX  DEBUG mlx5_2: CUDA GPUDirect RDMA is disabled",
    "port": "Port 8787 is already in use. Perhaps you already have a cluster running? Hosting the HTTP server "
    "on port 37251 instead",
}
# What ends them, and what that can be.
ENDS = {
    "n1:411:482 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 10.30.0.8<48213> failed : "
    "No route to host": ("firewall-ports", "network-unreachable"),
    "[rank0]: Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 3b000": (
        "duplicate-gpu",
    ),
    "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized": (
        "fabricmanager-not-running",
    ),
    "[rank3]: torch.AcceleratorError: CUDA error: invalid device ordinal": ("device-visibility",),
    "[rank3]: torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered": (
        "gpu-hardware-xid",
    ),
    "gpu-3:901:901 [2] misc/socket.cc:400 NCCL WARN Bootstrap : no socket interface found": (
        "wrong-interface",
    ),
    "OSError: [Errno 122] Disk quota exceeded: '/home/u/out/x.pt'": ("disk-full",),
    "KeyError: 'hidden'": ("application-error",),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("before", BEFORE)
def test_what_ended_a_job_is_the_answer_whatever_was_said_before(before: str, end: str) -> None:
    is_of_python = end.startswith("KeyError")
    ending = ["Traceback (most recent call last):", '  File "train.py", line 41, in main', end]
    lines = ["+ bash run.sh", BEFORE[before], "+ torchrun train.py"]
    found = diagnose_lines({"log": [*lines, *(ending if is_of_python else [end])]})
    assert found.label in ENDS[end], found.lead


@pytest.mark.parametrize(
    "prefix", ["", "0: ", "[1,0]<stderr>:", "2025-03-04T10:00:00.1Z stdout F ", "[rank3]: "]
)
def test_a_command_of_the_script_is_known_behind_what_launchers_put_before_a_line(
    prefix: str,
) -> None:
    lines = (
        BEFORE["df"],
        "Traceback (most recent call last):",
        '  File "t.py", line 1',
        "KeyError: 'x'",
    )
    assert diagnose_lines({"log": [prefix + line for line in lines]}).label == "application-error"


def test_a_warning_leads_where_what_ended_the_job_can_follow_from_it() -> None:
    name = (
        "[W304 11:02:16.101 socket.cpp:752] [c10d] The IPv6 network addresses of (node-0.train, 29500) cannot "
        "be retrieved (gai error: -2 - Name or service not known)."
    )
    ended = (
        "DistNetworkError: The client socket has timed out after 600s while trying to connect to "
        "(node-0.train, 29500)."
    )
    assert diagnose_lines({"log": [name, ended]}).label == "hostname-unresolvable"
    # Ranks had met before NCCL asked for an interface.
    nccl = "gpu-3:901:901 [2] misc/socket.cc:400 NCCL WARN Bootstrap : no socket interface found"
    assert diagnose_lines({"log": [name, nccl]}).label == "wrong-interface"


def test_what_the_kernel_prints_of_links_while_it_starts_is_no_fault() -> None:
    start = (
        "[    3.300000] bnxt_en 0000:31:00.1 eno2: NIC Link is Down",
        "[    0.420200] pci 0000:00:1c.0: Intel SPT PCH root port ACS workaround enabled",
    )
    for line in start:
        assert diagnose_lines({"dmesg": [line]}).label == "unknown"
    later = "[ 4003.300000] bnxt_en 0000:31:00.1 eno2: NIC Link is Down"
    assert diagnose_lines({"dmesg": [later]}).label == "ib-link-fault"


JOB = (
    "2025-03-04 10:00:00,100 INFO starting",
    "Traceback (most recent call last):",
    '  File "train.py", line 41, in main',
    "KeyError: 'hidden'",
)


def test_what_was_over_a_day_before_the_job_is_left_out_and_what_lasts_is_not() -> None:
    killed = "[Mon Mar  3 02:10:00 2025] Memory cgroup out of memory: Killed process 911 (rsync) total-vm:9kB"
    assert diagnose_lines({"rank0.log": JOB, "dmesg": [killed]}).label == "application-error"
    lost = "[Mon Mar  3 02:10:00 2025] NVRM: GPU at PCI:0000:3b:00: GPU has fallen off the bus."
    assert diagnose_lines({"rank0.log": JOB, "dmesg": [lost]}).label == "gpu-hardware-xid"


def test_a_job_that_runs_by_what_its_scheduler_says_is_not_well_for_that() -> None:
    job = (
        "JobId=881 JobName=llama",
        "   JobState={} Reason=None",
        "   Requeue=1 Restarts=0 ExitCode=0:0",
    )
    running = [line.format("RUNNING") for line in job]
    assert diagnose_lines({"scontrol": running}).label == "unknown"
    killed = [line.format("OUT_OF_MEMORY") for line in job]
    assert diagnose_lines({"scontrol": killed}).label == "host-oom"
