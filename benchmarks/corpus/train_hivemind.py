"""A mean over peers with hivemind's averager, able to fail in the ways that the scenarios ask for."""

import argparse

import hivemind
import torch


def main():
    """Join the others and average; fail as told."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--listen", required=True)
    parser.add_argument("--join", default="")
    parser.add_argument("--fail", default="")
    args = parser.parse_args()
    first = hivemind.DHT(
        host_maddrs=[f"/ip4/0.0.0.0/tcp/{args.listen}"],
        initial_peers=[args.join] if args.join else [],
        start=True,
    )
    second = hivemind.DHT(initial_peers=first.get_visible_maddrs(), start=True)
    print("peers", first.peer_id, second.peer_id, flush=True)
    averagers = [
        hivemind.averaging.DecentralizedAverager(
            [torch.ones(4)],
            dht,
            prefix="run",
            target_group_size=2,
            min_matchmaking_time=3,
            start=True,
        )
        for dht in (first, second)
    ]
    for step in range(4):
        if step == 2 and args.fail == "raise":
            raise RuntimeError("optimizer state is empty")
        waiting = [averager.step(timeout=20, wait=False) for averager in averagers]
        groups = [len(one.result()) for one in waiting]
        print(f"step {step} loss {1 / (step + 1):.3f} group {groups}", flush=True)
    print("training finished", flush=True)
    for peer in (*averagers, first, second):
        peer.shutdown()


main()
