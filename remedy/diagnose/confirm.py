"""Comparing a diagnosis with real hosts: what the probe read there confirms a candidate, or refutes it.

The remedies know how a cause shows in the state of a host; their findings and changes carry the same labels as
the catalogue. So nothing is searched for here a second time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from remedy.diagnose.advice import look
from remedy.diagnose.cures import command_for, curing, remedy_for, reporting
from remedy.diagnose.diagnosis import (
    UNKNOWN,
    Candidate,
    Confirmation,
    ConfirmationStatus,
    Diagnosis,
    Explanation,
    sure,
)
from remedy.diagnose.judgement.alternatives import is_alternative
from remedy.diagnose.judgement.hangs import PEER
from remedy.diagnose.objects import Named, explains, of_quotes
from remedy.firewall.ports import VERIFICATION
from remedy.plan import Change, Finding, FindingKind, Plan
from remedy.text import counted, folded

CONFIRMED = 0.97  # a cause that a log shows and a host
UNSEEN = 0.8  # at most, where the hosts were read at the time and nothing of it was seen
LEFT = 0.5  # where the hosts speak against it, or what is left where they speak against another
BORNE_OUT = 0.7  # a cause that hosts show, and that no line of the logs speaks for by itself

# A switch or a router on the way can be the place of these, and no host would show it.
BETWEEN = frozenset(("mtu-mismatch", "network-unreachable"))
# These are of the job: a process that died, what its environment or its containers gave it, what it freed.
OF_THE_JOB = frozenset(
    (
        PEER,
        "rank-mismatch",
        "wrong-interface",
        "env-not-propagated",
        "device-visibility",
        "shm-too-small",
        "stale-shm",
        "disk-full",
        "host-oom",
    )
)
# A service may have any other where no launcher in use needs it, and is then not reported.
_ALWAYS_CHECKED = range(VERIFICATION.low, VERIFICATION.high + 1)
# Answers that say no more than that somebody else has the cause.
_ELSEWHERE = frozenset((UNKNOWN, PEER))


def confirm(
    diagnosis: Diagnosis,
    plan: Plan,
    hosts_read: Iterable[str],
    addresses: Mapping[str, str] | None = None,
    hosts_unread: Iterable[str] = (),
) -> tuple[Confirmation, ...]:
    """Compare every candidate with a plan. Pure.

    Args:
        diagnosis: of the logs.
        plan: what would be changed now, with all findings.
        hosts_read: the hosts that could be read.
        addresses: the host of each cluster address; without it, lines that name addresses name no host.
        hosts_unread: the hosts that could not be read: a cause may be there, whatever the others show.
    """
    hosts, others = list(hosts_read), list(hosts_unread)
    confirmations = (
        _confirmation(candidate, plan, hosts, addresses or {}) for candidate in diagnosis.candidates
    )
    return tuple(_left_open(confirmation, others) for confirmation in confirmations)


def settled(
    diagnosis: Diagnosis, confirmations: Iterable[Confirmation]
) -> tuple[Diagnosis, Confirmation | None]:
    """Put the candidates that hosts confirm first, and return the first of those.

    A clear text stays what it is, also where the state of the hosts is fine by now.
    """
    by_label = {confirmation.label: confirmation for confirmation in confirmations}
    order = (ConfirmationStatus.CONFIRMED, ConfirmationStatus.OPEN, ConfirmationStatus.REFUTED)
    is_vague = diagnosis.label in _ELSEWHERE and diagnosis.confidence in ("none", "possible")
    of_log = by_label.get(diagnosis.label)
    is_refuted = of_log is not None and of_log.status is ConfirmationStatus.REFUTED

    def place(candidate: Candidate) -> tuple[bool, int, float]:
        # What no line speaks for is looked at on the hosts, and stays behind what one does: unless that only
        # says that the cause is somewhere else, or the hosts show no sign of it.
        status = order.index(by_label[candidate.label].status)
        is_behind = is_alternative(candidate) and not ((is_vague or is_refuted) and status == 0)
        return is_behind, status, -candidate.score

    candidates = tuple(sorted(diagnosis.candidates, key=place))
    first = by_label[candidates[0].label] if candidates else None
    if first is None or first.status is not ConfirmationStatus.CONFIRMED:
        return diagnosis, None
    best = candidates[0]
    lead = best.evidence[0] if best.evidence else diagnosis.lead
    update = {
        "label": best.label,
        **sure(BORNE_OUT if is_alternative(best) else CONFIRMED),
        "lead": lead,
        "candidates": candidates,
    }
    return diagnosis.model_copy(update=update), first


def weighed(diagnosis: Diagnosis, confirmations: Iterable[Confirmation], *, now: bool) -> Diagnosis:
    """Return a diagnosis that is no surer than the hosts allow.

    Args:
        diagnosis: with what the hosts confirm first.
        confirmations: of its candidates.
        now: whether its lines were written at the time at which the hosts were read: then a cause of which the
            hosts show nothing is not the cause. What an older log shows may be mended by now.
    """
    by_label = {confirmation.label: confirmation.status for confirmation in confirmations}
    status = by_label.get(diagnosis.label)
    refuted, still_open = ConfirmationStatus.REFUTED, ConfirmationStatus.OPEN
    if status is refuted and not now:
        return diagnosis.model_copy(update=sure(LEFT))
    if status is refuted:
        # Those that nothing speaks against come first, and none of them is more than possible.
        ordered = sorted(diagnosis.candidates, key=lambda c: by_label.get(c.label) is refuted)
        open_ = [
            c for c in ordered if by_label.get(c.label) is not refuted and not is_alternative(c)
        ]
        first = {"label": open_[0].label, **sure(LEFT)} if open_ else None
        update = first or {"label": UNKNOWN, **sure(0.0)}
        return diagnosis.model_copy(update={**update, "candidates": tuple(ordered)})
    if status is still_open and now and diagnosis.confidence == "certain":
        return diagnosis.model_copy(update=sure(min(diagnosis.certainty, UNSEEN)))
    return diagnosis


def explain(
    diagnosis: Diagnosis,
    plan: Plan,
    hosts_read: Iterable[str],
    inventory: str,
    addresses: Mapping[str, str] | None = None,
    *,
    now: bool = False,
    hosts_unread: Iterable[str] = (),
) -> Explanation:
    """Compare a diagnosis with the hosts, and find the command to type next. Pure.

    Args:
        diagnosis: of the logs.
        plan: what would be changed now, with all findings.
        hosts_read: the hosts that could be read.
        inventory: as it is to be typed.
        addresses: the host of each cluster address.
        now: whether the lines were written at the time at which the hosts were read.
        hosts_unread: the hosts that could not be read.
    """
    confirmations = confirm(diagnosis, plan, hosts_read, addresses, hosts_unread)
    decided, _ = settled(diagnosis, confirmations)
    if confirmations:
        decided = weighed(decided, confirmations, now=now)
    return Explanation(
        diagnosis=decided,
        confirmations=confirmations,
        remedy=remedy_for(decided.label),
        command=command_for(inventory, confirmations, decided),
        look=look(decided),
    )


def _confirmation(
    candidate: Candidate, plan: Plan, hosts: Sequence[str], addresses: Mapping[str, str]
) -> Confirmation:
    label, names = candidate.label, frozenset(hosts)
    findings = [finding for finding in plan.findings if finding.label == label]
    quotes = of_quotes(candidate.evidence, names, addresses)
    evident = [f for f in findings if f.kind is not FindingKind.UNKNOWN]
    explaining = [finding for finding in evident if explains(finding, quotes, names)]
    if explaining:
        return confirmed(label, [*explaining, *_alike(explaining, evident)], plan.changes)
    evidence = _open_evidence(label, findings, quotes, len(hosts))
    if evidence or not hosts or not (curing(label) or reporting(label)):
        return Confirmation(label=label, status=ConfirmationStatus.OPEN, evidence=evidence)
    return Confirmation(
        label=label,
        status=ConfirmationStatus.REFUTED,
        evidence=(f"no sign of it on {counted(len(hosts), 'host')}",),
    )


def _alike(explaining: Sequence[Finding], evident: Sequence[Finding]) -> list[Finding]:
    """Return the findings of other hosts that are wrong in the way of one that explains a failure.

    The first failure names its own host, and the job fails until the same is right on all of them.
    """
    ways = {(f.remedy, f.kind) for f in explaining if f.kind is FindingKind.DRIFT}
    hosts = {finding.host for finding in explaining}
    return [
        finding
        for finding in evident
        if (finding.remedy, finding.kind) in ways and finding.host not in hosts
    ]


def _left_open(confirmation: Confirmation, unread: Sequence[str]) -> Confirmation:
    """Return a confirmation that refutes nothing over hosts that were not read."""
    if not unread or confirmation.status is ConfirmationStatus.CONFIRMED:
        return confirmation
    # In one line with the first evidence, which is the one that is always shown.
    first = "; ".join((*confirmation.evidence[:1], f"not read: {folded(unread)}"))
    evidence = (first, *confirmation.evidence[1:])
    return confirmation.model_copy(update={"status": ConfirmationStatus.OPEN, "evidence": evidence})


def _open_evidence(
    label: str, findings: Sequence[Finding], quotes: Named, number: int
) -> tuple[str, ...]:
    """What leaves a cause open that no finding explains: what is wrong elsewhere, or was not looked at."""
    # What is only worth knowing does not.
    others = [finding for finding in findings if finding.kind is not FindingKind.REPORT]
    if label in BETWEEN and number and not others:
        return (f"no sign of it on {counted(number, 'host')}: it may be between them",)
    if label in OF_THE_JOB and number and not others:
        return (f"no sign of it on {counted(number, 'host')} now: it may be of the job alone",)
    unseen = () if label != "master-port-in-use" else quotes.beyond(_ALWAYS_CHECKED)
    ports = tuple(
        f"port {port} is checked only where a launcher in use needs it: ss -ltnp 'sport = :{port}'"
        for port in unseen[:3]
    )
    return (*(_sentence(finding) for finding in others[:3]), *ports)


def confirmed(label: str, findings: Sequence[Finding], changes: Sequence[Change]) -> Confirmation:
    """Return the confirmation of a cause by what is wrong on hosts, and whether changes mend it.

    Args:
        label: the cause.
        findings: of its label, one at least.
        changes: of the plan.
    """
    places = {(finding.host, finding.remedy) for finding in findings}
    # A change carries the label of the first finding that it mends, and may mend others of its remedy.
    mending = [change for change in changes if (change.host, change.remedy) in places]
    hosts = [finding.host for finding in findings if finding.host]
    return Confirmation(
        label=label,
        status=ConfirmationStatus.CONFIRMED,
        hosts=tuple(dict.fromkeys([*hosts, *(change.host for change in mending)])),
        evidence=tuple(_sentence(finding) for finding in findings[:6]),
        curable=bool(mending),
    )


def _sentence(finding: Finding) -> str:
    where = f"{finding.host}: " if finding.host else ""
    return f"{where}{finding.sentence}"
