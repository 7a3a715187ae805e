"""What a recording of ``gpu_programs`` is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Job:
    """One recording.

    Args:
        name: its folder.
        label: its cause.
        secondary: what counts as right, too, as in an index.
        hosts: the names of its hosts.
        command: what was run, in words.
        run: shell text that each host runs, and that is recorded.
        setup: shell text that each host runs before; where it fails the job is not recorded.
        names: lines of /etc/hosts before those of the cluster; HOST: the host's own name.
        options: "sameboot": one boot-id for all hosts; "noname": hosts do not know their own names.
        debug: NCCL_DEBUG.
        prefix: "kubectl": a timestamp before each line; "pdsh": the host's name.
        limit: seconds after which the hosts are lost.
        needs: programs that it cannot do without.
        alone: whether it needs the GPU for itself.
    """

    name: str
    label: str
    secondary: str
    hosts: str
    command: str
    run: str
    setup: str = ""
    names: str = ""
    options: str = ""
    debug: str = ""
    prefix: str = ""
    limit: float = 75
    needs: str = ""
    alone: bool = False
