"""Fabric starts torchrun on every host by ssh, all at once, and says whose end it was."""

import argparse
import concurrent.futures
import sys

from fabric import Connection


def main():
    """Run the job on the hosts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--hosts", required=True)
    parser.add_argument("--master", required=True)
    parser.add_argument("--path", required=True)
    parser.add_argument("words", nargs="*")
    args = parser.parse_args()
    hosts = args.hosts.split(",")

    def run(rank):
        words = " ".join(args.words)
        job = (
            f"cd /root; PATH={args.path} OMP_NUM_THREADS=1 torchrun --nnodes {len(hosts)} --nproc-per-node 1 "
            f"--node-rank {rank} --master-addr {args.master} --master-port 29591 "
            f"--rdzv-conf timeout=20 train.py {words}"
        )
        options = {"look_for_keys": False, "allow_agent": False, "password": ""}
        connection = Connection(hosts[rank], user="root", connect_timeout=6, connect_kwargs=options)
        return connection.run(job, hide=False, pty=False)

    with concurrent.futures.ThreadPoolExecutor(len(hosts)) as pool:
        runs = {pool.submit(run, rank): host for rank, host in enumerate(hosts)}
        for future in concurrent.futures.as_completed(runs):
            print(f"[{runs[future]}] exited {future.result().exited}", file=sys.stderr)


main()
