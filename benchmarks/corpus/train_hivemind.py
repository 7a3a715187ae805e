"""A mean over peers with hivemind's averager, able to fail in the ways that the scenarios ask for."""

import argparse
import time

import hivemind
import torch


def main():
    """Join the others and average; fail as told."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--listen", required=True)
    parser.add_argument("--join", default="")
    parser.add_argument("--fail", default="")
    args = parser.parse_args()
    dht = hivemind.DHT(
        host_maddrs=[f"/ip4/0.0.0.0/tcp/{args.listen}"],
        initial_peers=[args.join] if args.join else [],
        identity_path="/root/identity" if not args.join else None,
        start=True,
    )
    print("peer", dht.peer_id, flush=True)
    averager = hivemind.averaging.DecentralizedAverager(
        [torch.ones(4)], dht, prefix="run", target_group_size=2, min_matchmaking_time=3, start=True
    )
    for step in range(8):
        if step == 4 and args.fail == "raise":
            raise RuntimeError("optimizer state is empty")
        groups = averager.step(timeout=10, allow_retries=False)
        print(f"step {step} loss {1 / (step + 1):.3f} group {groups and len(groups)}", flush=True)
        time.sleep(0.1)
    print("training finished", flush=True)


main()
