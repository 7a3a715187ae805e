"""Stands in for nccl-tests' all_reduce_perf where there is no GPU: sums over MPI, prints in its format.

It shows that a program is found, started on every host, and held against its ranks; nothing about NCCL.
"""

from __future__ import annotations

import os
import socket
import sys
import time

sys.path.insert(0, "/usr/local/lib/stand-in")  # what the test has put there: the engine mpi
from remedy.verify.onhost.engines.mpi import MpiGroup

options = dict(zip(sys.argv[1::2], sys.argv[2::2]))  # noqa: B905  (Python 3.8)
group = MpiGroup()
device = (
    f"#  Rank {group.rank:2d} Group {0:2d} Pid {os.getpid():6d} on {socket.gethostname():>10s} "
    f"device {0:2d} [0000:00:00] none"
)
devices = [
    text.decode("ascii").rstrip() for text in group.gather(device.ljust(200).encode("ascii"))
]


def half(size: int, seconds: float) -> str:
    """One half of a line; the times of a busy machine need many digits."""
    microseconds = float(f"{seconds * 1e6:.0f}")
    algbw = size / microseconds / 1e3
    busbw = algbw * 2 * (group.world - 1) / group.world
    return f"  {microseconds:7.0f}  {algbw:6.2f}  {busbw:6.2f}  {0:6g}"


lines = [
    "# nccl-tests version 0.0.0 nccl-headers=23007 nccl-library=23007",
    (
        f"# nThread 1 nGpus 1 minBytes {options['-b']} maxBytes {options['-e']} step: 2(factor) "
        f"warmup iters: 5 iters: 20 agg iters: 1 validation: {options['-c']} graph: 0 unalign: 0"
    ),
    "# Using devices",
    *devices,
]
size = int(options["-b"])
while size <= int(options["-e"]):
    buffer = group.buffer(size // 4)
    cells = []
    for once in (buffer.all_reduce_copy, buffer.all_reduce):
        buffer.fill(group.rank, 1)
        start = time.perf_counter()
        once()
        cells.append(half(size, time.perf_counter() - start))
    assert not buffer.wrong(sum(range(group.world)), group.world)
    lines.append(
        f"{size:12d}  {size // 4:12d}  {'float':>8s}  {'sum':>6s}  {-1:6d}{''.join(cells)}"
    )
    size *= 2
lines += ["# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 0 ", "#"]
if group.rank == 0:
    print("\n".join(lines), flush=True)
group.leave()
