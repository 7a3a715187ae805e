"""Each fault of ``remedy lab break``, on the second of two hosts that work.

What a fault does to a run of torch with gloo is declared with it. Most leave the run as it is (they wait for
NCCL, for an NPU or for the next boot), and their logs have to be told as healthy. So do firewalls on the second
of two hosts: with gloo it calls, and is not called.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.corpus.scenario import GOOD, RUN, B, Scenario, two
from remedy.lab.faults import catalogue

SESSION = "set -a; . /etc/environment; set +a; "  # as a login by ssh has it


def lab_faults() -> Iterator[Scenario]:
    """Two hosts that work, and each fault of ``remedy lab break`` on the second."""
    for fault in catalogue():
        if fault.log is None or not fault.log.label:
            continue
        yield two(
            f"lab-{fault.name}",
            fault.log.label,
            SESSION + RUN + " --rdzv-conf timeout=20 train.py --timeout 12",
            setup=GOOD,
            fault={B: (fault.name,)},
            secondary=fault.log.secondary,
            seconds=60,
        )
