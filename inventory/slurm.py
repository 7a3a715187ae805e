"""The nodes of a Slurm cluster, from a node list such as `gpu[001-064],gpu-big[1-4]`.

Where the list comes from, the first that is there:

- nodes.txt beside this file, a list a line, made by: sinfo --noheader --format=%N >nodes.txt
- the list in NODES below

The nodes of a job (SLURM_JOB_NODELIST) are no such list: an allocation is a part of the cluster, and hosts that
are missing in an inventory go missing in the hosts files of the others. For some hosts:
--limit "$SLURM_JOB_NODELIST".

Slurm's own `scontrol show hostnames` expands a list in the same way; it is not needed here, so this file works
on machines without Slurm too.
"""

from __future__ import annotations

from pathlib import Path

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

NODES = "gpu[001-004]"


def _node_list() -> str:
    beside = Path(__file__).with_name("nodes.txt")
    if not beside.exists():
        return NODES
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
