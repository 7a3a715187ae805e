"""A regression over all processes' devices with jax.distributed and optax."""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec


def main():
    """Join, train, and end."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--coordinator", default="")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--process", type=int, default=0)
    parser.add_argument("--timeout", type=int, default=20)
    parser.add_argument("--heartbeat", type=int, default=10)
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--batch", type=int, default=64, help="of each process")
    parser.add_argument("--dim", type=int, default=256)
    args = parser.parse_args()
    if args.coordinator:
        jax.distributed.initialize(
            coordinator_address=args.coordinator,
            num_processes=args.processes,
            process_id=args.process,
            initialization_timeout=args.timeout,
            heartbeat_timeout_seconds=args.heartbeat,
        )
    print(f"process {jax.process_index()}/{jax.process_count()}: {jax.devices()}", flush=True)
    mesh = Mesh(np.array(jax.devices()), ("data",))
    spread, whole = NamedSharding(mesh, PartitionSpec("data")), NamedSharding(mesh, PartitionSpec())
    key = np.random.default_rng(0)
    start = {"w1": key.normal(size=(32, args.dim)), "w2": key.normal(size=(args.dim, 1))}
    params = {
        name: jax.make_array_from_process_local_data(whole, value.astype(np.float32) * 0.1)
        for name, value in start.items()
    }
    optimizer = optax.adam(1e-3)
    state = jax.jit(optimizer.init)(params)

    def loss_of(params, x, y):
        hidden = jax.nn.relu(x @ params["w1"])
        return jnp.mean((hidden @ params["w2"] - y) ** 2)

    @jax.jit
    def update(params, state, x, y):
        loss, gradients = jax.value_and_grad(loss_of)(params, x, y)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, loss

    for step in range(args.steps):
        local = key.normal(size=(args.batch, 32)).astype(np.float32)
        x = jax.make_array_from_process_local_data(spread, local)
        y = jax.make_array_from_process_local_data(spread, local[:, :1])
        params, state, loss = update(params, state, x, y)
        print(f"step {step} loss {float(loss):.4f}", flush=True)
        time.sleep(0.2)
    print("done", flush=True)


if __name__ == "__main__":
    main()
