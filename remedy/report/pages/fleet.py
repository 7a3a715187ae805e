"""The page of a fleet: its months as the journal has them, and the hosts that came back."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from remedy.audit.story import Story
from remedy.plan import Plan
from remedy.report import folding
from remedy.report.audit import PART as PART_WORDS
from remedy.report.audit import own_end
from remedy.report.folding import Fold, Specimen, Words
from remedy.report.pages.map import SquareKind
from remedy.report.pages.sheet import Sheet
from remedy.templating import render_page
from remedy.text import counted, fold, folded

PROVED = SquareKind("proved", "ok", "P")
PART = SquareKind(PART_WORDS, "doubt", "H")
RED = SquareKind("not proved", "worst", "N")
FAILED = SquareKind("failed or refused", "worse", "F")
CUT_OFF = SquareKind("not ended", "doubt", "E")
UNPROVED = SquareKind("changed, not verified", "doubt", "V")
LOOKED = SquareKind("only read, or planned", "blank", "")
KINDS = (PROVED, PART, RED, FAILED, CUT_OFF, UNPROVED, LOOKED)
NAMES = 120
"""Characters of folded hosts in a row."""


@dataclass(frozen=True)
class RunRow:
    """A run in a row.

    Args:
        kind: the square that it is.
        changes_made: how many changes it made.
    """

    run: str
    begun: str
    mode: str
    changes: int
    changes_made: int
    hosts: str
    end: str
    proof: str
    kind: SquareKind
    by: str

    @property
    def kind_look(self) -> str:
        """The class of its proof."""
        return {PROVED: "good", PART: "part", RED: "bad"}.get(self.kind, "dim")

    @property
    def tip(self) -> str:
        """What is said of its square."""
        return f"{self.begun} {self.mode} by {self.by}: {self.kind.outcome}"


@dataclass(frozen=True)
class Month:
    """The runs of a month, in order, and their sums."""

    name: str
    runs: tuple[RunRow, ...]

    @property
    def changes(self) -> int:
        """How many changes were made."""
        return sum(run.changes_made for run in self.runs)

    @property
    def proved(self) -> int:
        """How many runs ended with a proof of all their hosts."""
        return sum(run.kind is PROVED for run in self.runs)

    @property
    def red(self) -> int:
        """How many ended with a proof that failed."""
        return sum(run.kind is RED for run in self.runs)

    @property
    def people(self) -> str:
        """Who typed them."""
        return ", ".join(dict.fromkeys(run.by for run in self.runs if run.by))


@dataclass(frozen=True)
class Returning:
    """Hosts that were changed by more than one apply, by the same ones.

    Args:
        hosts: folded.
        times: in how many runs.
        last: when the last of them began.
        titles: of the changes that were made more than once.
    """

    hosts: str
    times: int
    last: str
    titles: tuple[str, ...]


def fleet_page(runs: Sequence[Story], inventory: str, plans: Mapping[str, Plan]) -> str:
    """Return the page.

    Args:
        runs: of the journal, in the order in which they began.
        inventory: its file.
        plans: by run, what it carried out, where that is kept: it has the titles of changes.
    """
    rows = [row_of(story) for story in runs]
    span = f"{rows[0].begun[:10]} to {rows[-1].begun[:10]}" if rows else ""
    verdicts = [row for row in rows if row.proof]
    last = f"last {verdicts[-1].proof}" if verdicts else "never verified"
    sheet = Sheet(
        Path(inventory).name,
        f"{counted(len(rows), 'run')}, {last}",
        verdicts[-1].kind_look if verdicts else "part",
        rows=(("inventory", inventory), *((("runs", span),) if span else ())),
    )
    return render_page(
        "fleet.html",
        sheet=sheet,
        kinds=KINDS,
        months=months(rows),
        returning=returning(runs, plans),
        runs=rows[::-1],
    )


def row_of(story: Story) -> RunRow:
    """Return a run in a row."""
    made = sum(map(len, _made(story).values()))
    ended = f"exit {story.exit_code}" if story.exit_code is not None else "not ended"
    end = own_end(story) or ended
    kind = _kind(story, made)
    hosts = dict.fromkeys((*story.planned, *story.hosts))
    return RunRow(
        story.run,
        _minute(story.time),
        story.mode,
        story.count,
        made,
        folded(hosts, NAMES) if hosts else "",
        end,
        kind.outcome if kind in (PROVED, PART, RED) else "",
        kind,
        story.by,
    )


def _minute(time: str) -> str:
    """Return a time of the journal without its seconds."""
    return time[:16].replace("T", " ")


def _kind(story: Story, made: int) -> SquareKind:
    if story.proved is not None:
        # Hosts that could not be reached, say, are not in it.
        return RED if not story.proved else PROVED if story.exit_code in (0, None) else PART
    if own_end(story):
        return LOOKED
    if story.exit_code is None:
        return CUT_OFF
    if story.exit_code not in (0, 10):
        return FAILED
    return UNPROVED if made else LOOKED


def months(rows: Iterable[RunRow]) -> tuple[Month, ...]:
    """Return the months with runs, the last one first."""
    groups = groupby(rows, key=lambda row: row.begun[:7])
    return tuple(Month(name, tuple(runs)) for name, runs in groups)[::-1]


def repairs(runs: Iterable[Story]) -> tuple[Story, ...]:
    """Return the runs that changed hosts, but for those that took changes back."""
    return tuple(story for story in runs if story.mode == "apply" and _made(story))


def _made(story: Story) -> dict[str, list[str]]:
    """Return the ids of the changes that a run made, by host."""
    made = {
        host: [change for change, status in ends.items() if status == "done"]
        for host, ends in story.results.items()
    }
    return {host: changes for host, changes in made.items() if changes}


def returning(runs: Iterable[Story], plans: Mapping[str, Plan]) -> tuple[Returning, ...]:
    """Return the hosts that were changed by more than one apply, the most frequent first.

    Args:
        runs: in the order in which they began.
        plans: by run, where it is kept.
    """
    times: dict[str, list[str]] = defaultdict(list)
    made: dict[str, Counter[str]] = defaultdict(Counter)
    for story in repairs(runs):
        titles = _titles(plans.get(story.run))
        for host, changes in _made(story).items():
            times[host].append(_minute(story.time))
            made[host].update({titles.get((host, change), change) for change in changes})
    parts = []
    for host, begun in times.items():
        if len(begun) > 1:
            again = tuple(sorted(title for title, count in made[host].items() if count > 1))
            row = Returning(host, len(begun), begun[-1], again)
            parts.append(Specimen(row, host, (row.times, row.last, len(again)), again))
    words = folding.own_words(times, {})
    rows = (_row(group, words) for group in folding.alike(parts, words))
    return tuple(sorted(rows, key=lambda row: (-row.times, row.hosts)))


def _row(group: Fold[Returning], words: Words) -> Returning:
    """Return the row of hosts that came back for the same, but for their own names."""
    places = range(len(group.items[0].titles))
    titles = tuple(folding.folded_text(group, place, words) for place in places)
    return replace(group.items[0], hosts=fold(group.hosts), titles=titles)


def _titles(plan: Plan | None) -> dict[tuple[str, str], str]:
    """Return the titles of a plan's changes by host and id."""
    if plan is None:
        return {}
    return {(change.host, change.id): change.title for change in plan.changes}
