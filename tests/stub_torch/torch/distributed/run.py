"""The launcher of the stub: the options of torchrun that the engine ``torch`` gives, its files, its words."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

from .store import DistStoreError, TCPStore

FAREWELL = 60.0  # seconds that a launcher whose ranks are done waits for the others


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser()
    for name in ("nnodes", "node-rank", "nproc-per-node", "master-port", "max-restarts"):
        parser.add_argument(f"--{name}", type=int)
    for name in ("master-addr", "local-addr", "rdzv-id", "rdzv-conf", "log-dir", "redirects"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--monitor-interval", type=float)
    parser.add_argument("program")
    parser.add_argument("words", nargs="*")
    return parser.parse_args()


def start(given: argparse.Namespace, local: int) -> subprocess.Popen[bytes]:
    """Start a rank, with its output in files."""
    logs = Path(given.log_dir, given.rdzv_id, "attempt_0", str(local))
    logs.mkdir(parents=True)
    environment = {
        "RANK": given.node_rank * given.nproc_per_node + local,
        "LOCAL_RANK": local,
        "WORLD_SIZE": given.nnodes * given.nproc_per_node,
        "LOCAL_WORLD_SIZE": given.nproc_per_node,
        "MASTER_ADDR": given.master_addr,
        "MASTER_PORT": given.master_port,
    }
    with (logs / "stdout.log").open("wb") as out, (logs / "stderr.log").open("wb") as err:
        return subprocess.Popen(
            [sys.executable, "-u", given.program, *given.words],
            stdout=out,
            stderr=err,
            env={**os.environ, **{name: str(value) for name, value in environment.items()}},
        )


def main() -> None:
    """Start the ranks of this host; end them all when one fails."""
    given = options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    limit = timedelta(seconds=float(given.rdzv_conf.partition("=")[2]))
    first = given.node_rank == 0
    store = TCPStore(given.master_addr, given.master_port, is_master=first, timeout=limit)
    ranks = [start(given, local) for local in range(given.nproc_per_node)]
    try:
        while any(rank.poll() is None for rank in ranks):
            for local, rank in enumerate(ranks):
                if rank.poll():
                    print(
                        f"failed (exitcode: {rank.returncode}) local_rank: {local} (pid: {rank.pid})"
                    )
                    sys.exit(1)
            time.sleep(given.monitor_interval)
        codes = [(local, rank.returncode) for local, rank in enumerate(ranks) if rank.returncode]
        for local, code in codes:
            sys.exit(f"failed (exitcode: {code}) local_rank: {local}")
    finally:
        for rank in ranks:
            with contextlib.suppress(OSError):
                rank.kill()
    end = time.monotonic() + FAREWELL
    gone = store.add("gone", 1)
    with contextlib.suppress(DistStoreError, OSError):
        while first and gone < given.nnodes and time.monotonic() < end:
            time.sleep(0.1)
            gone = store.add("gone", 0)


if __name__ == "__main__":
    main()
