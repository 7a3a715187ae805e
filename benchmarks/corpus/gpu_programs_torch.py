"""The jobs of ``gpu_programs`` that train with torch's own distributed package or accelerate."""

from __future__ import annotations

from benchmarks.corpus.gpu_programs_job import Job

DDP = "train_gpu_ddp.py"
DIED = "peer-died-timeout"
WAIT = "application-error;unknown"
LOST = "host-oom;peer-died-timeout"
# A library of this name that lacks most of what a program calls.
OLD_NCCL = """
printf 'int ncclGetVersion(int *v) { *v = 21505; return 0; }\\n' >/mnt/nccl.c
for name in GetUniqueId CommInitRank CommDestroy CommAbort GetErrorString CommGetAsyncError AllReduce \\
    Broadcast Reduce AllGather ReduceScatter Send Recv GroupStart GroupEnd CommCount CommCuDevice \\
    CommUserRank; do
    echo "int nccl$name(void) { return 3; }" >>/mnt/nccl.c
done
mkdir -p /mnt/nccl-2.15 && gcc -shared -fPIC -Wl,-soname,libnccl.so.2 -o /mnt/nccl-2.15/libnccl.so.2 /mnt/nccl.c
"""
OLD_TYPING = """
on 0 && exit 0
mkdir -p /mnt/tools/python3.8/site-packages
printf 'from typing import *\\n__all__ = ["Literal", "Protocol", "TypedDict", "Final"]\\n' \\
    >/mnt/tools/python3.8/site-packages/typing_extensions.py
"""
TORCH = (
    Job(
        "good-no-ipv6",
        "healthy",
        "",
        "c3-12.hpc.example c3-13.hpc.example",
        "torchrun c10d, hosts without IPv6",
        f"export TORCH_CPP_LOG_LEVEL=INFO; c10d_run {DDP} --steps 15",
        setup="sysctl -q -w net.ipv6.conf.all.disable_ipv6=1",
    ),
    Job(
        "good-no-plugin",
        "healthy",
        "",
        "ip-10-77-0-1 ip-10-77-0-2",
        "torchrun, NCCL_NET_PLUGIN=aws-ofi that is not installed",
        f"export NCCL_NET_PLUGIN=aws-ofi; torch_run {DDP} --steps 15 --leave",
        debug="INFO",
        prefix="kubectl",
    ),
    Job(
        "good-lossy",
        "healthy",
        "",
        "gpu-a-04 gpu-a-05 gpu-a-06",
        "python with RANK, three hosts, 3% of packets lost",
        f"env_run {DDP} --steps 12 --timeout 50",
        setup="rules input 'iif \"lo\" accept; numgen random mod 100 < 3 drop'",
        debug="WARN",
    ),
    Job(
        "good-restarted",
        "healthy",
        "unknown",
        "n0141 n0142",
        "torchrun c10d --max-restarts 2, one worker killed once, finished afterwards",
        f"""
c10d_run --max-restarts 2 --monitor-interval 1 {DDP} --steps 12 &
agent=$!
if on 1; then at "step 4"; kill -9 $(worker $agent); fi
wait $agent""",
    ),
    Job(
        "stopped",
        "peer-died-timeout",
        WAIT,
        "a100-u14 a100-u15",
        "torchrun c10d; a worker is stopped (SIGSTOP) in training",
        f"""
c10d_run {DDP} &
agent=$!
if on 1; then at "step 6"; kill -STOP $(worker $agent); fi
wait $agent""",
    ),
    Job(
        "uneven",
        "application-error",
        "peer-died-timeout;unknown",
        "dgx-11 dgx-12 dgx-13",
        "torchrun, three hosts with other numbers of samples",
        f"torch_run {DDP} --samples 300 --uneven",
    ),
    Job(
        "cancelled",
        "unknown",
        "healthy",
        "s07-p1-dgx-02 s07-p1-dgx-08",
        "torchrun; both ended by SIGTERM in healthy training",
        "timeout -s TERM 32 $PY -m torch.distributed.run --nnodes 2 --node-rank $NODE --master-addr $MASTER "
        f"{DDP} --steps 400 --samples 9000",
    ),
    Job(
        "files",
        "nofile-limit",
        "",
        "bio-g1 bio-g2",
        "torchrun with loader workers, ulimit -n 200",
        f"ulimit -n 200; torch_run {DDP} --workers 2 --keep --samples 9000 --steps 500 --pause 0",
    ),
    Job(
        "shm-nccl",
        "shm-too-small",
        "",
        "pod-train-0 pod-train-1",
        "python with RANK, /dev/shm of 2 MB",
        f"env_run {DDP}",
        setup="mount -t tmpfs -o size=2m tmpfs /dev/shm",
        debug="INFO",
    ),
    Job(
        "shm-stale",
        "stale-shm",
        "shm-too-small",
        "cs-node08 cs-node09",
        "torchrun with loader workers; left-over segments fill /dev/shm",
        f"df -h /dev/shm; ls -l /dev/shm | head -20; torch_run {DDP} --workers 2 --length 20001 --batch 64",
        setup="""
mount -t tmpfs -o size=256m tmpfs /dev/shm
on 0 && exit 0
for n in $(seq 8); do head -c 33554432 /dev/zero >/dev/shm/nccl-x9Kq2$n || true; done""",
    ),
    Job(
        "host-memory",
        "host-oom",
        "peer-died-timeout;unknown",
        "slurm-gpu-5 slurm-gpu-6",
        "torchrun, a memory cgroup of 6 GiB on the second host",
        f"on 1 && echo 0 >$(cat /mnt/cgroup)/cgroup.procs\ntorch_run {DDP} --cache 1024",
        setup="""
on 0 && exit 0
root=/sys/fs/cgroup; limit=memory.max
[ -d $root/memory ] && root=$root/memory && limit=memory.limit_in_bytes
group=$root/remedy-gpu-$RANDOM; mkdir $group; echo 6G >$group/$limit; echo $group >/mnt/cgroup""",
    ),
    Job(
        "no-mount",
        "storage-fault",
        "application-error",
        "lustre-c1 lustre-c2",
        "torchrun; the data set is missing on the second host",
        f"torch_run {DDP} --shards /mnt/scratch/tokens",
        setup="""
on 1 && exit 0
mkdir -p /mnt/scratch/tokens
$PY -c "
import numpy
numpy.save('/mnt/scratch/tokens/tokens-00000.npy', numpy.arange(65536) % 1000)\"""",
        prefix="pdsh",
    ),
    Job(
        "fsdp-one-gpu",
        "duplicate-gpu",
        "device-visibility",
        "ws-rtx-2",
        "torch.multiprocessing, FSDP, two ranks",
        "$PY train_gpu_spawn.py --per-node 2",
        debug="WARN",
    ),
    Job(
        "no-driver",
        "container-gpu-runtime",
        "missing-library;driver-mismatch",
        "ctr-a ctr-b",
        "torchrun; the second host's container has no GPU driver",
        f"torch_run {DDP}",
        setup="on 0 && exit 0\nwithout_library libcuda.so /usr/local/nvidia/lib64; without_devices\n"
        "! $PY -c 'import torch; torch.cuda.init()'",
    ),
    Job(
        "stub-driver",
        "driver-mismatch",
        "",
        "build-gpu-1 build-gpu-2",
        "python with RANK, LD_LIBRARY_PATH with the toolkit's stubs on the second host",
        f"on 1 && export LD_LIBRARY_PATH=/mnt/stubs:$LD_LIBRARY_PATH\nenv_run {DDP}",
        setup="""
on 0 && exit 0
mkdir /mnt/stubs
cp $(find -L /usr/local/cuda* /opt -path '*stubs/libcuda.so' 2>/dev/null | head -1) /mnt/stubs/libcuda.so.1""",
        limit=60,
    ),
    Job(
        "old-nccl",
        "nccl-version-mismatch",
        "missing-library",
        "mod-gpu-1 mod-gpu-2",
        "torchrun; a site's old libnccl comes first on the second host",
        f"on 1 && export LD_PRELOAD=/mnt/nccl-2.15/libnccl.so.2\ntorch_run {DDP}",
        setup=OLD_NCCL,
        needs="gcc",
    ),
    Job(
        "other-python",
        "multi-python",
        "env-not-propagated;application-error",
        "conda-g1 conda-g2",
        "python with RANK; another environment on the second host",
        f"on 1 && PY=/mnt/miniforge/envs/base/bin/python\nenv_run {DDP}",
        setup="on 0 && exit 0\n$PY -m venv --without-pip /mnt/miniforge/envs/base",
        prefix="kubectl",
    ),
    Job(
        "old-typing",
        "multi-python",
        "env-not-propagated;application-error",
        "mods-11 mods-12",
        "torchrun c10d; PYTHONPATH of another Python's packages on the second host",
        f"on 1 && export PYTHONPATH=/mnt/tools/python3.8/site-packages\nc10d_run {DDP}",
        setup=OLD_TYPING,
    ),
    Job(
        "batch-too-big",
        "application-error",
        "",
        "h200-1 h200-2",
        "torchrun; the batch needs more than the GPU's share",
        f"torch_run {DDP} --fraction .02 --batch 4096 --length 513",
        debug="WARN",
    ),
    Job(
        "shapes",
        "application-error",
        "",
        "exp-gpu-1 exp-gpu-2",
        "python with RANK, another width on each host",
        f"env_run {DDP} --dim $((128 + 64 * NODE))",
    ),
    Job(
        "collectives",
        "application-error",
        "peer-died-timeout",
        "cn-0412 cn-0413",
        "torchrun, TORCH_DISTRIBUTED_DEBUG=DETAIL; ranks call other collectives",
        f"export TORCH_DISTRIBUTED_DEBUG=DETAIL; torch_run {DDP} --evaluate",
    ),
    Job(
        "unused",
        "application-error",
        "",
        "gaia-1 gaia-2",
        "torchrun --log-dir --tee; a head without gradients",
        f"torch_run --log-dir /mnt/logs --tee 3 {DDP} --value-head",
    ),
    Job(
        "accelerate-ordinal",
        "device-visibility",
        "rank-mismatch;application-error",
        "ac-node1 ac-node2",
        "accelerate launch with four processes on two hosts of one GPU",
        "OF=4 accelerate_run train_gpu_accelerate.py",
    ),
    Job(
        "accelerate-efa",
        "efa-plugin-missing",
        "env-not-propagated;ib-misconfig",
        "ip-10-77-0-1 ip-10-77-0-2",
        "accelerate launch, NCCL_NET='AWS Libfabric' without the plugin",
        "export NCCL_NET='AWS Libfabric'; accelerate_run train_gpu_accelerate.py",
        debug="WARN",
    ),
)
