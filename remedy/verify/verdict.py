"""The verdict: what one verification proved, as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from pydantic import Field

from remedy.sentences import Sentence, as_one, host_names, in_groups, without_host
from remedy.spec import EngineName, LauncherName
from remedy.text import clipped, counted, folded
from remedy.values import Record

Backend = Literal["nccl", "gloo", "mpi", "mccl", "hccl"]
LinkOutcome = Literal[
    "refused",
    "rejected",
    "dropped",
    "stalled",
    "no listener",
    "no name",
    "foreign",
    "mute",
    "not tested",
]
# How a connection on a dead link ends, in words.
ENDINGS: Mapping[LinkOutcome, str] = {
    "refused": "refused (reset by a firewall)",
    "rejected": "rejected (by a firewall, or no route)",
    "dropped": "no answer (dropped on the way)",
    "stalled": "small messages arrive, large ones do not (MTU)",
    "no listener": "no listener",
    "no name": "resolves its name wrongly",
    "foreign": "answered by another program or host",
    "mute": "opened, and never answered",
    "not tested": "not tested",
}


class Bandwidth(Record):
    """One size: bytes a rank, seconds a round on the slowest rank, GB/s as nccl-tests define them.

    Args:
        spread: largest less smallest of the parts that were timed, as a share of their median.
        out_of_place_busbw: where the data is copied first, as a caller that keeps its input has to.
    """

    bytes: int
    seconds: float
    algbw: float
    busbw: float
    spread: float = 0.0
    out_of_place_busbw: float | None = None


class HostVerdict(Record):
    """How one host ended; "not-tested" is one that may be sound, but others kept it from showing it."""

    host: str
    outcome: Literal["pass", "fail", "not-tested"]
    reason: str = ""


class Rung(Record):
    """One rung of the ladder; ``passed`` is None where it was not climbed, for the reason in ``message``."""

    name: Literal[
        "facts",
        "engine",
        "reachability",
        "new hosts",
        "inside each host",
        "whole fleet",
        "each group",
        "across groups",
        "isolation",
    ]
    passed: bool | None
    message: str = ""
    seconds: float = 0.0


class LinkEnding(Record):
    """How some links of a culprit end, all in one way.

    Args:
        way: to the host ("in"), from it ("out"), or the one link that is named.
        outcome: how they end.
        count: how many links.
        ports: on which; 0 is all.
    """

    way: Literal["in", "out", "link"]
    outcome: LinkOutcome
    count: int
    ports: tuple[int, ...] = ()


class Culprit(Record):
    """A host, or a link between two, that a verification names.

    Args:
        name: "gpu07", "gpu[07-09]", or "gpu07 -> gpu19"; "" where something is wrong that no host can be named
            for.
        hosts: that it concerns.
        reason: a sentence.
        endings: how its links end, where it is named for these.
        facts: what was seen of it, and what is known of the state of these hosts.
        next_step: the command to type, or what to do.
    """

    name: str = ""
    hosts: tuple[str, ...] = ()
    reason: str
    endings: tuple[LinkEnding, ...] = ()
    facts: tuple[str, ...] = ()
    next_step: str = ""

    @property
    def is_link(self) -> bool:
        """Whether it is a link, or one both ways, and no host is named."""
        return "-> " in self.name

    @property
    def why(self) -> str:
        """The reason, to be read after ``name``, which it may begin with."""
        rest = self.reason.removeprefix(self.name)
        is_longer_name = rest[:1].isalnum() or rest[:1] in ("-", "_", ".")
        return self.reason if is_longer_name else rest.lstrip(": ") or self.reason


def culprit(reason: str, *hosts: str) -> Culprit:
    """Make a culprit of its hosts alone.

    Args:
        reason: a sentence.
        hosts: none where nobody can be named.
    """
    names = tuple(dict.fromkeys(hosts))
    return Culprit(name=folded(names), hosts=names, reason=reason)


class DeadLink(Record):
    """A link that does not work: from, to, on which port (0: all), how it ended, and what was seen."""

    source: str
    target: str
    port: int
    outcome: LinkOutcome
    detail: str = ""

    @property
    def message(self) -> str:
        """One sentence."""
        port = f" port {self.port}" if self.port else ""
        detail = f": {self.detail}" if self.detail else ""
        return f"{self.source} -> {self.target}{port}: {ENDINGS[self.outcome]}{detail}"


class NarrowLink(Record):
    """A link on which small packets arrive and whole ones of ``size`` bytes do not (RFC 1191, DF set)."""

    source: str
    target: str
    size: int


class LateLink(Record):
    """A link that worked only when it was tried again by itself: slow, and not dead.

    Args:
        first: what was seen while all hosts called each other.
        seconds: until the answer came the second time.
    """

    source: str
    target: str
    first: str
    seconds: float


class SlowHost(Record):
    """What a host exchanges with the best of its partners, in GB/s each way, and as a share of the median."""

    host: str
    gbps: float
    share: float


class GroupTest(Record):
    """A group that was tested while looking for the culprits."""

    round: int
    purpose: str
    hosts: tuple[str, ...]
    passed: bool
    seconds: float = 0.0


class PartVerdict(Record):
    """One all-reduce of a proof in parts; ``passed`` is None where it was not run, for the reason given."""

    name: str
    hosts: tuple[str, ...]
    passed: bool | None
    reason: str = ""
    busbw_gbps: float | None = None


class DividedProof(Record):
    """What was summed together where the all-reduce was divided, and what that leaves open.

    Args:
        by: groups of the inventory, or a number of hosts, as the user wrote it.
        groups: each by itself, side by side.
        crossings: across the groups.
        pairs: how many pairs of hosts there are.
        together: how many of them were in one all-reduce.
        unproved: what this does not prove, in a sentence.
    """

    by: str
    groups: tuple[PartVerdict, ...]
    crossings: tuple[PartVerdict, ...]
    pairs: int
    together: int
    unproved: str


class Verdict(Record):
    """What one verification proved.

    Args:
        passed: world size, distinct hosts, exact sum and every size, all proved.
        possible: False where nothing could be tested at all, which is not the same as failed.
        engine: what ran it.
        launcher: what started it on the hosts.
        job: of Slurm, where that did.
        backend: what it ran on; None when no rank came that far.
        world_size: ranks whose part in the sum is proved.
        hosts: distinct machines (by boot-id) among them.
        sum_exact: whether every rank that reported has exactly the sum of the whole world.
        bandwidth: of each size; empty where the group itself is not proved.
        busbw_gbps: of the largest size.
        torch, nccl, software: versions that took part; the last of an engine that is not torch.
        reason: one sentence; on failure it names the host or the link, where it can be determined.
        absent: hosts that took no part, because they could not be reached or are not right.
        evidence: lines that bear the reason out.
        seconds: wall clock, from the start of the scripts to the last report.
        fingerprints: of the states that it holds for, by host.
        pace: what each host exchanges with the best of its partners, in GB/s each way.
        slow: hosts far below the median of these.
        limit_gbps: what the links of the slowest host can carry; None where that is not known.
        min_busbw_gbps: what the user asked for, in GB/s.
        rungs: how far the ladder was climbed, and what each rung showed.
        culprits: the smallest set of hosts and links that explains a failure.
        dead_links: links between hosts that do not work; some of them where there are too many.
        dead_count: how many there are in all.
        links_sampled: whether some links were not tried.
        narrow_links: links that lose packets as large as their sender's interface takes; TCP works over them.
        late_links: links that worked only when they were tried again by themselves.
        tests: what the search for the culprits tested.
        divided: its parts, where it was not one all-reduce of all hosts; bandwidth is that of the slowest part.
        logs: what the processes of a failed run printed, by name; not kept with the verdict.
    """

    passed: bool
    possible: bool = True
    engine: EngineName = "torch"
    launcher: LauncherName = "ssh"
    job: str = ""
    backend: Backend | None = None
    world_size: int = 0
    expected_world_size: int = 0
    hosts: int = 0
    expected_hosts: int = 0
    sum_exact: bool = False
    bandwidth: tuple[Bandwidth, ...] = ()
    busbw_gbps: float | None = None
    torch: tuple[str, ...] = ()
    nccl: tuple[str, ...] = ()
    software: tuple[str, ...] = ()
    reason: str
    outcomes: tuple[HostVerdict, ...] = ()
    absent: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    seconds: float = 0.0
    fingerprints: Mapping[str, str] = Field(default_factory=dict)
    pace: Mapping[str, float] = Field(default_factory=dict)
    slow: tuple[SlowHost, ...] = ()
    limit_gbps: float | None = None
    min_busbw_gbps: float | None = None
    rungs: tuple[Rung, ...] = ()
    culprits: tuple[Culprit, ...] = ()
    dead_links: tuple[DeadLink, ...] = ()
    dead_count: int = 0
    links_sampled: bool = False
    narrow_links: tuple[NarrowLink, ...] = ()
    late_links: tuple[LateLink, ...] = ()
    tests: tuple[GroupTest, ...] = ()
    divided: DividedProof | None = None
    logs: Mapping[str, tuple[str, ...]] = Field(default_factory=dict, exclude=True)

    @property
    def share(self) -> float | None:
        """The bus bandwidth as a share of what the links can carry."""
        if self.busbw_gbps is None or not self.limit_gbps:
            return None
        return self.busbw_gbps / self.limit_gbps

    def excusing(self, hosts: Mapping[str, str]) -> Verdict:
        """Return the same verdict, which also names the hosts that were left out of the run, and why.

        Args:
            hosts: reason by host name.
        """
        if not hosts:
            return self
        more = (
            HostVerdict(host=name, outcome="not-tested", reason=why) for name, why in hosts.items()
        )
        return self.model_copy(
            update={
                "reason": f"{self.reason}{NOT_TESTED}{_left_out(hosts)}",
                "outcomes": (*self.outcomes, *more),
                "absent": tuple(hosts),
            }
        )


NOT_TESTED = "; not tested: "
"""Before the hosts that were left out of a run, in the reason of its verdict."""
REASONS = 3
REASON_WIDTH = 160


def _left_out(hosts: Mapping[str, str]) -> str:
    """Return hosts with the reason why they were left out, those with one reason together."""
    names = host_names(hosts)
    sentences = (Sentence.of(name, without_host(name, why), names) for name, why in hosts.items())
    groups = sorted(in_groups(sentences), key=len, reverse=True)
    parts = [
        f"{folded((s.host for s in group), REASON_WIDTH)} ({clipped(as_one(group), REASON_WIDTH)})"
        for group in groups[:REASONS]
    ]
    rest = [sentence.host for group in groups[REASONS:] for sentence in group]
    more = f" and {counted(len(rest), 'more host')}" if rest else ""
    return ", ".join(parts) + more


def not_launched(hosts: Sequence[str], reason: str, next_step: str) -> Verdict:
    """Return the verdict where what was to start the ranks could not, or came to its end meanwhile.

    Args:
        hosts: that were to take part; none of them is the reason.
        reason: a sentence.
        next_step: what to do about it.
    """
    return Verdict(
        passed=False,
        possible=False,
        reason=f"not possible: {reason}",
        expected_hosts=len(hosts),
        outcomes=tuple(
            HostVerdict(host=host, outcome="not-tested", reason=reason) for host in hosts
        ),
        culprits=(Culprit(reason=reason, next_step=next_step),),
    )


def because_of(names: str) -> str:
    """Say why hosts that may be sound were not proved; ``names`` are the culprits in words."""
    return f"the group could not be proved because of {names or 'the others'}"


def accused(culprits: Iterable[Culprit]) -> dict[str, str]:
    """Collect the hosts that culprits name, each with the first reason."""
    reasons: dict[str, str] = {}
    for culprit in culprits:
        for host in culprit.hosts:
            reasons.setdefault(host, culprit.reason)
    return reasons
