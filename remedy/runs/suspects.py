"""Which change a wave whose proof failed may have failed by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from remedy.diagnose.diagnosis import Explanation
from remedy.plan import Change
from remedy.verify.verdict import Verdict


@dataclass(frozen=True)
class Suspect:
    """A change that may be what a red wave failed by."""

    host: str
    change: Change
    reason: str

    def record(self) -> dict[str, str]:
        """Return the suspect as the journal has it."""
        return {
            "host": self.host,
            "change": self.change.id,
            "title": self.change.title,
            "reason": self.reason,
        }


def suspects(
    changes: Iterable[Change],
    verdict: Verdict | None,
    explanation: Explanation | None,
    causes: Iterable[str] = (),
) -> tuple[Suspect, ...]:
    """Return the changes of a wave that may be what it failed by, the most suspect first.

    Args:
        changes: the changes that were made.
        verdict: of its proof; None where no host came that far.
        explanation: the cause that the logs and the hosts show.
        causes: the causes of what the probe after the changes found wrong on the hosts of the wave.
    """
    accused = {name for culprit in (verdict.culprits if verdict else ()) for name in culprit.hosts}
    label = explanation.diagnosis.label if explanation else ""
    names = frozenset(causes)
    ranked = []
    for number, change in enumerate(changes):
        reasons = []
        if change.label == label:
            reasons.append(f"it is about the cause that the proof shows, {label}")
        if change.label in names:
            reasons.append(f"it is about what the host lacks now, {change.label}")
        if change.host in accused:
            reasons.append("the proof names its host")
        if change.guarded:
            reasons.append("it can cut connections")
        about = change.label == label or change.label in names
        rank = (not about, change.host not in accused, not change.guarded, number)
        reason = "; ".join(reasons) or "it was made in this wave"
        ranked.append((rank, Suspect(change.host, change, reason)))
    return tuple(suspect for _, suspect in sorted(ranked, key=lambda item: item[0]))
