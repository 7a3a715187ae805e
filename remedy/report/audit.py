"""Runs of the journal, as text for people."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from remedy.apply.report import RELEASED
from remedy.audit.story import Story
from remedy.errors import RemedyError
from remedy.plan import Choice, Plan
from remedy.report.caveat import with_caveat
from remedy.report.failures import error_lines
from remedy.report.plan import render_steps
from remedy.report.results import HostResult, result_lines
from remedy.sentences import by_sentence
from remedy.text import clipped, counted, folded, limited, to_paste

PROVED = {True: "proved", False: "NOT proved", None: "not verified"}
PART = "proved in part"
WIDTH = 260
"""Characters of the reason of a proof."""
NO_ANSWER = "begun, and the journal has no answer"
ASK = "the hosts have receipts: --inventory INVENTORY"
# A run that only reads proves nothing, and is not expected to.
READ_ONLY = {"check": "checked", "rehearsal": "rehearsed"}

# A command of one record or two, which has no end of its own.
WITHOUT_END = {"plan": "saved", "settle": "settled", "accept": "accepted"}
# What hosts answered that were asked to open a lock.
LOCKS = {
    "free": "not locked",
    "removed": "released",
    "fenced": "taken away",
    "reverted": "released",
    "other": "other run",
    "alive": "at work",
    "unknown": "not known",
}
SETTLED = {"confirmed": "confirmed", "reverted": "taken back"}


def run_line(story: Story) -> str:
    """Return a run in one line."""
    changes = counted(story.count, "change")
    if result := own_end(story):
        return f"{story.run}  {story.mode:<10}{changes:<13}{result:<27}{story.by}"
    ended = f"exit {story.exit_code}" if story.exit_code is not None else "not ended"
    proved = READ_ONLY.get(story.mode, proof_of(story))
    line = f"{story.run}  {story.mode:<10}{changes:<13}{ended:<11}{proved:<16}{story.by}"
    relation = f"of {story.of}" if story.of else f"resumes {story.resumes}" * bool(story.resumes)
    notes = ", ".join(filter(None, (relation, choice_of(story))))
    return f"{line}  ({notes})" if notes else line.rstrip()


def proof_of(story: Story) -> str:
    """Return how the proof of a run ended; hosts that could not be reached, say, are not in a part of one."""
    is_part = story.proved and story.exit_code not in (0, None)
    return PART if is_part else PROVED[story.proved]


def choice_of(story: Story) -> str:
    """Return the options that chose the remedies of a run; "" where all of them took part."""
    return Choice(story.only, story.skip).words


def own_end(story: Story) -> str:
    """Return how a command ended that has no end of its own on record; "" for one that has, or was cut off."""
    if story.mode != "unlock" or not story.hosts:
        return WITHOUT_END.get(story.mode, "")
    if {*story.hosts.values()} == {"free"}:
        return "not locked"
    return "unlocked" if RELEASED.issuperset(story.hosts.values()) else "not unlocked"


def render_run(
    story: Story,
    plan: Plan | None,
    problem: str,
    receipts: Mapping[str, str] = MappingProxyType({}),
    inventory: str = "",
    errors: Mapping[str, RemedyError] = MappingProxyType({}),
) -> RenderableType:
    """Return a run for reading: who began it, what was planned, the results, and whether it was proved.

    Args:
        story: the run, from the journal.
        plan: what was carried out, None where it is no longer kept.
        problem: what is wrong with the plan that is kept, "" for nothing.
        receipts: by host, what it noted of the run itself, in words; empty where no host was asked.
        inventory: as it is typed; "" where it is not known.
        errors: why hosts could not be asked for what they noted.
    """
    parts: list[RenderableType] = [*_head(story)]
    if problem:
        parts.append(Text(problem, style="red"))
    if plan is not None:
        parts += [Text(""), render_steps(plan.restricted(story.planned))]
    parts += [
        Text(""),
        Text("Result", style="bold"),
        *_results(story, plan, receipts, inventory, errors),
    ]
    if end := own_end(story):
        parts.append(Text(f"  {end}"))
    elif story.exit_code is None:
        parts.append(Text("  not ended: the journal ends before the run did", style="red"))
    if story.proved is not None:
        proof = proof_of(story)
        style = "yellow" if proof == PART else "green" if story.proved else "red"
        reason, caveat = with_caveat(story.reason)
        parts.append(Text(f"  {proof}: {clipped(reason, WIDTH)}", style=style))
        parts += [Text(f"  {caveat}", style="yellow")] if caveat else []
    elif story.exit_code is not None and story.mode not in READ_ONLY:
        parts.append(Text(f"  {proof_of(story)}", style="yellow"))
    return Group(*parts)


def _head(story: Story) -> Iterator[Text]:
    yield Text(f"run {story.run}: {story.mode}, begun {story.time} by {story.by or 'unknown'}")
    if story.of:
        yield Text(f"takes back run {story.of}")
    if story.resumes:
        yield Text(f"resumes run {story.resumes}")
    if words := choice_of(story):
        yield Text(f"not all remedies: {words}")
    if story.approvals:
        yield Text(f"approved by {', '.join(story.approvals)}")


def _results(
    story: Story,
    plan: Plan | None,
    receipts: Mapping[str, str],
    inventory: str,
    errors: Mapping[str, RemedyError],
) -> Iterator[Text]:
    """Yield the results of the changes, hosts that share one together; then where the hosts ended."""
    ask = to_paste(ASK, inventory)
    results = [
        HostResult(host, change, status, story.words.get(host, {}).get(change, ""))
        for host, statuses in story.results.items()
        for change, status in statuses.items()
    ]
    yield from result_lines(sorted(results, key=lambda r: (r.change, r.status)), plan)
    for names, reason in by_sentence(story.refused.items()):
        yield Text(f"  {'refused':<12}{names}: {reason}", style="red")
    # The receipts of a host that was asked are below.
    asked = receipts.keys() | errors.keys()
    for names, words in by_sentence((n, "" if n in asked else f"; {ask}") for n in story.not_known):
        yield Text(f"  {'not known':<12}{names}: {NO_ANSWER}{words}", style="yellow")
    if rest := story.not_begun:
        yield Text(f"  {'not made':<12}{folded(rest)}: the run did not come to it", style="yellow")
    yield from _waves(story, inventory)
    for names, state in by_sentence(story.settled.items()):
        word = SETTLED.get(state, state)
        yield Text(f"  {word:<12}{names}: what waited for a confirmation, by a later command")
    for names, words in by_sentence(receipts.items()):
        yield Text(f"  {'receipts':<12}{names}: {words}")
    if errors:
        yield Text(f"  {'not asked':<12}{folded(errors)}: what they noted is not known")
        yield from error_lines(errors)
    by_status: dict[str, list[str]] = defaultdict(list)
    for host, status in story.hosts.items():
        by_status[LOCKS.get(status, status) if story.mode == "unlock" else status].append(host)
    for status, hosts in by_status.items():
        yield Text(f"  {status:<12}{folded(hosts)}")


def _waves(story: Story, inventory: str) -> Iterator[Text]:
    """Yield the proofs of a run's waves, and of one whose proof failed what is suspected."""
    if story.unproved:
        yield Text(f"  {counted(story.unproved, 'wave')}, without a proof of each", style="yellow")
    for wave in story.waves:
        passed: bool | None = wave.get("passed")
        hosts = folded(wave.get("hosts", ()))
        partners = folded(wave.get("partners", ())) or "nobody"
        style = "yellow" if passed is None else "green" if passed else "red"
        number, of = _number(wave), wave.get("of")
        reason = clipped(str(wave.get("reason")), WIDTH)
        hosts = f"{hosts} of run {of}" if of else hosts
        yield Text(
            f"  {number:<12}{hosts} with {partners}: {PROVED[passed]}: {reason}",
            style=style,
        )
    if story.in_proof:
        words = "changed, and the proof of their wave did not end"
        yield Text(f"  {'not known':<12}{folded(story.in_proof)}: {words}", style="yellow")
    if not story.red:
        return
    red = story.red
    yield from _left(red, inventory) if red.get("of") else _taken_back(red)
    if red.get("proved_again") is False and not red.get("suspects"):
        words = "no change: the proof fails without them as well"
        yield Text(f"  {'suspected':<12}{words}", style="yellow")
    for suspect in red.get("suspects", ()):
        change = f"{suspect['host']}: {suspect['change']} ({suspect['title']})"
        yield Text(f"  {'suspected':<12}{change}: {suspect['reason']}", style="red")


def _number(wave: Mapping[str, Any]) -> str:
    """Return which wave a record is about; a run without proofs of its waves has no numbers."""
    return f"wave {wave.get('wave')}" if wave.get("wave") else "all waves"


def _taken_back(red: Mapping[str, Any]) -> Iterator[Text]:
    """Yield what became of a wave that was taken back."""
    words = f"{_number(red)} by run {red.get('rollback')}"
    yield Text(f"  {'taken back':<12}{words}", style="yellow")
    yield Text(f"  {'as before':<12}{folded(red.get('as_before', ())) or 'no host'}, byte for byte")
    for hosts, reason in by_sentence(red.get("not_as_before", {}).items()):
        yield Text(f"  {'NOT before':<12}{hosts}: {reason}", style="red")
    if red.get("proved_again") is not None:
        yield Text(f"  {'again':<12}{PROVED[red['proved_again']]}")


def _left(red: Mapping[str, Any], inventory: str) -> Iterator[Text]:
    """Yield how a wave of a resumed run is taken back."""
    hosts = red.get("hosts", ())
    back = f"remedy rollback {red.get('of')} INVENTORY --limit {limited(hosts)}"
    words = f"{folded(hosts)}; to take it back: {to_paste(back, inventory)}"
    yield Text(f"  {'not back':<12}{words}", style="yellow")
