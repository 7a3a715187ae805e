"""The engine ``nccl-tests``: a built ``all_reduce_perf`` (with MPI) on all GPUs of all hosts, through mpirun.

It travels to the hosts: standard library only, Python >= 3.8. The test itself sums, checks every element and
measures; the controller reads what it prints.
Each rank first leaves word of who it is and then becomes the test, so that the process ids that the test prints
show that it ran on these hosts, in this run.
"""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path
from typing import Any

from remedy.verify.onhost.engines import openmpi
from remedy.verify.onhost.procs import slurm_step
from remedy.verify.onhost.rank.proof import boot_id
from remedy.verify.onhost.rank.rank import Rank, die_with_parent, read_config, redirect

WORKER = "remedy.verify.onhost.engines.nccl_tests"
LOGS = "logs/{rank}.*log"
OUTPUT = "logs/0.out"  # below the folder of the first host
NAMES = ("all_reduce_perf", "all_reduce_perf_mpi")
# Where it is often built; the first that is there is taken.
FOLDERS = (
    *("/opt/nccl-tests/build", "/opt/nccl_tests/build", "/usr/local/nccl-tests/build"),
    *(
        "~/nccl-tests/build",
        "/opt/nccl-tests",
        "/usr/lib/nccl-tests",
        "/third_party/nccl-tests/build",
    ),
)
# These would have it measure something else than all ranks together.
UNWANTED = ("NCCL_TESTS_SPLIT", "NCCL_TESTS_SPLIT_MASK", "NCCL_TESTS_DEVICE", "NCCL_TESTS_MIN_BW")


def path_of(setting: str) -> str:
    """Find the test: as named, in the PATH, or where it is often built; "" is nowhere."""
    if setting:
        path = os.path.expanduser(setting)  # noqa: PTH111
        return path if os.access(path, os.X_OK) and Path(path).is_file() else ""
    folders = [*os.environ.get("PATH", "").split(":"), *FOLDERS]
    for folder in filter(None, folders):
        for name in NAMES:
            path = os.path.join(os.path.expanduser(folder), name)  # noqa: PTH111, PTH118
            if os.access(path, os.X_OK) and Path(path).is_file():
                return path
    return ""


def unfit(config: dict[str, Any]) -> tuple[str, str] | None:
    """Find out why this host cannot take part, as (how, detail)."""
    lacking = openmpi.lacking()
    if lacking:
        return "no-engine", lacking
    setting = config["all_reduce_perf"]
    path = path_of(setting)
    if not path:
        where = (
            f"{setting} is no program"
            if setting
            else "all_reduce_perf is not in its PATH or in /opt"
        )
        return "no-engine", where
    program = Path(path).read_bytes()
    if program.startswith(b"\x7fELF") and b"libmpi.so" not in program:
        return (
            "no-engine",
            f"{path} was built without MPI, so each rank would be a world of its own",
        )
    gpus = len([name for name in os.listdir("/dev") if re.match(r"nvidia\d+\Z", name)])  # noqa: PTH208
    if gpus < config["ranks"]:
        ranks = "1 rank is" if config["ranks"] == 1 else f"{config['ranks']} ranks are"
        return (
            "no-engine",
            f"it has {gpus} {'GPU' if gpus == 1 else 'GPUs'}, and {ranks} to run there",
        )
    return None


def command(config: dict[str, Any], directory: str) -> tuple[list[str], dict[str, str]]:
    """Run mpirun on the first host; on each of the others, what runs Open MPI's daemon there."""
    return openmpi.command(config, directory)


def arguments(config: dict[str, Any]) -> list[str]:
    """List the test's options: sizes doubling, every result checked, the time of the slowest rank."""
    sizes = config["sizes"]["nccl"]
    words = ["-b", str(sizes[0]), "-e", str(sizes[-1]), "-f", "2", "-g", "1", "-t", "1"]
    return [*words, "-d", "float", "-o", "sum", "-c", "1", "-n", "20", "-w", "5", "-a", "3"]


def main() -> None:
    """Be a rank: say who this is, and become the test."""
    config = read_config(os.environ[openmpi.FOLDER])
    die_with_parent()
    rank = Rank(config, int(os.environ["OMPI_COMM_WORLD_LOCAL_RANK"]))
    rank.rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
    redirect(config, rank.local_rank)
    identity = {
        "nonce": config["nonce"],
        "rank": rank.rank,
        "pid": os.getpid(),
        "boot_id": boot_id(),
    }
    rank.leave("process", {**identity, "hostname": socket.gethostname(), "step": slurm_step()})
    rank.reach("started")
    logs = Path(config["directory"], "logs")
    out = os.open(logs / f"{rank.local_rank}.out", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(out, 1)
    environment = {name: value for name, value in os.environ.items() if name not in UNWANTED}
    # NCCL would print its lines into those of the table.
    environment["NCCL_DEBUG_FILE"] = str(logs / f"{rank.local_rank}.nccl.log")
    environment.update(openmpi.interface("btl", config["address"]))
    path = path_of(config["all_reduce_perf"])
    os.execve(path, [path, *arguments(config)], environment)  # noqa: S606  (no shell is needed)
