"""What the endpoints of a swarm answer to a verification: calls between hosts, and ranks that meet.

An endpoint reads the configuration out of the script that its host gets, and prints what the agent there would
print where all is well. The ranks of one all-reduce meet first: each waits until all of them are there, as a
rendezvous does, and what they report of its members is what came together. So a controller that does not hold a
session open to every host at the same time gets no proof from them, but reports of a rendezvous that failed.
"""

from __future__ import annotations

import ast
import asyncio
import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from remedy.verify.onhost.agent import MARK
from remedy.verify.onhost.knock import MARK as KNOCK_MARK

# Bytes a second of an endpoint that "sums".
SPEED = 2e9
_CONFIG = re.compile(r"(?m)^config = json\.loads\((.*)\)$")


class Member(NamedTuple):
    """Who a host is that takes part."""

    name: str
    boot_id: str


@dataclass
class Meeting:
    """The rendezvous of one all-reduce.

    Args:
        hosts: how many have to come.
        members: who came, by place.
    """

    hosts: int
    members: dict[int, Member] = field(default_factory=dict)
    complete: asyncio.Event = field(default_factory=asyncio.Event)
    digest: str = ""  # of the members
    total: str = ""  # of the sum

    def roll(self, ranks: int) -> list[list[Any]]:
        """Return the members by rank, where each host has so many."""
        order = [self.members[place] for place in sorted(self.members)]
        names = [member for member in order for _ in range(ranks)]
        return [[rank, member.name, member.boot_id] for rank, member in enumerate(names)]


def config_of(script: str) -> dict[str, Any] | None:
    """Return what a script of the verification is configured with; None for any other script."""
    match = _CONFIG.search(script)
    if match is None:
        return None
    config: dict[str, Any] = json.loads(ast.literal_eval(match[1]))
    return config


class Meetings:
    """All rendezvous that are under way, by nonce."""

    def __init__(self) -> None:
        self.known: dict[str, Meeting] = {}

    async def answer(self, config: dict[str, Any], member: Member) -> str:
        """Return what a host prints, once it is done.

        Args:
            config: of its script.
            member: the host.
        """
        if "calls" in config:
            return called(config)
        meeting = self.known.setdefault(config["nonce"], Meeting(config["nodes"]))
        meeting.members[config["node"]] = member
        if len(meeting.members) == meeting.hosts:
            meeting.digest = _digest(json.dumps(meeting.roll(config["ranks"])))
            meeting.total = _digest(",".join(map(str, _numbers(config))))
            meeting.complete.set()
        try:
            await asyncio.wait_for(meeting.complete.wait(), config["join_seconds"])
        except asyncio.TimeoutError:
            return _lines(config, [*_ranks(config, "rendezvous", []), _end("deadline", member)])
        results = [_result(config, member, meeting, local) for local in range(config["ranks"])]
        launcher = {"kind": "launcher", "exit_code": 0, "log": []}
        return _lines(config, [*_ranks(config, "done", results), launcher, _end("exited", member)])


def called(config: dict[str, Any]) -> str:
    """Return what a host prints that reached everybody whom it was to call."""
    report = {
        "good": sum(len(ports) for _, _, ports in config["calls"]),
        "bad": [],
        "times": [],
        "slowest": 0.1,
        "listening": config["ports"],
        "busy": [],
        "ended": "answered",
        "mtu": {"narrow": [], "mute": [], "reason": ""},
        "seconds": 1.0,
    }
    return f"{KNOCK_MARK} {config['nonce']} {json.dumps(report)}\n"


def _lines(config: dict[str, Any], records: list[dict[str, Any]]) -> str:
    return "".join(f"{MARK} {config['nonce']} {json.dumps(record)}\n" for record in records)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _numbers(config: dict[str, Any]) -> list[int]:
    """The numbers of the exact sum, as ``rank.proof.prove_sum`` has them."""
    base, world = int(config["nonce"], 16) % 2**40, config["world"]
    return [*range(base, base + world), world * (world + 1) // 2]


def _ranks(
    config: dict[str, Any], phase: str, results: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    common: dict[str, Any] = {
        "kind": "rank",
        "phase": phase,
        "error": None,
        "missing": [],
        "exit_code": None,
    }
    return [
        {
            **common,
            "local_rank": local,
            "times": {"started": 1.0, "inside": 3.0},
            "result": results[local] if results else None,
            "network": [],
            "log": [],
        }
        for local in range(config["ranks"])
    ]


def _end(how: str, member: Member) -> dict[str, Any]:
    return {
        "kind": "end",
        "how": how,
        "python": "/usr/bin/python3",
        "hostname": member.name,
        "seconds": 4.0,
    }


def _result(config: dict[str, Any], member: Member, meeting: Meeting, local: int) -> dict[str, Any]:
    """What a rank leaves that came to its end: the exact sum, and what it saw and measured."""
    rank, world = config["node"] * config["ranks"] + local, config["world"]
    return {
        "nonce": config["nonce"],
        "rank": rank,
        "local_rank": local,
        "world": world,
        "backend": "gloo",
        "unusable": {},
        "identity": {
            "hostname": member.name,
            "boot_id": member.boot_id,
            "torch": "2.13.0",
            "nccl": "",
            "device": "cpu",
        },
        "sum": {"digest": meeting.total, "missing": []},
        "members": meeting.roll(config["ranks"]) if rank == 0 else None,
        "members_digest": meeting.digest,
        "sweep": [
            {"bytes": size, "rounds": 20, "seconds": size / SPEED, "exact": True}
            for size in config["sizes"]["gloo"]
        ],
        "times": {"started": 1.0, "inside": 3.0, "done": 3.5},
        "pairs": [
            {"rank": (rank + step) % world, "bytes": 2**20, "seconds": 2**20 / SPEED}
            for step in (1, 2, 3)
            if world > step
        ],
    }
