"""A diagnosis as text for people. Text that came from a log is printed as it is, never read as markup."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from remedy.diagnose.advice import evidence, fix, named, where_to_look
from remedy.diagnose.cures import cause_of
from remedy.diagnose.diagnosis import (
    NEAR,
    Candidate,
    Confirmation,
    ConfirmationStatus,
    Diagnosis,
    Explanation,
    Moment,
    Quote,
)
from remedy.report.passages import passage
from remedy.text import clipped, counted, folded, to_paste

MOMENT = 100  # characters of a line that the timeline shows
WIDTH = 200  # of a line of a log that is shown
LINES = 4  # of evidence for the cause, without --all
INDENT = 4
CONFIRMATIONS = 2  # below a verdict, which is to be read at a glance
# Other candidates that are shown without --all: so many, from this score on.
OTHERS, LIKELY = 3, 0.3

APPLICATION = "application-error"
NEXT = (
    "give the logs of all ranks, made with NCCL_DEBUG=INFO, and dmesg of the hosts; "
    "remedy verify INVENTORY tests the hosts without the training program."
)
ELSEWHERE = (
    "The hosts do not show it: check the network between them, or probe them while the job fails."
)
OWN = "Not a host-state problem: change the program."
GUESS = "A bug or a setting in the program, launcher or framework, as far as these lines show."

_HEAD = {
    "unknown": ("Unknown: the logs do not show the cause.", "yellow"),
    "healthy": ("Healthy: the logs show no failure.", "green"),
}
_OPEN = ("The logs show no failure, and do not prove that there was none.", "yellow")
_OTHERS = {"unknown": "Possible", "healthy": "Seen, but not fatal"}
_STYLES = {
    ConfirmationStatus.CONFIRMED: "green",
    ConfirmationStatus.REFUTED: "yellow",
    ConfirmationStatus.OPEN: "dim",
}


@dataclass(frozen=True)
class Folded:
    """Text that is folded between words at the width of a terminal, and is one line in a file or a pipe.

    Args:
        before: the start of its first line; the others are indented to its end.
        text: what is folded.
    """

    before: Text
    text: Text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines."""
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


def render_diagnosis(
    explanation: Explanation, *, everything: bool, inventory: str = ""
) -> RenderableType:
    """Return a diagnosis for reading: cause, evidence, other candidates, what to do.

    Args:
        explanation: the diagnosis, compared with the hosts where they were probed.
        everything: every candidate, with all its lines.
        inventory: of these hosts, as it is typed; "" where none was given.
    """
    diagnosis = explanation.diagnosis
    parts: list[RenderableType] = [_head(diagnosis)]
    cause = cause_of(diagnosis.label)
    if cause is not None and diagnosis.label not in _HEAD:
        is_guess = diagnosis.label == APPLICATION and diagnosis.confidence != "certain"
        parts.append(Folded(Text("  "), Text(GUESS if is_guess else cause.cause)))
    parts += _evidence(diagnosis, everything=everything)
    parts += _timeline(diagnosis)
    parts += _other_candidates(diagnosis, everything=everything)
    parts += _consequences(diagnosis, everything=everything)
    parts += [
        Folded(Text(""), _confirmation(confirmation)) for confirmation in explanation.confirmations
    ]
    parts += [Folded(Text("Note: ", style="bold"), Text(note)) for note in diagnosis.notes]
    if everything:
        dim = "dim"
        parts += [Folded(Text("Aside: ", dim), Text(aside, dim)) for aside in diagnosis.asides]
    parts += [Text(""), *_fix(explanation, inventory)]
    return Group(*parts)


def _evidence(diagnosis: Diagnosis, *, everything: bool) -> list[RenderableType]:
    """Return the line where the failure began, and the other lines that speak for the cause."""
    parts: list[RenderableType] = []
    said: set[str] = set()
    if diagnosis.lead is not None:
        lead = _counted_lead(diagnosis, diagnosis.lead)
        parts += [Text(""), Text("First failure", style="bold"), *_lines([lead], said)]
    cause = _candidate(diagnosis)
    if cause is not None:
        rest = [quote for quote in cause.evidence if _place(quote) != _place(diagnosis.lead)]
        shown = rest if everything else _distinct(rest, diagnosis.lead)[:LINES]
        if shown:
            parts += [Text("Also", style="bold"), *_lines(shown, said)]
    return parts


def _counted_lead(diagnosis: Diagnosis, lead: Quote) -> Quote:
    """Return the first failure as it stands among the evidence, where those are counted that hold it, too."""
    return next((q for q in evidence(diagnosis) if _place(q) == _place(lead) and q.copies), lead)


def _place(quote: Quote | None) -> tuple[str, int] | None:
    return None if quote is None else (quote.file, quote.line)


def _timeline(diagnosis: Diagnosis) -> list[RenderableType]:
    """Return what failed first where, of several logs."""
    if len(diagnosis.timeline) < 2:
        return []
    parts: list[RenderableType] = [Text(""), Text("In the order of time", style="bold")]
    several = len({_day(moment) for moment in diagnosis.timeline} - {""}) > 1
    for moment in diagnosis.timeline:
        clock = f"{_day(moment)}{_when(moment)}" if several else _when(moment)
        origin = f"rank {moment.rank}" if moment.rank is not None else ""
        more = f" (and {counted(moment.logs - 1, 'other log')})" if moment.logs > 1 else ""
        where = " ".join(filter(None, (f"{moment.file}:{moment.line}", origin, moment.host)))
        text = passage(moment.text, moment.symptom, MOMENT)
        parts.append(_whole(f"  {clock} {where}{more}: {text}", style=""))
    return parts


def _when(moment: Moment) -> str:
    """Return when a line was printed, or between which two others that have a time."""
    if moment.time is None:
        return "--:--:--" if moment.until is None else f"before {_clock(moment.until)}"
    if moment.until is None:
        return f"after {_clock(moment.time)}"
    if moment.until - moment.time <= NEAR:
        return _clock(moment.time)
    return f"{_clock(moment.time)}-{_clock(moment.until)}"


def _day(moment: Moment) -> str:
    """Return the month and the day of a moment, "" where it has no time: 11-20."""
    time = moment.until if moment.time is None else moment.time
    if time is None:
        return ""
    # Each month has 31 days where times are counted from the start of a year.
    days = int(time) // 86400 - 1
    return f"{days // 31:02d}-{days % 31 + 1:02d} "


def _clock(time: float) -> str:
    """Return the time of day of a moment that counts from the start of its year."""
    second = int(time) % 86400
    return f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"


def _consequences(diagnosis: Diagnosis, *, everything: bool) -> list[RenderableType]:
    """Return the lines of failures that followed from the first one."""
    is_one_itself = _candidate(diagnosis) is not None and diagnosis.label == "peer-died-timeout"
    if not diagnosis.consequences or (is_one_itself and not everything):
        return []
    shown = diagnosis.consequences
    if not everything:
        # No line twice: the timeline, and what stands above, have some of them already.
        known = {(moment.file, moment.line) for moment in diagnosis.timeline}
        known |= {(quote.file, quote.line) for quote in evidence(diagnosis)}
        others = {(q.file, q.line): q for q in shown if (q.file, q.line) not in known}
        shown = tuple(others.values())[:2]
    if not shown:
        return []
    return [Text(""), Text("Consequences", style="bold"), *_lines(shown)]


def _candidate(diagnosis: Diagnosis) -> Candidate | None:
    """Return the candidate that the diagnosis settled on."""
    return next((c for c in diagnosis.candidates if c.label == diagnosis.label), None)


def _head(diagnosis: Diagnosis) -> Text:
    if diagnosis.label in _HEAD:
        words, style = _OPEN if diagnosis.is_open else _HEAD[diagnosis.label]
        return Text(words, style=f"bold {style}")
    return Text(diagnosis.label, style="bold red").append(
        f"  {diagnosis.confidence}", style="default"
    )


def _lines(evidence: Iterable[Quote], said: set[str] | None = None) -> list[RenderableType]:
    """Return lines of logs, each with what it means, which is said once.

    Args:
        evidence: the lines.
        said: meanings that stand above; those of the lines are added.
    """
    parts: list[RenderableType] = []
    said = set() if said is None else said
    for quote in evidence:
        origin = f" rank {quote.rank}" if quote.rank is not None else ""
        if local := quote.details.get("local_rank"):
            origin = f" local rank {local}"
        origin += f" on {quote.host}" if quote.host else ""
        origin += f" (and {counted(quote.copies, 'other')})" if quote.copies else ""
        parts.append(_whole(f"  {quote.file}:{quote.line}{origin}", style="cyan"))
        parts.append(Folded(Text("    "), Text(passage(quote.text, quote.symptom, WIDTH))))
        if quote.meaning and quote.meaning not in said:
            said.add(quote.meaning)
            parts.append(Folded(Text("    = ", style="dim"), Text(quote.meaning, style="dim")))
    return parts


def _whole(text: str, *, style: str) -> Text:
    """Return a line that stays whole, so that it can be copied."""
    return Text(text, style=style, no_wrap=True, overflow="ignore")


def _distinct(evidence: Iterable[Quote], lead: Quote | None) -> list[Quote]:
    """Return one line of each kind from each log: a retry that is printed ten times adds nothing."""
    seen = {(lead.file, lead.symptom)} if lead is not None else set()
    places = {(lead.file, lead.line)} if lead is not None else set()
    distinct = []
    for quote in evidence:
        place = (quote.file, quote.line)
        if (quote.file, quote.symptom) not in seen and place not in places:
            seen.add((quote.file, quote.symptom))
            places.add(place)
            distinct.append(quote)
    return distinct


def _other_candidates(diagnosis: Diagnosis, *, everything: bool) -> list[RenderableType]:
    others = [candidate for candidate in diagnosis.candidates if candidate.label != diagnosis.label]
    if not everything:
        others = [candidate for candidate in others if candidate.score >= LIKELY][:OTHERS]
    if not others:
        return []
    title = "Possible" if diagnosis.is_open else _OTHERS.get(diagnosis.label, "Less likely")
    parts: list[RenderableType] = [Text(""), Text(title, style="bold")]
    # What the lines mean stands above already.
    said = {quote.meaning for quote in evidence(diagnosis)}
    for candidate in others:
        if candidate.reason in said:
            parts.append(Text(f"  {candidate.label}"))
        else:
            before = Text(f"  {candidate.label:<24}")
            parts.append(Folded(before, Text(candidate.reason, style="dim")))
        if everything:
            parts += _lines(candidate.evidence)
    return parts


def _confirmation(confirmation: Confirmation, shown: Collection[str] = ()) -> Text:
    """Return how a cause compares with the hosts, and the first evidence that stands nowhere else."""
    status, evidence = confirmation.status, confirmation.evidence[:1]
    text = Text(f"{confirmation.label}: ").append(status.value, style=_STYLES[status])
    if confirmation.hosts:
        text.append(f" on {folded(confirmation.hosts)}")
    for line in evidence:
        if confirmation.hosts and line in shown:
            continue
        host, _, words = line.partition(": ")
        if confirmation.hosts == (host,):
            text.append(f": {clipped(words, WIDTH)}")
        else:
            example = "such as " if host in confirmation.hosts else ""
            text.append(f", {example}{clipped(line, WIDTH)}")
    return text


def _fix(explanation: Explanation, inventory: str) -> list[RenderableType]:
    """Return what to do, and what to run."""
    label = explanation.diagnosis.label
    if label == "unknown" or explanation.diagnosis.is_open:
        condition = "if the run failed or hangs, " if explanation.diagnosis.is_open else ""
        text = to_paste(f"{condition}{NEXT}", inventory)
        things = named(explanation.diagnosis) if label == "unknown" else ""
        names = [Folded(Text("Named: ", style="bold"), Text(things))] if things else []
        return [*names, Folded(Text("Next: ", style="bold"), Text(text))]
    if label == "healthy":
        return []
    parts: list[RenderableType] = []
    if own := fix(explanation.diagnosis):
        parts.append(Folded(Text("Fix: ", style="bold"), Text(own)))
    elif label == APPLICATION:
        is_guess = explanation.diagnosis.confidence == "possible"
        text = "If nothing of a host explains it: change the program." if is_guess else OWN
        parts.append(Folded(Text(""), Text(text)))
    elif (cause := cause_of(label)) is not None and cause.fix:
        parts.append(Folded(Text("Fix: ", style="bold"), Text(cause.fix)))
    if things := named(explanation.diagnosis):
        parts.append(Folded(Text("Named: ", style="bold"), Text(things)))
    if explanation.look:
        where = " ".join(filter(None, ("Look", where_to_look(explanation.diagnosis))))
        parts.append(_whole(f"{where}: ", style="bold").append(explanation.look, style="cyan"))
    confirmation = explanation.confirmation_of(label)
    if confirmation is not None and confirmation.status is ConfirmationStatus.REFUTED:
        parts.append(Folded(Text(""), Text(ELSEWHERE, style="dim")))
    if explanation.command:
        parts.append(_whole("Run: ", style="bold").append(explanation.command, style="cyan"))
    if explanation.remedy is None and label != APPLICATION:
        parts.append(Text("No remedy checks for it: repair it by hand.", style="dim"))
    parts.append(_whole(f"See: remedy explain {label}", style="dim"))
    return parts


def render_explanation(explanation: Explanation, shown: Collection[str] = ()) -> RenderableType:
    """Return the cause of a failed verification in a few lines, below the verdict.

    Args:
        explanation: of the logs of the verification, compared with the hosts.
        shown: what stands above it already, each text with its host before it.
    """
    diagnosis = explanation.diagnosis
    label = diagnosis.label
    line = Text("cause        ", style="bold red").append(label, style="bold")
    if label == "unknown":
        refuted = {
            confirmation.label
            for confirmation in explanation.confirmations
            if confirmation.status is ConfirmationStatus.REFUTED
        }
        remaining = [c.label for c in diagnosis.candidates if c.label not in refuted]
        labels = ", ".join(remaining[:OTHERS])
        line.append(f"  (possible: {labels})" if labels else "", style="default")
    else:
        line.append(f"  {diagnosis.confidence}", style="default")
    parts: list[RenderableType] = [line]
    if diagnosis.lead is not None and diagnosis.lead.text.strip() not in shown:
        text = passage(diagnosis.lead.text, diagnosis.lead.symptom, WIDTH)
        parts.append(Text(f"             {diagnosis.lead.file}: {text}", style="dim"))
    # That of the cause first, whatever it is; of the others those that the hosts confirm.
    lines = [
        Text("             ").append_text(_confirmation(confirmation, shown))
        for confirmation in sorted(explanation.confirmations, key=lambda c: c.label != label)
        if confirmation.label == label
        or confirmation.status is ConfirmationStatus.CONFIRMED
        or (label == "unknown" and confirmation.status is ConfirmationStatus.REFUTED)
    ]
    parts += lines[:CONFIRMATIONS]
    if lines[CONFIRMATIONS:]:
        more = counted(len(lines) - CONFIRMATIONS, "more cause")
        parts.append(Text(f"             {more} compared with the hosts (--json)", style="dim"))
    if explanation.command:
        parts.append(Text("run          ", style="bold").append(explanation.command, style="cyan"))
    if label != "unknown":
        parts.append(Text(f"see          remedy explain {label}", style="dim"))
    return Group(*parts)
