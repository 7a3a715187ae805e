"""The jobs of ``gpu_programs`` of other launchers and libraries, and those that fill the GPU."""

from __future__ import annotations

import os

from benchmarks.corpus.gpu_programs_job import Job

FEW = "peer-died-timeout;unknown"
KERNELS = "train_gpu_kernels.py"
OTHER = "REMEDY_OTHER_NCCL"
"""The variable that names another release of libnccl, for hosts that do not agree."""
# CuPy looks for the libnccl that torch came with.
CUPY = """
nccl=$($PY -c 'import nvidia.nccl as n; print(list(n.__path__)[0])')
export LD_LIBRARY_PATH=$nccl/lib:$LD_LIBRARY_PATH
"""
NEWER = r"""
cat >/mnt/saxpy.cu <<'END'
#include <cstdio>
__global__ void saxpy(int n, float a, float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
#define CHECK(call) do { \
    cudaError_t e = (call); \
    if (e != cudaSuccess) { \
        fprintf(stderr, "CUDA error %s:%d: '%s'\n", __FILE__, __LINE__, cudaGetErrorString(e)); \
        return 1; \
    } } while (0)
int main() {
    float *x, *y;
    int n = 1 << 20;
    CHECK(cudaMalloc(&x, n * sizeof(float)));
    CHECK(cudaMalloc(&y, n * sizeof(float)));
    saxpy<<<n / 256, 256>>>(n, 2.0f, x, y);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    printf("saxpy of %d elements done\n", n);
}
END
cd /mnt && nvcc -gencode arch=compute_100,code=sm_100 -o saxpy saxpy.cu"""
OTHERS = (
    Job(
        "good-trainer",
        "healthy",
        "",
        "acc-gpu-1 acc-gpu-2",
        "accelerate launch of a transformers Trainer",
        "accelerate_run train_gpu_trainer.py --steps 20",
        prefix="kubectl",
    ),
    Job(
        "good-lightning",
        "healthy",
        "",
        "pl-worker-0 pl-worker-1",
        "python with NODE_RANK, Lightning",
        "lightning_run --samples 640",
    ),
    Job(
        "good-jax",
        "healthy",
        "",
        "jx-101 jx-102",
        "python, jax.distributed, NCCL_IB_HCA of adapters that are not there",
        "export NCCL_IB_HCA=mlx5_0,mlx5_1 TF_CPP_MIN_LOG_LEVEL=0; jax_run --steps 12",
        debug="WARN",
    ),
    Job(
        "good-cupy",
        "healthy",
        "",
        "cp-1 cp-2 cp-3",
        "python, cupyx.distributed on three hosts",
        CUPY + "cupy_run --steps 12",
        debug="INFO",
    ),
    Job(
        "jax-firewall",
        "firewall-ports",
        FEW,
        "gke-pool-1 gke-pool-2",
        "python, jax.distributed; all ports but the coordinator's dropped",
        "jax_run",
        setup='sysctl -q -w net.ipv4.tcp_syn_retries=2; rules input "$KNOWN tcp dport 29500 accept; '
        'meta l4proto tcp drop"',
        debug="INFO",
    ),
    Job(
        "jax-port",
        "master-port-in-use",
        "stale-process;peer-died-timeout",
        "jobs-a jobs-b",
        "python, jax.distributed; the coordinator's port is taken",
        "jax_run",
        setup="if on 0; then take 29500; fi",
    ),
    Job(
        "jax-two-of-three",
        "rank-mismatch",
        FEW,
        "tg-1 tg-2",
        "python, jax.distributed with three processes, two of them started",
        "OF=3 jax_run",
    ),
    Job(
        "jax-killed",
        "unknown",
        "host-oom;peer-died-timeout",
        "exa-n7 exa-n8",
        "python, jax.distributed; a process gets SIGKILL",
        """
$PY train_gpu_jax.py --coordinator $MASTER:$PORT --processes 2 --process $NODE --steps 60 &
if on 1; then at "step 8"; kill -9 $!; fi
wait $!
echo "exit status $?" """,
    ),
    Job(
        "jax-not-visible",
        "device-visibility",
        "container-gpu-runtime",
        "mig-g1 mig-g2",
        "python, jax.distributed, CUDA_VISIBLE_DEVICES=4 on the second host",
        "on 1 && export CUDA_VISIBLE_DEVICES=4\njax_run",
    ),
    Job(
        "jax-no-devices",
        "container-gpu-runtime",
        "device-visibility;driver-mismatch",
        "pod-jax-0 pod-jax-1",
        "python, jax.distributed; no device files in the second host's container",
        "jax_run",
        setup="on 0 && exit 0\nwithout_devices; ! nvidia-smi -L",
        prefix="kubectl",
    ),
    Job(
        "lightning-port",
        "master-port-in-use",
        "stale-process",
        "lab-g1 lab-g2",
        "python with NODE_RANK, Lightning; MASTER_PORT is taken",
        "lightning_run",
        setup="if on 0; then take 29500; fi",
        limit=50,
    ),
    Job(
        "lightning-inodes",
        "disk-full",
        "",
        "home-g1 home-g2",
        "python with NODE_RANK, Lightning; few inodes for checkpoints",
        "lightning_run --root /mnt/runs --save-every 4",
        setup="mkdir /mnt/runs; mount -t tmpfs -o nr_inodes=4 t /mnt/runs",
        debug="WARN",
    ),
    Job(
        "trainer-disk",
        "disk-full",
        "",
        "quota-1 quota-2",
        "torchrun of a transformers Trainer, output on a disk of 6 MB",
        "torch_run train_gpu_trainer.py --output /mnt/out",
        setup="mkdir /mnt/out; mount -t tmpfs -o size=6m t /mnt/out",
    ),
    Job(
        "trainer-read-only",
        "storage-fault",
        "",
        "gpfs-g1 gpfs-g2",
        "torchrun c10d of a transformers Trainer; output is mounted read-only on the first host",
        "c10d_run train_gpu_trainer.py --output /mnt/gpfs/run4",
        setup="mkdir /mnt/gpfs; mount -t tmpfs t /mnt/gpfs; mkdir /mnt/gpfs/run4; "
        "on 1 || mount -o remount,ro /mnt/gpfs",
        prefix="pdsh",
    ),
    Job(
        "trainer-tokens",
        "application-error",
        "gpu-hardware-xid",
        "llm-g1 llm-g2",
        "torchrun of a transformers Trainer; token ids beyond the vocabulary",
        "torch_run train_gpu_trainer.py --vocab 1900",
    ),
    Job(
        "cupy-refused",
        "firewall-ports",
        FEW,
        "num-1 num-2",
        "python, cupyx.distributed; its port is rejected",
        CUPY + "cupy_run",
        setup='if on 0; then rules input "$KNOWN tcp dport 13333-13400 reject with tcp reset"; fi',
        limit=50,
    ),
    Job(
        "cupy-late",
        "unknown",
        "peer-died-timeout;application-error",
        "seis-a seis-b",
        "python, cupyx.distributed; a rank reads its input for too long, the user's timeout ends both",
        CUPY
        + "timeout -s INT 40 $PY train_gpu_cupy.py --host $MASTER --rank $NODE --load $((NODE * 90))",
        debug="WARN",
        limit=60,
    ),
    Job(
        "mpi-library",
        "missing-library",
        "env-not-propagated",
        "ompi-g1",
        "python with mpi4py, its MPI module not loaded",
        "export MPI4PY_LIBMPI=/opt/openmpi-5.0/lib/libmpi.so.40; $PY -c 'from mpi4py import MPI; "
        "print(MPI.COMM_WORLD.rank)'",
        setup="$PY -c 'import mpi4py'",
    ),
    Job(
        "triton-shared",
        "application-error",
        "",
        "tk-01",
        "python, a Triton kernel with blocks that are too large",
        f"$PY {KERNELS} matmul --columns 512 --block 512",
    ),
    Job(
        "cupy-bounds",
        "application-error",
        "gpu-hardware-xid",
        "ck-01",
        "python, a CuPy kernel that writes beyond its array",
        f"$PY {KERNELS} scatter --stride 1048576",
    ),
    Job(
        "newer-arch",
        "application-error",
        "driver-mismatch",
        "sm-g1",
        "a CUDA program built for sm_100",
        "/mnt/saxpy",
        setup=NEWER,
        needs="nvcc",
    ),
    *(
        [
            Job(
                "nccl-releases",
                "nccl-version-mismatch",
                "peer-died-timeout;application-error;unknown",
                "rel-g1 rel-g2",
                "python, jax.distributed, another libnccl on the second host",
                f"on 1 && export LD_PRELOAD={os.environ[OTHER]}\njax_run",
                debug="INFO",
            )
        ]
        if OTHER in os.environ
        else []
    ),
    Job(
        "left-over",
        "stale-process",
        "application-error",
        "shared-g1",
        "torchrun; a left-over process holds the GPU's memory",
        "nvidia-smi --query-compute-apps=pid,used_memory,name --format=csv; "
        "torch_run train_gpu_ddp.py --batch 512 --length 257",
        setup="hold 1200",
        limit=40,
        alone=True,
    ),
    Job(
        "left-over-jax",
        "stale-process",
        "application-error",
        "shared-g2",
        "python, JAX with preallocation; a left-over process holds the GPU's memory",
        "unset XLA_PYTHON_CLIENT_PREALLOCATE XLA_PYTHON_CLIENT_MEM_FRACTION; $PY train_gpu_jax.py --dim 8192 "
        "--batch 65536",
        setup="hold 1500",
        limit=40,
        alone=True,
    ),
    Job(
        "left-over-start",
        "stale-process",
        "application-error",
        "shared-g3 shared-g4",
        "torchrun; left-over processes leave less than a context needs",
        "torch_run train_gpu_ddp.py",
        setup="if on 0; then hold 700; else sleep 12; fi",
        limit=45,
        alone=True,
    ),
)
