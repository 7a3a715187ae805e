"""Hangs over NCCL: hosts that share one GPU, of which one rank does not come.

The hosts are network namespaces with a name and a boot-id of their own (``tests.local.rooms``). Each run leaves
the dumps that torch writes by itself when a collective times out, and what NCCL's RAS service answers on each
host while the others wait: ``ras-RANK.json`` and ``ras-RANK.txt``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.corpus.one_gpu import BOOT, OWN
from tests.local.rooms import NETWORK, Rooms

WORKER = Path(__file__).with_name("train_hang.py")
WORLD, PORT, SECONDS = 4, 31000, 520
RECORDED = {
    "TORCH_FR_BUFFER_SIZE": "2000",
    "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
    "NCCL_SOCKET_IFNAME": "eth0",
    "NCCL_DEBUG": "WARN",
}


def collect(runs: int, kinds: Sequence[str], folder: Path) -> None:
    """Run every kind, all kinds at a time.

    Args:
        runs: of each kind; the rank that does not come is the next in each.
        kinds: of hangs.
        folder: where the dumps are put, a folder a run.
    """
    with ThreadPoolExecutor(len(kinds)) as pool:
        for job in [pool.submit(_collect, runs, kind, folder) for kind in kinds]:
            job.result()


def _collect(runs: int, kind: str, folder: Path) -> None:
    rooms = Rooms(WORLD)
    path = os.pathsep.join((str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")))
    environment = {**os.environ, **RECORDED, "PYTHONPATH": path}
    with tempfile.TemporaryDirectory() as kept:
        hosts = Path(kept) / "hosts"
        hosts.write_text("127.0.0.1 localhost\n")
        running: list[subprocess.Popen[bytes]] = []
        try:
            rooms.make()
            for rank, (host, room) in enumerate(rooms.names.items()):
                boot_id = Path(kept) / host
                boot_id.write_text(f"{uuid.uuid4()}\n")
                train = [sys.executable, str(WORKER), "--backend", "nccl", "--rank", str(rank)]
                train += ["--world", str(WORLD), "--master", f"{NETWORK}.1", "--port", str(PORT)]
                train += ["--runs", str(runs), "--folder", str(folder), "--kinds", kind]
                boot = ["sh", "-c", BOOT, "sh", str(boot_id), host, str(hosts)]
                words = ["nsenter", f"--net=/run/netns/{room}", *OWN, *boot, *train]
                log = (folder / f"{kind}-{rank}.out").open("wb")
                running.append(subprocess.Popen(words, env=environment, stdout=log, stderr=log))
            for process in running:
                process.wait(SECONDS)
        finally:
            for process in running:
                process.kill()
                process.wait()
            rooms.remove()
