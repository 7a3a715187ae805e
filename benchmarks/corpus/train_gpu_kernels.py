"""Kernels that users write, one of them a run: with Triton, Numba and CuPy."""

import argparse

import numpy


def matmul(columns, block):
    """A product of two matrices, in one Triton program."""
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(x, y, out, n, size: tl.constexpr):
        rows = tl.arange(0, size)[:, None]
        offsets = tl.arange(0, size)[None, :]
        left = tl.load(x + rows * n + offsets)
        right = tl.load(y + rows * n + offsets)
        tl.store(out + rows * n + offsets, tl.dot(left, right))

    x = torch.randn(columns, columns, device="cuda", dtype=torch.float16)
    out = torch.empty_like(x, dtype=torch.float32)
    kernel[(1,)](x, x, out, columns, size=block, num_warps=4)
    torch.cuda.synchronize()
    print("matmul", out.sum().item())


def smooth(threads):
    """A stencil with Numba."""
    from numba import cuda, float64

    @cuda.jit
    def kernel(x, out):
        tile = cuda.local.array(64, float64)
        i = cuda.grid(1)
        for j in range(64):
            tile[j] = x[(i + j) % x.size] * (j + 1.5)
        total = 0.0
        for j in range(64):
            total += tile[(i * j) % 64] / (tile[j] + 1.0)
        out[i] = total

    x = cuda.to_device(numpy.random.rand(1 << 20))
    out = cuda.device_array_like(x)
    kernel[x.size // threads, threads](x, out)
    cuda.synchronize()
    print("smoothed", out.copy_to_host().sum())


def scatter(stride):
    """A scatter with a raw kernel of CuPy."""
    import cupy

    code = r"""
    extern "C" __global__ void scatter(const float* x, float* out, long long n, long long stride) {
        long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) out[i * stride] = 2.0f * x[i];
    }
    """
    x = cupy.random.random(1 << 20, dtype=cupy.float32)
    out = cupy.zeros_like(x)
    cupy.RawKernel(code, "scatter")(
        (x.size // 256,), (256,), (x, out, numpy.int64(x.size), numpy.int64(stride))
    )
    print("scattered", float(out.sum()))


def gather(size, gib):
    """A table that a job fills on one device."""
    import cupy

    table = [cupy.ones(size, dtype=cupy.float32) for _ in range(gib)]
    print("gathered", float(sum(part[0] for part in table)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("kernel", choices=["matmul", "smooth", "scatter", "gather"])
    parser.add_argument("--columns", type=int, default=64)
    parser.add_argument("--block", type=int, default=64)
    parser.add_argument("--threads", type=int, default=256)
    parser.add_argument("--stride", type=int, default=1)
    parser.add_argument("--gib", type=int, default=8)
    options = parser.parse_args()
    if options.kernel == "matmul":
        matmul(options.columns, options.block)
    if options.kernel == "smooth":
        smooth(options.threads)
    if options.kernel == "scatter":
        scatter(options.stride)
    if options.kernel == "gather":
        gather(2**28, options.gib)
