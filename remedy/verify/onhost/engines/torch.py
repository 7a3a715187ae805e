"""The engine ``torch``: torchrun starts ``torch_rank`` once a rank, over NCCL or gloo.

It travels to the hosts: standard library only, Python >= 3.8.
"""

from __future__ import annotations

import importlib.metadata
import sys
from typing import Any

WORKER = "remedy.verify.onhost.engines.torch_rank.main"
# Where the output of a rank lies, below the run's folder.
LOGS = "logs/*/attempt_0/{rank}/std*.log"


def unfit(config: dict[str, Any]) -> tuple[str, str] | None:  # noqa: ARG001  (as every engine's)
    """Find out why this host cannot take part, as (how, detail)."""
    try:
        importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return "no-torch", f"{sys.executable} has no torch"
    return None


def command(config: dict[str, Any], directory: str) -> tuple[list[str], dict[str, str]]:
    """Run torchrun with static rendezvous by address, because names may be what is broken.

    Returns:
        the command, and what is added to its environment.
    """
    words = [sys.executable, "-m", "torch.distributed.run", "--nnodes", str(config["nodes"])]
    words += ["--node-rank", str(config["node"]), "--nproc-per-node", str(config["ranks"])]
    words += ["--master-addr", config["master"], "--master-port", str(config["port"])]
    words += ["--local-addr", config["address"], "--max-restarts", "0"]
    words += ["--rdzv-id", config["nonce"]]
    words += ["--rdzv-conf", f"timeout={config['join_seconds']:.0f}"]
    words += ["--monitor-interval", "0.1", "--log-dir", f"{directory}/logs", "--redirects", "3"]
    words += [f"{directory}/worker.py", directory]
    # Every host numbers its ranks by itself, so that each gets as far as it can alone.
    return words, {"TORCH_ELASTIC_WORKER_IDENTICAL": "1"} if config["alike"] else {}
