"""The training program of the corpus for Paddle: data-parallel on processors, and able to fail when told."""

import argparse
import os

import paddle
import paddle.distributed as dist


def main():
    """Join the group, train; fail as told."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--fail", default="")
    parser.add_argument("--rank", type=int, default=1, help="the rank that fails")
    args = parser.parse_args()
    fail = args.fail if int(os.environ.get("PADDLE_TRAINER_ID", 0)) == args.rank else ""
    dist.init_parallel_env()
    rank, world = dist.get_rank(), dist.get_world_size()
    print(f"rank {rank}/{world} joined", flush=True)
    paddle.seed(rank)
    model = paddle.DataParallel(paddle.nn.Linear(16, 1))
    optimizer = paddle.optimizer.SGD(learning_rate=0.01, parameters=model.parameters())
    for step in range(args.steps):
        if step == args.steps // 2:
            if fail == "raise":
                raise RuntimeError(f"loss is NaN at step {step}, stopping")
            if fail == "kill":
                os.kill(os.getpid(), 9)
        loss = model(paddle.randn([8, 16])).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        print(f"step {step:4d} loss {float(loss):.5f} lr 1.0e-02", flush=True)
    print("training finished", flush=True)


main()
