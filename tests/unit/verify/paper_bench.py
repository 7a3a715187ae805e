"""A fleet that only exists on paper: what its hosts would answer to each rung of the ladder."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from remedy.probe import HostState
from remedy.spec import VerifySpec
from remedy.verify.allreduce.plan import RankHost, plan_ranks
from remedy.verify.hosts import Participant, Participants
from remedy.verify.ladder import climb
from remedy.verify.onhost import knock as knock_module
from remedy.verify.onhost.agent import MARK
from remedy.verify.verdict import Verdict
from tests.unit.build import host_state
from tests.unit.verify.proof_bench import failed_records, good_records

NAMES = ("gpu01", "gpu02", "gpu03", "gpu04", "gpu05", "gpu06")
ADDRESSES = {name: f"10.0.0.{number + 1}" for number, name in enumerate(NAMES)}
RESOLVED = {name: (address,) for name, address in ADDRESSES.items()}


class Paper:
    """A transport that answers for all hosts, as they would; ``broken`` hosts fail every all-reduce.

    Args:
        broken: hosts that come as far as the rendezvous and no farther.
        closed: ways that are dropped.
        apart: hosts that sum with others, and not with each other.
        boots: the boot-ids of hosts that do not have one of their own.
        ready: seconds that each host needs until it can meet others.
    """

    def __init__(
        self,
        *broken: str,
        closed: tuple[tuple[str, str], ...] = (),
        apart: tuple[tuple[str, str], ...] = (),
        boots: Mapping[str, str] | None = None,
        ready: float = 3.0,
        narrow: Mapping[str, tuple[tuple[int, int], ...]] | None = None,
    ) -> None:
        self.broken = set(broken)
        self.closed = set(closed)
        self.apart = [set(pair) for pair in apart]
        self.boots = boots or {}
        self.ready = ready
        self.narrow = narrow or {}
        self.launches: list[tuple[str, ...]] = []
        self.deadlines: list[float] = []
        self.knocks = 0

    def run(self, scripts: Mapping[str, Any]) -> dict[str, Any]:
        outputs = {}
        for members in self._groups(scripts):
            texts = {name: scripts[name].text for name in members}
            answer = self._knock if "knock.main(" in next(iter(texts.values())) else self._train
            outputs.update(answer(texts))
        return outputs

    def _groups(self, scripts: Mapping[str, Any]) -> list[list[str]]:
        by: dict[str, list[str]] = {}
        for name, script in scripts.items():
            by.setdefault(self._config(script.text)["nonce"], []).append(name)
        return list(by.values())

    @staticmethod
    def _config(text: str) -> dict[str, Any]:
        found = re.search(r"json\.loads\('(\{.*\})'\)", text)
        assert found
        config: dict[str, Any] = json.loads(found[1])
        return config

    def _knock(self, texts: Mapping[str, str]) -> dict[str, Any]:
        self.knocks += 1
        outputs = {}
        names = {address: name for name, address in ADDRESSES.items()}
        for name, text in texts.items():
            config = self._config(text)
            calls = [(peer, at, port) for peer, at, ports in config["calls"] for port in ports]
            bad = [
                [peer, port, "dropped", "3.5 s"]
                for peer, address, port in calls
                if (name, names[address]) in self.closed
            ]
            said = {
                "good": len(calls) - len(bad),
                "bad": bad,
                "times": [
                    [peer, port, 0.1]
                    for peer, address, port in calls
                    if config["timed"] and (name, names[address]) not in self.closed
                ],
                "slowest": 0.1,
                "listening": config["ports"],
                "busy": [],
                "ended": "time" if bad else "answered",
                "mtu": {"narrow": [*self.narrow.get(name, ())], "mute": [], "reason": ""},
                "seconds": 0.1,
            }
            line = f"{knock_module.MARK} {config['nonce']} {json.dumps(said)}\n"
            outputs[name] = SimpleNamespace(stdout=line, stderr="", error=None)
        return outputs

    def _train(self, texts: Mapping[str, str]) -> dict[str, Any]:
        self.launches.append(tuple(texts))
        config = self._config(next(iter(texts.values())))
        self.deadlines.append(config["deadline"])
        members = sorted(texts, key=lambda name: int(self._config(texts[name])["node"]))
        plan = plan_ranks([Participant(name=n, address=ADDRESSES[n]) for n in members])
        plan = plan.model_copy(
            update={
                "nonce": config["nonce"],
                "sizes": tuple(config["sizes"]["gloo"]),
                "hosts": tuple(RankHost(name=n, address=ADDRESSES[n], ranks=1) for n in members),
            }
        )
        fails = self.broken.intersection(members) or any(p <= set(members) for p in self.apart)
        records = failed_records(plan, "rendezvous") if fails else good_records(plan, self.boots)
        for line in (line for lines in records.values() for line in lines if "times" in line):
            line["times"] = {"started": self.ready / 2, "inside": self.ready}
        return {
            name: SimpleNamespace(
                stdout="".join(f"{MARK} {plan.nonce} {json.dumps(r)}\n" for r in lines),
                stderr="",
                error=None,
            )
            for name, lines in records.items()
        }


def states(**changed: Mapping[str, Any]) -> dict[str, HostState]:
    return {
        name: host_state(name, ADDRESSES[name], peers=RESOLVED).model_copy(
            update=dict(changed.get(name, {}))
        )
        for name in NAMES
    }


def sight(found: Mapping[str, HostState], **more: Any) -> Participants:
    candidates = [Participant(name=name, address=ADDRESSES[name]) for name in found]
    return Participants(candidates, found, **more)


def go(paper: Paper, seen: Participants | None = None, **spec: Any) -> Verdict:
    return climb(paper.run, seen or sight(states()), VerifySpec(**spec))


def outcomes(verdict: Verdict) -> dict[str, str]:
    return {one.host: one.outcome for one in verdict.outcomes}
