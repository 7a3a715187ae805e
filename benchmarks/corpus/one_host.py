"""Runs of one program by torchrun: good ones, failures of the program, limits of the host."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.corpus.scenario import C10D, GOOD, LOCAL, RUN, TEE, Scenario, one, two


def healthy() -> Iterator[Scenario]:
    """Runs in which nothing is wrong, frightening warnings among their words."""
    yield one("healthy-plain", "healthy", LOCAL + "train.py")
    yield one("healthy-tee", "healthy", TEE + "train.py --steps 60")
    yield one(
        "healthy-verbose",
        "healthy",
        "TORCH_CPP_LOG_LEVEL=INFO TORCH_DISTRIBUTED_DEBUG=INFO " + LOCAL + "train.py",
    )
    yield one("healthy-loader", "healthy", LOCAL + "train.py --workers 2 --save /tmp")
    yield two("healthy-two-hosts", "healthy", RUN + " train.py", setup=GOOD)
    yield two("healthy-elastic", "healthy", C10D + " --local-addr {a} train.py", setup=GOOD)


def application() -> Iterator[Scenario]:
    """Failures of the program itself."""
    for fail in ("raise", "assert", "exit", "shape", "shapes", "config", "module", "segv"):
        yield one(f"application-{fail}", "application-error", LOCAL + f"train.py --fail {fail}")
    yield one(
        "application-sample",
        "application-error",
        TEE + "train.py --workers 2 --fail sample --rank -1",
    )
    yield one("application-unused", "application-error", LOCAL + "train.py --fail unused --rank -1")
    # This torch crashes by itself with so much told.
    yield one(
        "application-debug-crash",
        "application-error",
        "TORCH_CPP_LOG_LEVEL=INFO TORCH_DISTRIBUTED_DEBUG=DETAIL " + LOCAL + "train.py",
    )
    yield one("application-usage", "application-error", LOCAL + "train.py --learning-rate 0.1")
    yield one("application-no-file", "application-error", LOCAL + "trainer.py")
    yield one(
        "application-mismatch",
        "application-error",
        "TORCH_DISTRIBUTED_DEBUG=DETAIL " + LOCAL + "train.py --fail extra",
        secondary="peer-died-timeout",
    )
    yield Scenario(
        "application-no-launcher", "application-error", "python train.py", secondary="rank-mismatch"
    )


def limits() -> Iterator[Scenario]:
    """Limits, memory, disks and libraries of the host."""
    small = {"*": "mount -o remount,size=3m /dev/shm"}
    yield one("shm-loader", "shm-too-small", LOCAL + "train.py --workers 2", setup=small)
    yield one("shm-loader-tee", "shm-too-small", TEE + "train.py --workers 1", setup=small)
    yield Scenario(
        "shm-tensor",
        "shm-too-small",
        "python -c 'import torch; torch.ones(8<<20).share_memory_().fill_(2)'",
        setup=small,
    )
    yield Scenario(
        "nofile-sharing",
        "nofile-limit",
        "ulimit -n 64; python -c 'import torch; x=[torch.ones(1).share_memory_() for _ in range(200)]'",
    )
    yield one("nofile-loader", "nofile-limit", "ulimit -n 48; " + LOCAL + "train.py --workers 9")
    full = {"*": "mkdir -p /ckpt; mount -t tmpfs -o size=4m none /ckpt"}
    yield one("disk-full-save", "disk-full", LOCAL + "train.py --save /ckpt", setup=full)
    yield one("disk-full-tee", "disk-full", TEE + "train.py --save /ckpt", setup=full)
    yield one(
        "disk-full-log",
        "disk-full",
        "torchrun --standalone --nproc-per-node 2 --log-dir /ckpt/logs --redirects 3 train.py",
        setup={"*": "mkdir -p /ckpt; mount -t tmpfs -o size=4m,nr_inodes=3 none /ckpt"},
    )
    yield one(
        "storage-read-only",
        "storage-fault",
        LOCAL + "train.py --save /ckpt",
        setup={"*": "mkdir -p /ckpt; mount -t tmpfs -o ro none /ckpt"},
    )
    yield one(
        "memory-tensor", "host-oom", LOCAL + "train.py --fail memory", secondary="application-error"
    )
    yield Scenario(
        "memory-fork",
        "host-oom",
        "ulimit -v 6000000; python -c 'import torch; x = [torch.ones(1 << 28) for _ in range(9)]'",
        secondary="application-error",
    )
    yield one("library-cudart", "missing-library", LOCAL + "train.py --fail library --rank -1")
    yield one("library-hccl", "missing-library", TEE + "train.py --fail npu-library")
    yield Scenario(
        "library-numa",
        "missing-library",
        "LD_PRELOAD= python -c 'import ctypes; ctypes.CDLL(\"libnuma.so.99\")'",
    )
