"""A rank of any engine: what it proves, measures and leaves behind.

It travels to the hosts: standard library only, Python >= 3.8. An engine gives a ``Group``, its own way of
summing; the order of things, the proof and the files are the same for all of them, so that one judgement reads
them. Nothing is believed because a program exits with 0.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import signal
import socket
import sys
import time
import traceback
from pathlib import Path
from typing import Any, Callable  # noqa: UP035  (Python 3.8)

WARM_UP = 2
# How long one size is measured, within which counts of rounds, and in how many parts the rounds are timed.
SECONDS_PER_SIZE = 0.5
ROUNDS = (2, 20)
PARTS = 5
# Element i of a checked buffer is i modulo this: float32 counts exactly up to 2**24, for 16,000 ranks and more.
WAVE = 8


class Buffer:
    """Float32 values that an engine sums over all ranks."""

    def fill(self, base: int, step: int) -> None:
        """Make element i ``base + i % WAVE * step``."""
        raise NotImplementedError

    def all_reduce(self) -> None:
        """Sum in place, and return when it is done."""
        raise NotImplementedError

    def all_reduce_copy(self) -> None:
        """Sum into another buffer, keeping the input, and return when it is done."""
        raise NotImplementedError

    def wrong(self, base: int, step: int) -> int:
        """How many elements are not ``base + i % WAVE * step``."""
        raise NotImplementedError


class Group:
    """All ranks of a run, as an engine connects them.

    Args:
        rank, world: this rank's number, and how many there are, as the engine says.
        backend: what carries the sum.
        software: name and version of what sums, the same on all hosts of a sound fleet.
        device: what it sums on.
    """

    rank: int
    world: int
    backend: str
    software: str
    device: str = "cpu"

    def sum_ints(self, values: list[int]) -> list[int]:
        """Sum a vector of integers (each sum below 2**56) over all ranks."""
        raise NotImplementedError

    def gather(self, data: bytes) -> list[bytes]:
        """Every rank's bytes, in rank order; all ranks MUST give the same number of them."""
        raise NotImplementedError

    def buffer(self, count: int) -> Buffer:
        """A buffer of ``count`` elements."""
        raise NotImplementedError

    def leave(self) -> None:
        """Part with the others, when all of them have come as far."""
        raise NotImplementedError


class Rank:
    """What one rank leaves in the run's private folder.

    Args:
        config: as ``launch.config`` makes it.
        local_rank: its number on this host.
    """

    def __init__(self, config: dict[str, Any], local_rank: int) -> None:
        self.config = config
        self.directory = Path(config["directory"])
        self.local_rank = local_rank
        self.rank = -1
        self.phase = ""
        self.times: dict[str, float] = {}

    def reach(self, phase: str) -> None:
        """Record that a phase is reached, with the seconds since the run began on this host."""
        self.phase = phase
        self.times[phase] = round(time.monotonic() - self.config["began"], 3)
        value = {"rank": self.rank, "local_rank": self.local_rank, "pid": os.getpid()}
        self.leave("phase", {**value, "phase": phase, "times": self.times})

    def leave(self, kind: str, value: dict[str, Any]) -> None:
        """Write a small JSON file in one step, so that a reader never sees half of it."""
        path = self.directory / f"{kind}.{self.local_rank}.json"
        part = path.with_suffix(".part")
        part.write_text(json.dumps(value), encoding="ascii")
        part.replace(path)

    def fail(self, error: BaseException) -> None:
        """Leave an error and end at once: destructors of a broken group can block for ever."""
        traceback.print_exc()
        text = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"[:600]
        self.leave("error", {"phase": self.phase, "text": text, "long": str(error)[:2000]})
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)


def read_config(directory: str) -> dict[str, Any]:
    """What the agent wrote for this host's ranks."""
    config: dict[str, Any] = json.loads(Path(directory, "config.json").read_text(encoding="ascii"))
    return config


def redirect(config: dict[str, Any], local_rank: int) -> None:
    """Send what this rank prints into a file of its own, which the agent reads (``LOGS`` of the engine)."""
    logs = Path(config["directory"], "logs")
    logs.mkdir(exist_ok=True)
    out = os.open(logs / f"{local_rank}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.close(out)


def die_with_parent() -> None:
    """Have the kernel kill this process when its launcher dies: prctl(2), PR_SET_PDEATHSIG (1)."""
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def run(rank: Rank, join: Callable[[], Group], check: Callable[[], None] | None = None) -> None:
    """Go through all phases, leave the result, and end.

    Args:
        rank: this one.
        join: makes the group; it may raise what it likes.
        check: the engine's own test, which raises where it fails; it comes after the proof.
    """
    rank.reach("started")
    try:
        group = join()
        rank.rank = group.rank
        rank.reach("group")
        group.gather(b"here")
        rank.reach("barrier")
        result = prove(rank, group)
        if check:
            check()
            result["own_check"] = True
        rank.reach("done")
        rank.leave("result", {**result, "times": rank.times})
        group.leave()
    except BaseException as error:
        rank.fail(error)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def prove(rank: Rank, group: Group) -> dict[str, Any]:
    """Sum, learn who took part, and measure; the JSON object that ``report.Result`` reads."""
    total = prove_sum(rank.config["nonce"], group)
    me = identity(group)
    members = exchange(group, {"rank": group.rank, **me})
    told = [[m["rank"], m["hostname"], m["boot_id"]] for m in members]
    rank.reach("reduced")
    return {
        "nonce": rank.config["nonce"],
        "rank": group.rank,
        "local_rank": rank.local_rank,
        "world": group.world,
        "backend": group.backend,
        "unusable": {},
        "identity": me,
        "sum": total,
        "members": told if group.rank == 0 else None,
        "members_digest": hashlib.sha256(json.dumps(told).encode("ascii")).hexdigest(),
        "inside": None,
        "sweep": sweep(rank.config, group),
    }


def identity(group: Group) -> dict[str, str]:
    """Who this rank is: what must be distinct, or equal, over the hosts."""
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return {
        "hostname": socket.gethostname(),
        "boot_id": boot_id,
        "software": group.software,
        "device": group.device,
    }


def exchange(group: Group, value: dict[str, Any]) -> list[dict[str, Any]]:
    """Every rank's value, carried by the group itself, in rank order."""
    data = json.dumps(value, sort_keys=True).encode("ascii")
    length = max(int(text) for text in group.gather(f"{len(data):8d}".encode("ascii")))
    return [json.loads(text) for text in group.gather(data.ljust(length))]


def prove_sum(nonce: str, group: Group) -> dict[str, Any]:
    """Sum a vector in which each rank fills its own place, so that the sum shows exactly who took part.

    The values depend on the run's nonce: the sum of an earlier run is another one.

    Returns:
        ``digest`` (SHA-256, hex, of the decimal numbers joined by commas) and ``missing`` ranks.
    """
    base = int(nonce, 16) % 2**40
    vector = [0] * (group.world + 1)
    vector[group.rank] = base + group.rank
    vector[-1] = group.rank + 1
    numbers = group.sum_ints(vector)
    missing = [number for number in range(group.world) if numbers[number] != base + number]
    text = ",".join(map(str, numbers))
    return {"digest": hashlib.sha256(text.encode("ascii")).hexdigest(), "missing": missing}


def sweep(config: dict[str, Any], group: Group) -> list[dict[str, Any]]:
    """Measure the sizes in rising order while time lasts; all ranks stop at the same one."""
    start = time.monotonic()
    rows: list[dict[str, Any]] = []
    for size in config["sizes"][group.backend]:
        if slowest(group, time.monotonic() - start) > config["sweep_seconds"] and rows:
            break
        rows.append(measure(group, size))
    return rows


def slowest(group: Group, seconds: float) -> float:
    """The longest time of all ranks."""
    return max(float(text) for text in group.gather(f"{seconds:24.12f}".encode("ascii")))


def measure(group: Group, size: int) -> dict[str, Any]:
    """Time the all-reduce of one size, as ``worker.measure`` does.

    The timed rounds run on zeros, which stay exact however often they are summed in place; a checked round
    before and one after say that the data path is right.

    Args:
        size: bytes a rank contributes; a multiple of four.
    """
    buffer = group.buffer(size // 4)

    def checked() -> bool:
        buffer.fill(group.rank % 1024, 1)
        buffer.all_reduce()
        return not buffer.wrong(sum(n % 1024 for n in range(group.world)), group.world)

    def timed(rounds: int, once: Callable[[], None]) -> float:
        group.gather(b"ready")
        start = time.perf_counter()
        for _ in range(rounds):
            once()
        return slowest(group, time.perf_counter() - start) / rounds

    exact = checked()
    buffer.fill(0, 0)
    guess = max(timed(WARM_UP, buffer.all_reduce), 1e-6)
    rounds = max(ROUNDS[0], min(ROUNDS[1], int(SECONDS_PER_SIZE / guess)))
    parts = min(PARTS, rounds)
    times = sorted(timed(max(1, rounds // parts), buffer.all_reduce) for _ in range(parts))
    copied = timed(max(1, rounds // parts), buffer.all_reduce_copy)
    exact = exact and not buffer.wrong(0, 0) and checked()
    middle = times[len(times) // 2]
    return {
        "bytes": size,
        "rounds": rounds,
        "seconds": middle,
        "spread": (times[-1] - times[0]) / middle if middle > 0 else 0.0,
        "out_of_place": copied,
        "exact": exact,
    }
