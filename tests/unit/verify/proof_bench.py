"""Plans of an all-reduce, and what its ranks and agents say."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from remedy.errors import RemedyError
from remedy.spec import VerifySpec
from remedy.verify.allreduce.checks import expected_sum
from remedy.verify.allreduce.plan import RankPlan, plan_ranks
from remedy.verify.hosts import Participant
from remedy.verify.onhost.agent import MARK
from remedy.verify.verdict import Verdict

SIZES = (8, 2_000_000)
Records = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class JudgedOutput:
    """What the transport gives: see ``remedy.transport.Output``."""

    host: str
    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = 0
    seconds: float = 1.0
    error: RemedyError | None = None


def make_plan(hosts: int = 3, gpus: int = 0, **spec: Any) -> RankPlan:
    return plan_ranks(
        [
            Participant(name=f"gpu{n + 1:02}", address=f"10.0.0.{n + 1}", gpus=gpus)
            for n in range(hosts)
        ],
        VerifySpec(**{"sizes": SIZES, **spec}),
    )


def good_records(plan: RankPlan, boots: Mapping[str, str] | None = None) -> Records:
    """What the hosts print when all is well, worked out without the code under test.

    Args:
        plan: of the run.
        boots: the boot-id of hosts that are not machines of their own.
    """
    boot_ids = {host.name: f"boot-{host.name}" for host in plan.hosts} | dict(boots or {})
    backend: Literal["nccl", "gloo"] = "nccl" if plan.backend == "nccl" else "gloo"
    places = [
        (node, host, local) for node, host in enumerate(plan.hosts) for local in range(host.ranks)
    ]
    members = [[n, host.name, boot_ids[host.name]] for n, (_, host, _) in enumerate(places)]
    seen = hashlib.sha256(json.dumps(members).encode()).hexdigest()
    records: Records = {host.name: [] for host in plan.hosts}
    for number, (_, host, local) in enumerate(places):
        result = {
            "nonce": plan.nonce,
            "rank": number,
            "local_rank": local,
            "world": len(places),
            "backend": backend,
            "unusable": {},
            "identity": {
                "hostname": host.name,
                "boot_id": boot_ids[host.name],
                "torch": "2.13.0",
                "nccl": "2.30.7" if backend == "nccl" else "",
                "device": "cpu",
            },
            "sum": {"digest": expected_sum(plan), "missing": []},
            "members": members if number == 0 else None,
            "members_digest": seen,
            "sweep": [
                {"bytes": size, "rounds": 20, "seconds": size / 2e9, "exact": True}
                for size in plan.sizes_on(backend)
            ],
            "times": {"started": 1.0, "done": 3.5},
        }
        records[host.name].append(rank_record(local, "done", result=result))
    for host in plan.hosts:
        records[host.name].append({"kind": "launcher", "exit_code": 0, "log": []})
        records[host.name].append(end_record())
    return records


def rank_record(local: int, phase: str, **more: Any) -> dict[str, Any]:
    return {
        "kind": "rank",
        "local_rank": local,
        "phase": phase,
        "times": {},
        "result": None,
        "error": None,
        "missing": [],
        "exit_code": None,
        "network": [],
        "log": [],
        **more,
    }


def end_record(how: str = "exited", **more: Any) -> dict[str, Any]:
    return {"kind": "end", "how": how, "python": "/usr/bin/python3", "seconds": 4.0, **more}


def answers(plan: RankPlan, records: Records, nonce: str = "") -> dict[str, Any]:
    return {
        name: JudgedOutput(
            name,
            "".join(f"{MARK} {nonce or plan.nonce} {json.dumps(record)}\n" for record in lines),
        )
        for name, lines in records.items()
    }


def failed_records(plan: RankPlan, phase: str, **end: Any) -> Records:
    """What the hosts print when all ranks hang in one phase until the deadline."""
    return {
        host.name: [
            *(rank_record(local, phase) for local in range(host.ranks)),
            {"kind": "launcher", "exit_code": None, "log": []},
            end_record("deadline", **end),
        ]
        for host in plan.hosts
    }


def peer_error(text: str, phase: str = "rendezvous") -> dict[str, str]:
    return {"phase": phase, "text": text.splitlines()[0], "long": text}


def outcomes(verdict: Verdict) -> dict[str, str]:
    return {outcome.host: outcome.outcome for outcome in verdict.outcomes}
