"""The variables by which launchers tell their processes who they are. Not a remedy itself.

Names: torch/distributed/run.py, and argparse_util.py there, by which torchrun takes each argument from PET_ and
its name; paddle/distributed/launch (context, controllers), fleet/base/role_maker.py; MindSpore's page on
dynamic_cluster; srun(1), OUTPUT ENVIRONMENT VARIABLES; what Open MPI and PMIx set; horovod/runner/gloo_run.py;
JAX's page on multi-process; NCCL_COMM_ID in NCCL's env.rst.
"""

from __future__ import annotations

import re

_PROCESS = re.compile(
    r"(RANK|LOCAL_RANK|GROUP_RANK|ROLE_RANK|NODE_RANK|RANK_ID|DEVICE_ID|POD_IP|TORCHELASTIC_\w+|PET_NODE_RANK"
    r"|PADDLE_(TRAINER_ID|CURRENT_ENDPOINT|WORKER_ENDPOINT|RANK|RANK_IN_NODE|LOCAL_RANK|GLOBAL_RANK"
    r"|LOCAL_DEVICE_IDS|PORT|ROLE)|TRAINING_ROLE|FLAGS_selected_\w+|MS_(ROLE|NODE_ID|WORKER_IP)"
    r"|OMPI_COMM_WORLD_\w+|OMPI_MCA_(ess|orte_ess_\w+|ess_base_\w+|orte_hnp_uri|orte_local_daemon_uri)"
    r"|PMI_\w+|PMIX_(RANK|NAMESPACE|ID|SERVER_\w+)|HOROVOD_((LOCAL_|CROSS_)?RANK|HOSTNAME)|JAX_PROCESS_ID"
    r"|SLURM_(PROCID|LOCALID|NODEID|STEPID|STEP_ID|TASK_PID|GTIDS|JOB_ID|JOBID))\Z"
)
_JOB = re.compile(
    r"(WORLD_SIZE|LOCAL_WORLD_SIZE|GROUP_WORLD_SIZE|MASTER_ADDR|MASTER_PORT|PET_(?!NODE_RANK\Z)\w+|RANK_SIZE|RANK_TABLE_FILE"
    r"|MINDSPORE_HCCL_CONFIG_PATH|PADDLE_(TRAINERS|TRAINERS?_NUM|TRAINERS?_ENDPOINTS|MASTER|MASTER_ENDPOINT"
    r"|NNODES|NPROC_PER_NODE|JOB_ID|START_PORT|IPS|RUN_MODE|SERVER_NUM|SERVERS_ENDPOINTS|PSERVERS?_\w+"
    r"|GLOO_(PORT|RENDEZVOUS|HTTP_ENDPOINT)|WITH_GLOO|GLOBAL_SIZE|LOCAL_SIZE|WORLD_DEVICE_IDS)"
    r"|FLAGS_START_PORT|MS_(SCHED_HOST|SCHED_PORT|WORKER_NUM|SERVER_NUM)|OMPI_UNIVERSE_SIZE|NCCL_COMM_ID"
    r"|HOROVOD_((LOCAL_|CROSS_)?SIZE|GLOO_RENDEZVOUS_\w+)|JAX_(COORDINATOR_\w+|NUM_PROCESSES)"
    r"|SLURM_(NTASKS|NPROCS|NNODES|JOB_NUM_NODES|JOB_NODELIST|NODELIST|STEP_\w+|TASKS_PER_NODE"
    r"|NTASKS_PER_NODE))\Z"
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
