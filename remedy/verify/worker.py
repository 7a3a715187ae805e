"""The program that torchrun starts once a rank: it joins the group, proves the sum and measures.

It travels to the host as text and needs the standard library and torch alone (torch >= 2.1, Python >=
3.8). Nothing it finds is believed because it exits with 0: it leaves facts from which the controller
computes the verdict itself. Those are the digest of the summed vector, the identities that came in over
the group, and its phase, which says how far it got when it has to be killed.

Every wait is bounded. torch's own defaults (10 minutes for NCCL, 30 for gloo) are never used.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import signal
import socket
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

WARM_UP = 2
# How long one size is measured, and within which counts of rounds.
SECONDS_PER_SIZE = 0.5
ROUNDS = (2, 20)
# The rounds are timed in so many parts, of which the median counts.
PARTS = 5
# How long the ranks of one host may take among themselves; in seconds.
INSIDE = 15.0
# How long a rank that is done waits for the others, so that nobody's last message is cut off.
FAREWELL = 5.0
# How often a rank asks whether another has failed, and how long it then still goes on; in seconds.
HEED_EVERY = 1.0
HEED_AFTER = 3.0


class Rank:
    """What one rank knows and leaves behind in the run's private directory."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.directory = Path(config["directory"])
        self.rank = int(os.environ["RANK"])
        self.local_rank = int(os.environ["LOCAL_RANK"])
        self.local_world = int(os.environ["LOCAL_WORLD_SIZE"])
        self.world = int(os.environ["WORLD_SIZE"])
        self.phase = ""
        self.store: Any = None
        self.last_word = threading.Lock()
        self.times: dict[str, float] = {}

    def reach(self, phase: str) -> None:
        """Record that a phase is reached, with the seconds since the run began on this host."""
        self.phase = phase
        self.times[phase] = round(time.monotonic() - self.config["began"], 3)
        self.leave(
            "phase",
            {
                "rank": self.rank,
                "local_rank": self.local_rank,
                "pid": os.getpid(),
                "phase": phase,
                "times": self.times,
            },
        )

    def leave(self, kind: str, value: dict[str, Any]) -> None:
        """Write a small JSON file in one step, so that a reader never sees half of it."""
        path = self.directory / f"{kind}.{self.local_rank}.json"
        part = path.with_suffix(".part")
        part.write_text(json.dumps(value), encoding="ascii")
        part.replace(path)

    def within(self, seconds: float) -> timedelta:
        """A time-out that also ends before the host's own deadline does, so that torch can still speak."""
        left = self.config["began"] + self.config["deadline"] - 3.0 - time.monotonic()
        return timedelta(seconds=max(1.0, min(seconds, left)))

    def alarm(self) -> None:
        """Tell the other hosts, as far as the store can still be reached, that there is no more hope."""
        with contextlib.suppress(Exception):
            self.store.set("failed", str(self.rank))

    def heed(self, torch: Any) -> None:
        """Watch for the alarm on a connection of its own, and leave a while after it was raised.

        Without this a rank that waits for a peer that failed would wait until its deadline. The while lets
        ranks that fail for a reason of their own say so first.
        """
        text = "told to stop: another rank had failed"
        try:
            store = torch.distributed.TCPStore(
                os.environ["MASTER_ADDR"],
                int(os.environ["MASTER_PORT"]),
                is_master=False,
                timeout=self.within(10.0),
                wait_for_workers=False,
            )
            store = torch.distributed.PrefixStore(f"remedy/{self.config['nonce']}", store)
            while not store.check(["failed"]):
                time.sleep(HEED_EVERY)
        except Exception as error:
            text = f"the rendezvous was lost: {first_line(error)}"
        time.sleep(HEED_AFTER)
        self.give_up(text, text)

    def give_up(self, text: str, long: str) -> None:
        """Leave an error behind and end at once; of two threads the first one's error stays."""
        with self.last_word:
            self.leave("error", {"phase": self.phase, "text": text, "long": long[:2000]})
            self.alarm()
            sys.stderr.flush()
            os._exit(1)


def die_with_parent() -> None:
    """Have the kernel kill this process when torchrun dies: prctl(2), PR_SET_PDEATHSIG (1)."""
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def usable_gpu(torch: Any, local_rank: int, local_world: int) -> tuple[bool, str]:
    """Whether this rank can use NCCL on a GPU of its own, and if not, why.

    A small allocation is part of the test: a GPU that is listed may still be lost or full.
    """
    if not torch.cuda.is_available():
        built = torch.version.cuda or "no CUDA"
        return False, f"torch.cuda is not available (torch {torch.__version__}, built for {built})"
    count = torch.cuda.device_count()
    if count < local_world:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        seen = "" if visible is None else f" (CUDA_VISIBLE_DEVICES={visible})"
        return False, f"{local_world} ranks but {count} visible GPUs{seen}"
    if not torch.distributed.is_nccl_available():
        return False, "torch was built without NCCL"
    try:
        torch.cuda.set_device(local_rank)
        torch.zeros(1, device="cuda").add_(1).item()
    except Exception as error:
        return False, f"GPU {local_rank}: {first_line(error)}"
    return True, ""


def first_line(error: BaseException) -> str:
    """The first line of an error, shortened: torch appends whole C++ stacks."""
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"[:600]


def agree(rank: Rank, store: Any, usable: bool, why: str) -> dict[str, Any]:
    """Agree over the store on who is there and on one backend.

    Rank 0 alone reads every key, so that the store's work grows with the world and not its square.

    Returns:
        ``backend`` ("nccl" or "gloo"), ``missing`` ranks, and ``unusable``: why by rank.
    """
    store.set(f"here/{rank.rank}", json.dumps({"usable": usable, "why": why}))
    limit = rank.within(rank.config["join_seconds"])
    if rank.rank:
        store.wait(["go"], limit + timedelta(seconds=2))
        answer: dict[str, Any] = json.loads(store.get("go"))
        return answer
    keys = [f"here/{number}" for number in range(rank.world)]
    missing: list[int] = []
    try:
        store.wait(keys, limit)
    except Exception:  # the type differs between torch versions; what counts is who is there
        missing = [number for number, key in enumerate(keys) if not store.check([key])]
    present = [number for number in range(rank.world) if number not in set(missing)]
    told = {number: json.loads(store.get(keys[number])) for number in present}
    unusable = {str(number): value["why"] for number, value in told.items() if not value["usable"]}
    wanted = rank.config["backend"]
    backend = "gloo" if unusable or wanted == "gloo" else "nccl"
    if wanted == "gloo":
        unusable = {}
    decided = {"backend": backend, "missing": missing, "unusable": unusable}
    store.set("go", json.dumps(decided))
    return decided


def identity(torch: Any, backend: str, device: Any) -> dict[str, str]:
    """Who this rank is: what must be distinct, or equal, over the hosts."""
    nccl = ""
    if backend == "nccl":
        version = torch.cuda.nccl.version()
        nccl = ".".join(map(str, version)) if isinstance(version, tuple) else str(version)
    return {
        "hostname": socket.gethostname(),
        "boot_id": Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip(),
        "torch": torch.__version__,
        "nccl": nccl,
        "device": torch.cuda.get_device_name(device) if backend == "nccl" else "cpu",
    }


def gather(torch: Any, value: dict[str, Any], world: int, device: Any) -> list[dict[str, Any]]:
    """Every rank's value, carried by the group itself, in rank order.

    JSON in padded byte tensors: torch's own object gather needs numpy, which torch does not bring along,
    and pickle, which would run what a peer sends.
    """
    data = json.dumps(value, sort_keys=True).encode("ascii")
    length = torch.tensor([len(data)], dtype=torch.int64, device=device)
    torch.distributed.all_reduce(length, op=torch.distributed.ReduceOp.MAX)
    padded = data.ljust(int(length.item()))
    mine = torch.tensor(list(padded), dtype=torch.uint8, device=device)
    parts = [torch.empty_like(mine) for _ in range(world)]
    torch.distributed.all_gather(parts, mine)
    return [json.loads(bytes(part.cpu().tolist()).decode("ascii")) for part in parts]


def prove_sum(torch: Any, rank: Rank, device: Any) -> dict[str, Any]:
    """Sum a vector in which each rank fills its own place, so that the sum shows exactly who took part.

    The values depend on the run's nonce: the sum of an earlier run is another one. int64 is exact.

    Returns:
        ``digest`` (SHA-256, hex, of the decimal numbers joined by commas) and ``missing`` ranks.
    """
    base = int(rank.config["nonce"], 16) % 2**40
    vector = torch.zeros(rank.world + 1, dtype=torch.int64, device=device)
    vector[rank.rank] = base + rank.rank
    vector[-1] = rank.rank + 1
    torch.distributed.all_reduce(vector)
    numbers = vector.cpu().tolist()
    missing = [number for number in range(rank.world) if numbers[number] != base + number]
    text = ",".join(map(str, numbers))
    return {"digest": hashlib.sha256(text.encode("ascii")).hexdigest(), "missing": missing}


def checked(torch: Any, rank: Rank, buffer: Any) -> bool:
    """One all-reduce of known float32 values over the whole buffer: is every element right?

    float32 counts exactly up to 2**24; the sum of (rank % 1024 + 0..7) stays below that for 16,000 ranks.
    """
    wave = torch.arange(buffer.numel(), device=buffer.device, dtype=torch.int32).remainder_(8)
    buffer.copy_(wave).add_(rank.rank % 1024)
    torch.distributed.all_reduce(buffer)
    ranks_sum = sum(number % 1024 for number in range(rank.world))
    wrong = (buffer != (wave * rank.world + ranks_sum)).any()
    return not bool(wrong.item())


def measure(torch: Any, rank: Rank, size: int, device: Any) -> dict[str, Any]:
    """Time the all-reduce of one size.

    The timed rounds run on zeros, which stay exact however often they are summed in place; a checked
    round before and one after say that the data path is right.

    Args:
        size: bytes a rank contributes; a multiple of four.

    Returns:
        ``bytes``, ``rounds``, ``seconds`` a round on the slowest rank (in place; the median of a few parts),
        ``spread`` (largest less smallest part, as a share of the median), ``out_of_place`` (seconds, where
        the data is copied first), ``exact``.
    """
    dist = torch.distributed

    def settle() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize()

    def slowest(seconds: float) -> float:
        value = torch.tensor([seconds], dtype=torch.float64, device=device)
        dist.all_reduce(value, op=dist.ReduceOp.MAX)
        return float(value.item())

    def timed(rounds: int, source: Any = None) -> float:
        settle()
        start = time.perf_counter()
        for _ in range(rounds):
            if source is not None:
                buffer.copy_(source)
            dist.all_reduce(buffer)
        settle()
        return slowest(time.perf_counter() - start) / rounds

    buffer = torch.zeros(size // 4, dtype=torch.float32, device=device)
    exact = checked(torch, rank, buffer)
    buffer.zero_()
    guess = max(timed(WARM_UP), 1e-6)
    rounds = max(ROUNDS[0], min(ROUNDS[1], int(SECONDS_PER_SIZE / guess)))
    parts = min(PARTS, rounds)
    times = sorted(timed(max(1, rounds // parts)) for _ in range(parts))
    copied = timed(max(1, rounds // parts), torch.zeros_like(buffer))
    exact = exact and not bool(buffer.any().item()) and checked(torch, rank, buffer)
    middle = times[len(times) // 2]
    return {
        "bytes": buffer.numel() * 4,
        "rounds": rounds,
        "seconds": middle,
        "spread": (times[-1] - times[0]) / middle if middle > 0 else 0.0,
        "out_of_place": copied,
        "exact": exact,
    }


def sweep(torch: Any, rank: Rank, device: Any) -> list[dict[str, Any]]:
    """Measure the sizes in rising order while time and GPU memory last; all ranks stop at the same one."""
    sizes = rank.config["sizes"]["nccl" if device.type == "cuda" else "gloo"]
    dist = torch.distributed
    start = time.monotonic()
    rows: list[dict[str, Any]] = []
    for size in sizes:
        free = torch.cuda.mem_get_info()[0] if device.type == "cuda" else 2**62
        # One decision for all: the longest time spent, and whether the size fits everywhere
        # (the buffer, its expected values and the comparison).
        spent = time.monotonic() - start
        state = torch.tensor([spent, float(size * 5 > free)], dtype=torch.float64, device=device)
        dist.all_reduce(state, op=dist.ReduceOp.MAX)
        used, too_big = state.cpu().tolist()
        if too_big or (rows and used > rank.config["sweep_seconds"]):
            break
        rows.append(measure(torch, rank, size, device))
    return rows


def farewell(store: Any, world: int) -> None:
    """Wait shortly until all ranks are done, so that leaving cuts nobody's last message off."""
    end = time.monotonic() + FAREWELL
    gone = store.add("done", 1)
    while gone < world and time.monotonic() < end:
        time.sleep(0.02)
        gone = store.add("done", 0)


def inside(torch: Any, rank: Rank) -> float | None:
    """Let the ranks of this host sum among themselves, so that a bad host is known before it holds up others.

    A single CPU rank forks a second one, which costs no second import. The group is gone when this returns; it
    meets through a file of the run's own folder, so no network and no name is needed.

    Returns:
        seconds of one all-reduce of a megabyte; None where there is but one GPU.
    """
    on_gpu = rank.config["backend"] != "gloo" and torch.cuda.is_available()
    me, count, child = rank.local_rank, rank.local_world, -1
    if count == 1:
        if on_gpu or rank.config["backend"] != "gloo":
            return None
        count, child = 2, os.fork()
        me = 1 if child == 0 else 0
    dist: Any = torch.distributed
    device = torch.device("cuda", me) if on_gpu else torch.device("cpu")
    try:
        if on_gpu:
            torch.cuda.set_device(me)
        store = dist.FileStore(str(rank.directory / "inside"), count)
        dist.init_process_group(
            "nccl" if on_gpu else "gloo",
            store=store,
            rank=me,
            world_size=count,
            timeout=rank.within(INSIDE),
        )
        value = torch.full((262_144,), float(me + 1), device=device)
        dist.all_reduce(value)
        wrong = bool((value != count * (count + 1) / 2).any().item())
        start = time.perf_counter()
        dist.all_reduce(value)
        if on_gpu:
            torch.cuda.synchronize()
        seconds = time.perf_counter() - start
        if child != 0:
            dist.destroy_process_group()
    finally:
        if child == 0:
            os._exit(0)
        if child > 0:
            with contextlib.suppress(OSError):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
    if wrong:
        raise RuntimeError("the sum of this host's own ranks is wrong")
    return seconds


def work(rank: Rank) -> None:
    """Go through all phases, and leave the result."""
    import torch
    from torch.distributed.rendezvous import rendezvous

    dist: Any = torch.distributed
    usable, why = False, ""
    if rank.config["backend"] != "gloo":
        usable, why = usable_gpu(torch, rank.local_rank, rank.local_world)
    alone: float | None = None
    trouble = ""
    try:
        alone = inside(torch, rank) if usable or rank.config["backend"] == "gloo" else None
        rank.reach("inside")
    except Exception as error:
        trouble = f"inside this host: {first_line(error)}"
    limit = rank.within(rank.config["join_seconds"])
    shared, _, _ = next(iter(rendezvous("env://", rank.rank, rank.world, timeout=limit)))
    store = dist.PrefixStore(f"remedy/{rank.config['nonce']}", shared)
    rank.store = store
    if trouble:
        # Told only now: through the store the others learn that there is nothing to wait for.
        raise RuntimeError(trouble)
    rank.reach("rendezvous")
    if rank.local_rank == 0:
        # One a host is enough: torchrun ends its other ranks.
        threading.Thread(target=rank.heed, args=(torch,), daemon=True).start()

    decided = agree(rank, store, usable, why)
    if decided["missing"]:
        rank.leave("missing", {"ranks": decided["missing"]})
        raise RuntimeError(f"ranks {decided['missing']} did not join the rendezvous")
    backend = decided["backend"]
    device = torch.device("cuda", rank.local_rank) if backend == "nccl" else torch.device("cpu")
    patience = rank.within(rank.config["group_seconds"])
    dist.init_process_group(
        backend, store=store, rank=rank.rank, world_size=rank.world, timeout=patience
    )
    rank.reach("group")

    if backend == "gloo":
        # The only barrier that names who did not come.
        dist.monitored_barrier(timeout=patience, wait_all_ranks=True)
    else:
        dist.barrier(device_ids=[rank.local_rank])
        torch.cuda.synchronize()
    rank.reach("barrier")

    total = prove_sum(torch, rank, device)
    me = identity(torch, backend, device)
    members = gather(torch, {"rank": rank.rank, **me}, dist.get_world_size(), device)
    rank.reach("reduced")

    result: dict[str, Any] = {
        "nonce": rank.config["nonce"],
        "rank": rank.rank,
        "local_rank": rank.local_rank,
        "world": dist.get_world_size(),
        "backend": backend,
        "unusable": decided["unusable"] if rank.rank == 0 else {},
        "identity": me,
        "sum": total,
        "members": [[m["rank"], m["hostname"], m["boot_id"]] for m in members]
        if rank.rank == 0
        else None,
        "members_digest": hashlib.sha256(
            json.dumps([[m["rank"], m["hostname"], m["boot_id"]] for m in members]).encode("ascii")
        ).hexdigest(),
        "inside": alone,
        "sweep": sweep(torch, rank, device),
    }
    rank.reach("done")
    rank.leave("result", {**result, "times": rank.times})
    farewell(store, rank.world)


def main() -> None:
    """Run, and end without destructors: those of a broken group can block for ever."""
    die_with_parent()
    rank = Rank(json.loads(Path(sys.argv[1]).read_text(encoding="ascii")))
    rank.reach("started")
    try:
        work(rank)
    except BaseException as error:
        import traceback

        traceback.print_exc()
        rank.give_up(first_line(error), str(error))
    os._exit(0)


if __name__ == "__main__":
    main()
