"""A diagnosis as text for people. Text that came from a log is printed as it is, never read as markup."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from remedy.diagnose.diagnosis import (
    Candidate,
    Confirmation,
    ConfirmationStatus,
    Diagnosis,
    Explanation,
    Quote,
)
from remedy.plan import all_causes
from remedy.text import fold

WIDTH = 200  # of a line of a log that is shown
LINES = 4  # of evidence for the cause, without --all
INDENT = 4

_HEAD = {
    "unknown": ("Unknown: the text does not settle the cause.", "yellow"),
    "healthy": ("Nothing is wrong in what these logs tell.", "green"),
}
_STYLES = {
    ConfirmationStatus.CONFIRMED: "green",
    ConfirmationStatus.REFUTED: "yellow",
    ConfirmationStatus.OPEN: "dim",
}


@dataclass(frozen=True)
class Folded:
    """Text that is folded between words at the width of a terminal, and is one line in a file or a pipe.

    Args:
        before: what stands before its first line; the others begin below the text.
        text: what is folded.
    """

    before: Text
    text: Text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Give the lines."""
        if options.no_wrap:
            yield self.before + self.text
            return
        # On a narrow terminal a column of its own would leave the words no room.
        hang = self.before.cell_len if self.before.cell_len <= options.max_width // 3 else INDENT
        whole = self.text if hang == self.before.cell_len else self.before + self.text
        head = self.before if whole is self.text else Text("")
        width = options.max_width - hang
        for number, line in enumerate(whole.wrap(console, max(width, 1))):
            line.rstrip()
            yield (head if number == 0 else Text(" " * hang)) + line


def render_diagnosis(found: Explanation, *, everything: bool) -> RenderableType:
    """Return a diagnosis for reading: cause, evidence, other candidates, what to do.

    Args:
        found: the diagnosis, and what the hosts say to it.
        everything: every candidate, with all its lines.
    """
    diagnosis = found.diagnosis
    parts: list[RenderableType] = [_head(diagnosis)]
    cause = all_causes().get(diagnosis.label)
    if cause is not None and diagnosis.label not in _HEAD:
        parts.append(Folded(Text("  "), Text(cause.cause)))
    own = next((one for one in diagnosis.candidates if one.label == diagnosis.label), None)
    if diagnosis.lead is not None:
        parts += [Text(""), Text("First failure", style="bold"), *_lines([diagnosis.lead])]
    if own is not None:
        more = [one for one in own.evidence if one != diagnosis.lead]
        shown = more if everything else _folded(more, diagnosis.lead)[:LINES]
        if shown:
            parts += [Text("Also", style="bold"), *_lines(shown)]
    parts += _others(diagnosis, everything=everything)
    if diagnosis.consequences and (
        everything or own is None or diagnosis.label != "peer-died-timeout"
    ):
        after = diagnosis.consequences if everything else diagnosis.consequences[:2]
        parts += [Text(""), Text("What followed from it", style="bold"), *_lines(after)]
    parts += [Folded(Text(""), _confirmation(one)) for one in found.confirmations]
    parts += [Folded(Text("Note: ", style="bold"), Text(note)) for note in diagnosis.notes]
    if everything:
        dim = "dim"
        parts += [Folded(Text("Aside: ", dim), Text(aside, dim)) for aside in diagnosis.asides]
    parts += [Text(""), *_fix(found)]
    return Group(*parts)


def _head(diagnosis: Diagnosis) -> Text:
    if diagnosis.label in _HEAD:
        words, style = _HEAD[diagnosis.label]
        return Text(words, style=f"bold {style}")
    return Text(diagnosis.label, style="bold red").append(
        f"  {diagnosis.confidence}", style="default"
    )


def _lines(evidence: Iterable[Quote]) -> list[RenderableType]:
    parts: list[RenderableType] = []
    for one in evidence:
        who = f" rank {one.rank}" if one.rank is not None else ""
        who += f" on {one.host}" if one.host else ""
        parts.append(_whole(f"  {one.file}:{one.line}{who}", style="cyan"))
        text = one.text.strip()
        parts.append(Folded(Text("    "), Text(f"{text[:WIDTH]}{'...' * (len(text) > WIDTH)}")))
        if one.meaning:
            parts.append(Folded(Text("    = ", style="dim"), Text(one.meaning, style="dim")))
    return parts


def _whole(text: str, *, style: str) -> Text:
    """Return a line that stays whole, because it is there to be copied."""
    return Text(text, style=style, no_wrap=True, overflow="ignore")


def _folded(evidence: Iterable[Quote], lead: Quote | None) -> list[Quote]:
    """Return one line of each kind from each log: a retry that is printed ten times says nothing new."""
    seen = {(lead.file, lead.symptom)} if lead is not None else set()
    kept = []
    for one in evidence:
        if (one.file, one.symptom) not in seen:
            seen.add((one.file, one.symptom))
            kept.append(one)
    return kept


def _others(diagnosis: Diagnosis, *, everything: bool) -> list[RenderableType]:
    others = [one for one in diagnosis.candidates if one.label != diagnosis.label]
    if not everything:
        others = [one for one in others if one.score >= 0.3][:3]
    if not others:
        return []
    word = "It could be" if diagnosis.label == "unknown" else "Less likely"
    if diagnosis.label == "healthy":
        word = "Seen on the way, and overcome"
    parts: list[RenderableType] = [Text(""), Text(word, style="bold")]
    for one in others:
        parts.append(_other(one))
        if everything:
            parts += _lines(one.evidence)
    return parts


def _other(candidate: Candidate) -> RenderableType:
    return Folded(Text(f"  {candidate.label:<24}"), Text(candidate.reason, style="dim"))


def _confirmation(one: Confirmation) -> Text:
    text = Text(f"{one.label}: ").append(one.status.value, style=_STYLES[one.status])
    if one.hosts:
        text.append(f" on {fold(one.hosts)}")
    if one.evidence:
        text.append(f", {one.evidence[0]}")
    return text


def _fix(found: Explanation) -> list[RenderableType]:
    label = found.diagnosis.label
    if label == "healthy":
        return []
    if label == "unknown":
        return [
            Folded(
                Text("Next: ", style="bold"),
                Text(
                    "give the logs of all ranks, made with NCCL_DEBUG=INFO, and dmesg of the hosts; "
                    "remedy verify INVENTORY tests the hosts without the training program."
                ),
            )
        ]
    cause = all_causes()[label]
    parts: list[RenderableType] = []
    if label == "application-error":
        parts.append(
            Folded(
                Text(""),
                Text(
                    "This is not a matter of the hosts' state: the program or its settings have to change."
                ),
            )
        )
    elif cause.fix:
        parts.append(Folded(Text("Fix: ", style="bold"), Text(cause.fix)))
    own = found.confirmation_of(label)
    if own is not None and own.status is ConfirmationStatus.REFUTED:
        elsewhere = (
            "The hosts themselves do not show it: look at what is between them, or at another time."
        )
        parts.append(Folded(Text(""), Text(elsewhere, style="dim")))
    if found.command:
        parts.append(_whole("Type: ", style="bold").append(found.command, style="cyan"))
    if found.remedy is None and label not in ("application-error",):
        parts.append(Text("No remedy looks for it; the fix is yours.", style="dim"))
    parts.append(_whole(f"More: remedy explain {label}", style="dim"))
    return parts


def render_explanation(found: Explanation) -> RenderableType:
    """Return the cause of a failed verification in a few lines, below what the verification itself says.

    Args:
        found: what its own logs tell, held against the hosts.
    """
    label, diagnosis = found.diagnosis.label, found.diagnosis
    line = Text("cause        ", style="bold red").append(label, style="bold")
    if label == "unknown":
        likely = ", ".join(one.label for one in diagnosis.candidates[:3])
        line.append(f"  (it could be {likely})" if likely else "", style="default")
    else:
        line.append(f"  {diagnosis.confidence}", style="default")
    parts: list[RenderableType] = [line]
    if diagnosis.lead is not None:
        lead = f"{diagnosis.lead.file}: {diagnosis.lead.text.strip()}"
        parts.append(Text(f"             {lead[:WIDTH]}", style="dim"))
    own = [one for one in found.confirmations if one.label == label]
    others = [one for one in found.confirmations if one.label != label]
    for one in own + [one for one in others if one.status is ConfirmationStatus.CONFIRMED]:
        parts.append(Text("             ").append_text(_confirmation(one)))
    if found.command:
        parts.append(Text("type         ", style="bold").append(found.command, style="cyan"))
    if label != "unknown":
        parts.append(Text(f"more         remedy explain {label}", style="dim"))
    return Group(*parts)
