"""The nodes of a Slurm cluster, from a node list such as `gpu[001-064],gpu-big[1-4]`.

Where the list comes from, the first that is there:

- nodes.txt beside this file, a list a line, made by: sinfo --noheader --format=%N >nodes.txt
- SLURM_JOB_NODELIST, which a job has in its environment
- the list in NODES below

Slurm's own `scontrol show hostnames` expands a list in the same way; it is not needed here, so this file works
on machines without Slurm too.
"""

from __future__ import annotations

import os
from pathlib import Path

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

NODES = "gpu[001-004]"


def _node_list() -> str:
    beside = Path(__file__).with_name("nodes.txt")
    if not beside.exists():
        return os.environ.get("SLURM_JOB_NODELIST") or NODES
    lines = (line.split("#")[0].strip() for line in beside.read_text(encoding="utf-8").splitlines())
    return ",".join(line for line in lines if line)


slurm = (
    [str(name) for name in NodeSet(_node_list(), resolver=RESOLVER_NOGROUP)],
    {
        "ssh_user": "root",
        # The interpreter that has torch, where that is not the python3 of a plain login:
        # "python": "/opt/training/bin/python",
    },
)
