"""What a remedy makes its findings with."""

from __future__ import annotations

from dataclasses import dataclass

from remedy.plan.change import Finding, FindingKind
from remedy.probe import HostState


@dataclass(frozen=True)
class Finder:
    """Makes the findings of one remedy.

    Args:
        remedy: its name.
        label: the cause that its findings have unless another one is given.
    """

    remedy: str
    label: str = ""

    def __call__(
        self,
        host: HostState | None,
        kind: FindingKind,
        title: str,
        evidence: tuple[str, ...] = (),
        fix: str = "",
        *,
        label: str = "",
    ) -> Finding:
        """Return a finding; the arguments are those of ``Finding``.

        Args:
            host: the host, or None for the fleet as a whole.
            kind: what becomes of it.
            title: one sentence.
            evidence: what was seen, literally, one line each.
            fix: what to do about it, where remedy does not.
            label: the cause; the remedy's own by default.
        """
        return Finding(
            host=None if host is None else host.host,
            remedy=self.remedy,
            kind=kind,
            label=label or self.label,
            title=title,
            evidence=evidence,
            fix=fix,
        )

    def report(
        self, host: HostState | None, title: str, label: str, evidence: tuple[str, ...], fix: str
    ) -> Finding:
        """Return a finding that is worth knowing, and that nobody asked remedy to change."""
        return self(host, FindingKind.REPORT, title, evidence, fix, label=label)
