"""Running scripts on hosts as steps of a Slurm job, in place of ssh.

What runs there is what a job's own ranks are: below slurmstepd as the job's user, in its control groups, with
its devices, limits and environment. ``Allocation`` is the job that remedy runs in, ``Steps`` starts one
``srun`` for each host. What goes wrong with one host is that host's ``Output.error``; the end of the job ends
everything (``LaunchError``).
"""

from __future__ import annotations

from remedy.transport.slurm.allocation import Allocation, Placement, outside, read_allocation
from remedy.transport.slurm.steps import Steps

__all__ = ["Allocation", "Placement", "Steps", "outside", "read_allocation"]
