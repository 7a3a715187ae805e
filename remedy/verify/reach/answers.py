"""From what the hosts printed of their calls to the links that do not work. Pure.

A link is ok, or ends as one of ``LinkOutcome``; what is not known is a failure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Literal

from pydantic import BaseModel, ConfigDict

from remedy.answers import EXCERPT, read_answer
from remedy.transport import Output
from remedy.verify.onhost.knock import MARK
from remedy.verify.onhost.mtu import PEERS
from remedy.verify.reach.explain import DeadEnd, thin
from remedy.verify.reach.plan import ReachPlan
from remedy.verify.reach.result import Reach
from remedy.verify.scripts import why_silent
from remedy.verify.verdict import DeadLink, LinkOutcome, NarrowLink

# Dead links that are kept one by one: eighty hosts that reach nobody, or three of 2,048 that nobody reaches.
MOST_DEAD = 20_000


class MtuAnswer(BaseModel):
    """What packets that must not be cut showed: peers and sizes, peers who answer none, why none were sent."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    narrow: tuple[tuple[int, int], ...]
    mute: tuple[int, ...]
    reason: str


class ReachAnswer(BaseModel):
    """What one host printed."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    good: int
    bad: tuple[tuple[int, int, str, str], ...]
    listening: tuple[int, ...]
    busy: tuple[tuple[int, str], ...]
    ended: Literal["answered", "time"]
    mtu: MtuAnswer
    seconds: float


class ReachLack(BaseModel):
    """What a host printed that has no Python to answer with: what is wrong with each that it has."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    lacks: str


# By host: its answer, or why it gave none that counts.
Answers = Mapping[str, "ReachAnswer | str"]


def judge_links(
    plan: ReachPlan,
    outputs: Mapping[str, Output],
    nameless: Mapping[tuple[str, str], str] | None = None,
    seconds: float = 0.0,
) -> Reach:
    """Work out which links do not work.

    Args:
        plan: what was run.
        outputs: by host; one that is missing here reported nothing.
        nameless: links whose source resolves the target's name wrongly, and to what.
        seconds: wall clock.
    """
    nameless = nameless or {}
    # Without what went wrong: that is read again, host by host, and never held for all of them at once.
    answers: dict[str, ReachAnswer | str] = {}
    attempts = 0
    for me, host in enumerate(plan.hosts):
        answer = _read(plan, me, outputs)
        if not isinstance(answer, str):
            attempts += answer.good + len(answer.bad)
            answer = answer.model_copy(update={"bad": ()})
        answers[host.name] = answer
    hosts = tuple(answers)
    worst: tuple[DeadEnd, ...] = ()
    dead = tuple(islice(_dead(plan, outputs, answers, nameless), MOST_DEAD + 1))
    count = len(dead)
    if count > MOST_DEAD:
        count = sum(1 for _ in _dead(plan, outputs, answers, nameless))
        worst, dead = thin(
            lambda: _dead(plan, outputs, answers, nameless), hosts, plan.calls.peers, MOST_DEAD
        )
    reports = {name: answer for name, answer in answers.items() if not isinstance(answer, str)}
    return Reach(
        hosts=hosts,
        attempts=attempts,
        links=plan.calls.links,
        peers=plan.calls.peers,
        missing=plan.calls.missing,
        dead=dead,
        count=count,
        worst=worst,
        failures={name: answer for name, answer in answers.items() if isinstance(answer, str)},
        narrow=tuple(_narrow(plan, reports)),
        echo_links=sum(
            min(plan.calls.peers, PEERS) - len(report.mtu.mute)
            for report in reports.values()
            if not report.mtu.reason
        ),
        waited=tuple(name for name, answer in reports.items() if answer.ended == "time"),
        seconds=seconds,
    )


def links_without_names(hosts: Iterable[str], nameless: Mapping[tuple[str, str], str]) -> Reach:
    """Show names that resolve wrongly as links that do not work, where no connection was tried.

    Args:
        hosts: the names of all hosts.
        nameless: as for ``judge_links``.
    """
    return Reach(hosts=tuple(hosts), dead=tuple(_nameless(nameless)))


def _narrow(plan: ReachPlan, reports: Mapping[str, ReachAnswer]) -> Iterator[NarrowLink]:
    """The links that packets which must not be cut did not pass."""
    for host in plan.hosts:
        if host.name in reports and not reports[host.name].mtu.reason:
            for number, size in reports[host.name].mtu.narrow:
                target = plan.hosts[number].name
                yield NarrowLink(source=host.name, target=target, size=size)


def _nameless(nameless: Mapping[tuple[str, str], str]) -> Iterator[DeadLink]:
    for (source, target), detail in nameless.items():
        yield DeadLink(source=source, target=target, port=0, outcome="no name", detail=detail)


def _dead(
    plan: ReachPlan,
    outputs: Mapping[str, Output],
    answers: Answers,
    nameless: Mapping[tuple[str, str], str],
) -> Iterator[DeadLink]:
    """All dead links, source by source."""
    yield from _nameless(nameless)
    for me, host in enumerate(plan.hosts):
        answer = _read(plan, me, outputs)
        if not isinstance(answer, str):
            yield from _dead_from(plan, host.name, answer, answers)
            continue
        for peer in plan.order(me):
            target = plan.hosts[peer].name
            yield DeadLink(
                source=host.name, target=target, port=0, outcome="not tested", detail=answer
            )


def _read(plan: ReachPlan, me: int, outputs: Mapping[str, Output]) -> ReachAnswer | str:
    """What a host printed, or why that counts for nothing."""
    output = outputs.get(plan.hosts[me].name)
    printed = read_answer(output.stdout if output else "", plan.nonce, mark=MARK)
    if printed.fault or not printed.lines:
        return printed.fault or why_silent(output).removeprefix(f"{plan.hosts[me].name}: ")
    try:
        if printed.lines[0].startswith('{"lacks"'):
            lack = ReachLack.model_validate_json(printed.lines[0]).lacks.strip(" ;")[:EXCERPT]
            return f"no Python 3.8 or newer runs there: {lack}"
        answer = ReachAnswer.model_validate_json(printed.lines[0])
    except ValueError:
        return "its report cannot be read"
    return _contradiction(plan, me, answer) or answer


def _contradiction(plan: ReachPlan, me: int, answer: ReachAnswer) -> str:
    """Why an answer cannot be one to this plan, or an empty text."""
    order = plan.order(me)
    peers = set(order)
    bad = {(target, port) for target, port, _, _ in answer.bad}
    asked = all(peer in peers and port in plan.hosts[peer].ports for peer, port in bad)
    echo_peers = set(order[:PEERS])
    probed = {*answer.mtu.mute, *(number for number, _ in answer.mtu.narrow)}
    if len(bad) != len(answer.bad) or not asked:
        return "its report is not about what was asked"
    if answer.good + len(bad) != sum(len(plan.hosts[peer].ports) for peer in order):
        return "its report does not add up"
    return "" if probed <= echo_peers else "its report is not about what was asked"


def _dead_from(
    plan: ReachPlan, source: str, answer: ReachAnswer, answers: Answers
) -> Iterator[DeadLink]:
    """What one host saw, joined with what the other side knows."""
    for number, port, ending, detail in answer.bad:
        target = plan.hosts[number].name
        report = answers[target]
        silent = isinstance(report, str)
        listening = not isinstance(report, str) and port in report.listening
        outcome = _outcome(ending, listening=listening, silent=silent)
        if outcome is not None:
            why = f"{detail}; {target}: {report}" if silent else detail
            yield DeadLink(source=source, target=target, port=port, outcome=outcome, detail=why)


def _outcome(ending: str, *, listening: bool, silent: bool) -> LinkOutcome | None:
    """What a call's end means; None where the link is good after all.

    Where something else on the target holds the port, its answer, or that it only took the connection, shows
    that packets come through.
    """
    if ending in ("dropped", "rejected", "stalled"):
        return ending  # type: ignore[return-value]
    if ending == "refused":
        return "refused" if listening else "no listener"
    if ending in ("foreign", "mute"):
        return ending if listening or silent else None  # type: ignore[return-value]
    return "not tested"
