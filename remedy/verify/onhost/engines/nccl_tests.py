"""The engine ``nccl-tests``: a built ``all_reduce_perf`` (with MPI) on all GPUs of all hosts, through mpirun.

It travels to the hosts: standard library only, Python >= 3.8. The test itself sums, checks every element and
measures; what it prints is read by ``read``, from the formats of nccl-tests' src/util.cu (snapshot a0b82b2).
Each rank first leaves word of who it is and then becomes the test, so that the process ids that the test prints
show that it ran on these hosts, in this run.
"""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path
from typing import Any, NamedTuple

from remedy.verify.onhost.engines import openmpi as _openmpi
from remedy.verify.onhost.rank import rank as _rank

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


class Device(NamedTuple):
    """One rank, as the test lists it."""

    rank: int
    group: int
    pid: int
    host: str
    gpu: str


class Half(NamedTuple):
    """Out of place or in place: microseconds, GB/s, and wrong elements (None: not checked)."""

    time: float
    algbw: float
    busbw: float
    wrong: float | None


class Row(NamedTuple):
    """One size (bytes) of the table."""

    size: int
    out_of_place: Half
    in_place: Half


class Printed(NamedTuple):
    """All that the test printed; ``validation`` is how often it checked, ``reduced`` its own last size."""

    version: str
    library: str
    validation: int
    devices: list[Device]
    rows: list[Row]
    out_of_bounds: int | None
    reduced: int | None


def path_of(wanted: str) -> str:
    """Where the test is: as named, in the PATH, or where it is often built; "" is nowhere."""
    if wanted:
        path = os.path.expanduser(wanted)  # noqa: PTH111
        return path if os.access(path, os.X_OK) and Path(path).is_file() else ""
    folders = [*os.environ.get("PATH", "").split(":"), *FOLDERS]
    for folder in filter(None, folders):
        for name in NAMES:
            path = os.path.join(os.path.expanduser(folder), name)  # noqa: PTH111, PTH118
            if os.access(path, os.X_OK) and Path(path).is_file():
                return path
    return ""


def unfit(config: dict[str, Any]) -> tuple[str, str] | None:
    """Why this host cannot take part, as (how, detail)."""
    lacking = _openmpi.lacking()
    if lacking:
        return "no-engine", lacking
    wanted = config["all_reduce_perf"]
    path = path_of(wanted)
    if not path:
        where = (
            f"{wanted} is no program" if wanted else "all_reduce_perf is not in its PATH or in /opt"
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
        return "no-engine", f"it has {gpus} GPUs, and {config['ranks']} ranks are to run there"
    return None


def command(config: dict[str, Any], directory: str) -> tuple[list[str], dict[str, str]]:
    """mpirun on the first host; on each other one, what runs Open MPI's daemon there."""
    return _openmpi.command(config, directory)


def arguments(config: dict[str, Any]) -> list[str]:
    """What the test is told: sizes doubling to the last, every result checked, the time of the slowest rank."""
    sizes = config["sizes"]["nccl"]
    words = ["-b", str(sizes[0]), "-e", str(sizes[-1]), "-f", "2", "-g", "1", "-t", "1"]
    return [*words, "-d", "float", "-o", "sum", "-c", "1", "-n", "20", "-w", "5", "-a", "3"]


def main() -> None:
    """Be a rank: say who this is, and become the test."""
    config = _rank.read_config(os.environ[_openmpi.FOLDER])
    _rank.die_with_parent()
    rank = _rank.Rank(config, int(os.environ["OMPI_COMM_WORLD_LOCAL_RANK"]))
    rank.rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
    _rank.redirect(config, rank.local_rank)
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    who = {"nonce": config["nonce"], "rank": rank.rank, "pid": os.getpid(), "boot_id": boot_id}
    rank.leave("who", {**who, "hostname": socket.gethostname()})
    rank.reach("started")
    logs = Path(config["directory"], "logs")
    out = os.open(logs / f"{rank.local_rank}.out", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(out, 1)
    environment = {name: value for name, value in os.environ.items() if name not in UNWANTED}
    # NCCL would print its lines into those of the table.
    environment["NCCL_DEBUG_FILE"] = str(logs / f"{rank.local_rank}.nccl.log")
    environment.update(_openmpi.interface("btl", config["address"]))
    path = path_of(config["all_reduce_perf"])
    os.execve(path, [path, *arguments(config)], environment)  # noqa: S606  (a shell is not wanted)


_VERSION = re.compile(r"# nccl-tests version (\S+)(?: nccl-headers=\d+ nccl-library=(\d+))?")
_VALIDATION = re.compile(r"# nThread .* validation: (\d+)")
_DEVICE = re.compile(
    r"#\s+Rank\s+(\d+)(?:\s+Group\s+(\d+))?\s+Pid\s+(\d+) on\s+(\S+) device\s+\d+ \[[^\]]*\] (.*)"
)
_BOUNDS = re.compile(r"# Out of bounds values : (\d+) (OK|FAILED)")
_REDUCED = re.compile(r"# Reducing maxBytes to (\d+) due to memory")


def read(text: str) -> Printed:
    """What the test printed; never raises: what cannot be read is missing."""
    version = library = ""
    validation, out_of_bounds, reduced = 0, None, None
    devices: list[Device] = []
    rows: list[Row] = []
    for line in text.splitlines():
        if found := _VERSION.match(line):
            version, library = found[1], found[2] or ""
        elif found := _VALIDATION.match(line):
            validation = int(found[1])
        elif found := _DEVICE.match(line):
            devices.append(
                Device(int(found[1]), int(found[2] or 0), int(found[3]), found[4], found[5].strip())
            )
        elif found := _BOUNDS.match(line):
            out_of_bounds = int(found[1]) if found[2] == "OK" else max(1, int(found[1]))
        elif found := _REDUCED.match(line):
            reduced = int(found[1])
        elif not line.startswith("#") and (row := _row(line.split())):
            rows.append(row)
    return Printed(version, library, validation, devices, rows, out_of_bounds, reduced)


def _row(words: list[str]) -> Row | None:
    """One line of the table: size, count, type, redop, root, then twice time, algbw, busbw, #wrong."""
    if len(words) != 13 or words[2:4] != ["float", "sum"]:
        return None
    try:
        return Row(int(words[0]), _half(words[5:9]), _half(words[9:13]))
    except ValueError:
        return None


def _half(words: list[str]) -> Half:
    time, algbw, busbw = (float(word) for word in words[:3])
    return Half(time, algbw, busbw, None if words[3] == "N/A" else float(words[3]))


def asked(sizes: tuple[int, ...], reduced: int | None) -> list[int]:
    """The sizes that the table must have: doubling, to the last or to what the GPUs' memory allows."""
    size, last, found = sizes[0], min(sizes[-1], reduced or sizes[-1]), []
    while size <= last:
        # A whole number of float32 (setupArgs in src/common.cu).
        found.append(size - size % 4)
        size *= 2
    return found
