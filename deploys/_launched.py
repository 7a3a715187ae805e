"""The variables by which launchers tell their processes who they are. Not a remedy itself.

Names: torch/distributed/run.py; paddle/distributed/launch (context, controllers); MindSpore's page on
dynamic_cluster; srun(1), OUTPUT ENVIRONMENT VARIABLES; what Open MPI and PMIx set.
"""

from __future__ import annotations

import re

_PROCESS = re.compile(
    r"(RANK|LOCAL_RANK|GROUP_RANK|ROLE_RANK|NODE_RANK|RANK_ID|DEVICE_ID|POD_IP|TORCHELASTIC_\w+"
    r"|PADDLE_(TRAINER_ID|CURRENT_ENDPOINT|RANK|RANK_IN_NODE|LOCAL_RANK|GLOBAL_RANK|LOCAL_DEVICE_IDS|PORT)"
    r"|MS_(ROLE|NODE_ID|WORKER_IP)|OMPI_COMM_WORLD_\w+|PMI_\w+|PMIX_(RANK|NAMESPACE|ID|SERVER_\w+)"
    r"|SLURM_(PROCID|LOCALID|NODEID|STEPID|STEP_ID|TASK_PID|GTIDS|JOB_ID|JOBID))\Z"
)
_JOB = re.compile(
    r"(WORLD_SIZE|LOCAL_WORLD_SIZE|GROUP_WORLD_SIZE|MASTER_ADDR|MASTER_PORT|RANK_SIZE|RANK_TABLE_FILE"
    r"|MINDSPORE_HCCL_CONFIG_PATH|PADDLE_(TRAINERS|TRAINERS_NUM|TRAINER_ENDPOINTS|TRAINERS_ENDPOINTS|MASTER"
    r"|NNODES|NPROC_PER_NODE|JOB_ID|START_PORT|IPS)|FLAGS_START_PORT|MS_(SCHED_HOST|SCHED_PORT|WORKER_NUM"
    r"|SERVER_NUM)|OMPI_UNIVERSE_SIZE|SLURM_(NTASKS|NPROCS|NNODES|JOB_NUM_NODES|JOB_NODELIST|NODELIST"
    r"|STEP_\w+|TASKS_PER_NODE|NTASKS_PER_NODE))\Z"
)


def of_process(name: str) -> bool:
    """Return whether a launcher gives each process a value of its own."""
    return _PROCESS.match(name) is not None


def of_job(name: str) -> bool:
    """Return whether a launcher gives all processes of a job one value."""
    return _JOB.match(name) is not None


def of_launcher(name: str) -> bool:
    """Return whether a launcher sets it, for its processes or its job."""
    return of_process(name) or of_job(name)
