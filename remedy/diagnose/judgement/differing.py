"""Ranks that wait until the time-out, none of them gone: in different collectives, or all in the same."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from remedy.diagnose.course.waits import Wait, all_wait, share_a_group, waits_of
from remedy.diagnose.diagnosis import APPLICATION, LIKELY, Candidate, Diagnosis, sure
from remedy.diagnose.judgement.context import unfit_in
from remedy.diagnose.judgement.hangs import HINT, PEER
from remedy.diagnose.judgement.ranking import SHOWN, STEP, quote, quotes
from remedy.diagnose.scanner.job_setting import FABRIC, INFINIBAND, ROCE, JobSetting, together
from remedy.diagnose.scanner.log_scan import Event, LogScan
from remedy.text import listed

SHOWN_TO_DIFFER = LIKELY + 0.01  # where the lines show that the ranks wait in one group
SCORE, AFTER = 0.62, 0.5
OPERATIONS = "ranks wait in different collectives under one number"
SIZES = "ranks wait in one collective with different sizes"
NUMBERS = "ranks wait in different collectives, and none is gone"
RAN, SENDS = "compare what each of them ran last", "compare what each of them sends"
NOTE_OF_NOBODY = f"every rank waits in the same collective, so that none of them is gone; {HINT}"

# Numbered apart, or no operation at all.
_NOT_COMPARED = frozenset(("", "SEND", "RECV", "COALESCED", "UNKNOWN"))
# Every rank sends as much as the others; in all that is not here a rank may have a size of its own.
_OF_ONE_SIZE = frozenset(
    ("ALLREDUCE", "BROADCAST", "REDUCE", "_ALLGATHER_BASE", "_REDUCE_SCATTER_BASE")
)
# Ends on no rank before all have come: where a rank is past it, another that waits in it ran something else.
_OF_ALL = frozenset(
    (*("ALLREDUCE", "ALLGATHER", "_ALLGATHER_BASE", "REDUCE_SCATTER"), "_REDUCE_SCATTER_BASE")
)
_ALL_OF_THEM = (
    0.66  # how likely it is that a rank stalled where all wait, as far as the logs at hand show
)
_NOBODY = 0.6  # and where their number shows that no rank is missing


def of_waits(
    effects: Sequence[Event], signs: Sequence[Event], scans: Sequence[LogScan]
) -> Diagnosis | None:
    """Return the answer where the collectives that ranks wait in decide; None where they do not.

    Args:
        effects: what ranks print that wait for others.
        signs: what else the logs show.
        scans: the logs.
    """
    waits = waits_of((*effects, *signs))
    if len(waits) < 2:
        return None
    ordered = list(waits.values())
    complete = all_wait(waits, scans)
    note = _difference(ordered, complete)
    if note:
        return _of_difference(ordered, note, SHOWN_TO_DIFFER if share_a_group(ordered) else SCORE)
    if complete and len({(wait.group, *_what(wait)) for wait in ordered}) == 1:
        return _of_one(ordered, together(scan.setting for scan in scans))
    return None


def _what(wait: Wait) -> tuple[int, str, str]:
    # Of a collective in which a rank may have a size of its own, the size says nothing.
    return wait.number, wait.operation, wait.size if wait.operation in _OF_ONE_SIZE else ""


def _difference(waits: Sequence[Wait], complete: bool) -> str:
    """Return the note about how the ranks' collectives differ, "" where nothing shows that they do."""
    operations = {wait.operation for wait in waits}
    # Each group of ranks counts its own: where the lines name them, those of one alone are compared.
    if len({wait.group for wait in waits}) > 1 or operations & _NOT_COMPARED:
        return ""
    is_one_number = len({wait.number for wait in waits}) == 1
    if is_one_number and len(operations) > 1:
        return _note(OPERATIONS, waits, lambda wait: wait.operation, RAN)
    if not (share_a_group(waits) or (complete and len(waits) == 2)):
        return ""
    if is_one_number:
        if not operations <= _OF_ONE_SIZE or len({wait.size for wait in waits}) == 1:
            return ""
        return _note(SIZES, waits, lambda wait: wait.size or "?", SENDS)
    if not complete or not _is_past(waits):
        return ""
    return _note(NUMBERS, waits, lambda wait: f"{wait.number} {wait.operation}", RAN)


def _note(said: str, waits: Sequence[Wait], what: Callable[[Wait], str], advice: str) -> str:
    """Return a note that names the ranks that differ, the fewest first."""
    ranks: dict[str, list[str]] = {}
    for wait in waits:
        ranks.setdefault(what(wait), []).append(str(wait.event.rank))
    kinds = sorted(ranks.items(), key=lambda kind: len(kind[1]))
    parts = (f"rank{'s' * (len(who) > 1)} {listed(who)}: {value}" for value, who in kinds)
    return f"{said} ({listed(parts, SHOWN)}): {advice}"


def _is_past(waits: Sequence[Wait]) -> bool:
    """Return whether ranks are past a collective that others wait in, and that needs all of them to end."""
    least = min(wait.number for wait in waits)
    behind = {wait.operation for wait in waits if wait.number == least}
    ahead = {wait.operation for wait in waits if wait.number > least}
    return behind <= _OF_ALL and behind.isdisjoint(ahead)


def _of_difference(waits: Sequence[Wait], note: str, score: float) -> Diagnosis:
    kinds: dict[tuple[int, str, str], list[Event]] = {}
    for wait in waits:
        kinds.setdefault(_what(wait), []).append(wait.event)
    rarest = sorted(kinds.values(), key=len)[:SHOWN]
    evidence = tuple(
        quote(events[0]).model_copy(update={"copies": len(events) - 1}) for events in rarest
    )
    lead = evidence[0]
    reason = "the ranks called different collectives, so that none of them ends"
    candidates = (
        Candidate(label=APPLICATION, score=score, reason=reason, evidence=evidence),
        Candidate(
            label=PEER, score=AFTER, reason="or one of them is behind the others", evidence=(lead,)
        ),
    )
    return Diagnosis(
        label=APPLICATION,
        **sure(score),
        lead=lead,
        candidates=candidates,
        consequences=evidence,
        notes=(note,),
    )


def _of_one(waits: Sequence[Wait], setting: JobSetting) -> Diagnosis:
    """Return the answer where all ranks wait in one collective: somebody stalled, or what is between them."""
    lead = quote(waits[0].event)
    evidence = quotes([wait.event for wait in waits])
    score = _NOBODY if setting.world else _ALL_OF_THEM
    reason = "a rank stalled inside the collective, if nothing is wrong between them"
    between = tuple(
        Candidate(label=label, score=AFTER - STEP * place, reason=because, evidence=(lead,))
        for place, (label, because) in enumerate(_between(setting, unfit_in(setting)))
    )
    first = Candidate(label=PEER, score=score, reason=reason, evidence=evidence)
    return Diagnosis(
        label=PEER,
        **sure(score),
        lead=lead,
        candidates=(first, *between),
        consequences=evidence,
        notes=(NOTE_OF_NOBODY,),
    )


def _between(setting: JobSetting, unfit: Collection[str]) -> list[tuple[str, str]]:
    """Return what can be wrong between ranks, the likeliest first by the network that the job runs over."""
    cards = ("p2p-acs-iommu", "or GPUs of one host do not reach each other")
    link = ("ib-link-fault", "or a link of the adapters between them went down")
    route = ("network-unreachable", "or the way between the hosts was cut")
    closed = ("firewall-ports", "or a firewall began to drop what they send")
    program = (
        APPLICATION,
        "or the program: a kernel that does not end, or ranks that run different ones",
    )
    is_of_rdma = bool(setting.networks & {INFINIBAND, ROCE, FABRIC})
    order = [link, program, route, cards] if is_of_rdma else [route, closed, program, link, cards]
    if setting.is_of_one_host:
        order = [cards, program]
    return [cause for cause in order if cause[0] not in unfit]
