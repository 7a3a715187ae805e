"""Work on engines of ipyparallel, able to fail in the ways that the scenarios ask for."""

import argparse

import ipyparallel


def work(step, kind):
    """What an engine does."""
    import os
    import time
    from pathlib import Path

    if step == 6:
        if kind == "raise":
            raise ZeroDivisionError("no samples in this shard")
        if kind == "kill":
            os.kill(os.getpid(), 9)
        if kind == "stall":
            time.sleep(90)
        if kind == "disk":
            Path("/ckpt/part.bin").write_bytes(bytes(16 << 20))
        if kind == "data":
            Path("/fsx/shards.txt").read_text()
        if kind == "module":
            __import__("apex")
    return step * 2


def main():
    """Start two engines, or join those that there are, and map over them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fail", default="")
    parser.add_argument("--engines", type=int, default=2)
    args = parser.parse_args()
    cluster = ipyparallel.Cluster(n=args.engines, log_level=20)
    client = cluster.start_and_connect_sync(activate=False)
    print(f"engines {client.ids}", flush=True)
    for step in range(10):
        totals = client[:].apply_sync(work, step, args.fail)
        print(f"step {step} loss {sum(totals)}", flush=True)
    cluster.stop_cluster_sync()


main()
