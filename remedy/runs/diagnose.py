"""``remedy diagnose``: what the logs say, compared with the hosts as they are now."""

from __future__ import annotations

from remedy.diagnose.confirm import explain
from remedy.diagnose.diagnosis import Diagnosis, Explanation
from remedy.runs.probe import probe
from remedy.runs.session import Session
from remedy.text import quoted
from remedy.verify.hosts import shortened


def with_hosts(diagnosis: Diagnosis, session: Session) -> Explanation:
    """Explain a diagnosis by what the hosts are now; those that could not be read are named."""
    probed = probe(session)
    fleet, notes = probed.fleet, (*diagnosis.notes, *probed.remarks)
    explanation = explain(
        diagnosis.model_copy(update={"notes": notes}),
        probed.plan,
        fleet.states,
        quoted(session.inventory.path),
        fleet.host_by_address,
        hosts_unread=probed.errors,
    )
    command = explanation.command and shortened(explanation.command, session.inventory.names)
    return explanation.model_copy(update={"command": command})
