"""Consent that is given ahead, by ``--yes`` or by a program, and what it does not cover."""

from __future__ import annotations

import shlex

from remedy.errors import RefusedError
from remedy.runs.gate import Proposal
from remedy.text import folded, listed

DOUBLES = 3
"""Pairs of entries that are one machine, in one sentence; more are counted."""


def agree(proposal: Proposal, *, accept_high_risk: bool = False) -> None:
    """Consent to a proposal as ``--yes`` does.

    Args:
        proposal: what is to be done.
        accept_high_risk: whether that holds for changes marked as high risk too.

    Raises:
        RefusedError: it needs the eyes of a person: a change of high risk, another entry's machine at a host's
            address, or an address that nobody has seen.
    """
    risky = proposal.high_risk
    if risky and not accept_high_risk:
        raise RefusedError(
            f"{risky[0].host}: {risky[0].title}: marked as high risk, which --yes alone does not cover",
            next_step="Add --accept-high-risk, or leave --yes out to be asked.",
        )
    refuse_doubles(proposal)
    if proposal.claims:
        raise RefusedError(
            f"{claimed(proposal)}, which --yes does not cover",
            next_step="Correct the addresses in the inventory; or, if the machines are to become what it calls "
            "them, leave --yes out to be asked.",
        )
    if proposal.plan.changes and proposal.unseen:
        host, address = next(iter(proposal.unseen.items()))
        raise RefusedError(
            f"{folded(proposal.unseen)}: {address} ({host}) is an address from which no peer got an answer: "
            "--yes does not cover that",
            next_step="Give cluster_address of these hosts in the inventory, or leave --yes out to be asked.",
        )


def refuse_doubles(proposal: Proposal) -> None:
    """Refuse a proposal in which one machine has two entries of the inventory.

    Raises:
        RefusedError: no answer makes that right.
    """
    doubles = [claim for claim in proposal.claims if claim.same]
    if doubles:
        pairs = listed((f"{claim.owner} and {claim.host}" for claim in doubles), DOUBLES)
        others = shlex.quote("!".join(("*", *(claim.host for claim in doubles))))
        raise RefusedError(
            f"{pairs}: two entries of the inventory, and one machine, as shown above",
            next_step="Correct ssh_hostname of one of them in the inventory, or leave it out: "
            f"--limit {others}",
        )


def claimed(proposal: Proposal) -> str:
    """Return in words at the addresses of which hosts the machines of other entries answer."""
    hosts = folded(claim.host for claim in proposal.claims)
    if len(proposal.claims) == 1:
        return f"at the address of {hosts} answers the machine of another entry, as shown above"
    return f"at the addresses of {hosts} answer the machines of other entries, as shown above"
