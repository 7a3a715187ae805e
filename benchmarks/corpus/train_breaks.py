"""What programs of the corpus do to themselves in the middle of a run: imported by those beside it."""

import ctypes
import json
import os
import sys
import time
from pathlib import Path


def add_arguments(parser):
    """Add what every program takes."""
    parser.add_argument("--fail", default="")
    parser.add_argument("--rank", type=int, default=1, help="the rank that fails; -1: all")
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--data", default="")
    parser.add_argument("--save", default="")
    return parser


def fail(kind, rank, failing):
    """Break this process, if its rank is the one that fails."""
    if failing not in (-1, rank):
        return
    if kind == "raise":
        json.loads("{'epoch': 3, 'lr': 0.001}")
    if kind == "nan":
        raise FloatingPointError("loss is nan after 8 steps")
    if kind == "key":
        print({"input_ids": 1}["labels"])
    if kind == "module":
        import flash_attn_interface  # noqa: F401
    if kind == "library":
        ctypes.CDLL("libcudnn_graph.so.9")
    if kind == "segv":
        ctypes.string_at(0)
    if kind == "exit":
        sys.exit(7)
    if kind == "kill":
        os.kill(os.getpid(), 9)
    if kind == "stall":
        time.sleep(200)
    if kind == "disk":
        Path("/ckpt/optimizer.bin").write_bytes(bytes(16 << 20))
    if kind == "data":
        Path("/mnt/lustre/tokens/shard-00017.bin").read_bytes()
    if kind == "files":
        keep = [os.open("/etc/hostname", os.O_RDONLY) for _ in range(4096)]
        print(len(keep))
    if kind == "memory":
        keep = []
        while True:
            keep.append(bytearray(os.urandom(1 << 20)) * 64)
