"""What ``latest`` means in place of a run's id."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from remedy.audit.story import Story
from remedy.errors import UsageError
from remedy.files import full_path

LATEST = "latest"
NOT_MADE = frozenset({"already", "stale", "skipped"})
"""How changes end that were not made."""
ANY = "List the runs: remedy history INVENTORY"
FIRST = "The journal has no run yet. Begin with: remedy check INVENTORY"
ELSEWHERE = (
    "Runs are kept beside their inventory. From a different folder: remedy show latest --home FOLDER/.remedy. "
    "A first run: remedy check INVENTORY"
)


def latest(
    stories: Iterable[Story],
    what: str,
    fits: Callable[[Story], bool],
    home: Path,
    first: str = FIRST,
) -> Story:
    """Return the newest run that fits.

    Args:
        stories: in the order in which the runs began.
        what: the noun for such runs, for the message.
        fits: whether a run is one of them.
        home: the folder of the journal that has them, for the message.
        first: what to do where there is no run at all.

    Raises:
        UsageError: no run does.
    """
    every = list(stories)
    known = [story for story in every if fits(story)]
    if not known:
        raise UsageError(
            f"{LATEST}: {what} is on record in {full_path(home)}", next_step=ANY if every else first
        )
    return known[-1]


def _may_have_changed(story: Story) -> bool:
    """Say whether a run made a change, or may have made one; what was as planned already is none."""
    known = {host: set(results.values()) for host, results in story.results.items()}
    known |= {host: set() for host in story.refused if host not in known}
    return any(host not in known or not known[host] <= NOT_MADE for host in story.began)


def to_take_back(stories: Iterable[Story], home: Path) -> Story:
    """Return the newest apply that changed a host, or may have.

    Raises:
        UsageError: there is none, or it was taken back already as a whole; further back goes who names a run.
    """
    known = list(stories)
    story = latest(
        known,
        "no apply that changed hosts",
        lambda s: s.mode == "apply" and _may_have_changed(s),
        home,
    )
    back = [
        s
        for s in known
        if s.mode == "rollback" and s.of == story.run and s.began and not (s.only or s.skip)
    ]
    if back:
        raise UsageError(
            f"{LATEST}: run {story.run} was taken back already, by run {back[-1].run}",
            next_step=f"Take that back: remedy rollback {back[-1].run} INVENTORY. Or name an earlier run.",
        )
    return story


def to_resume(stories: Iterable[Story], home: Path) -> Story:
    """Return the newest apply.

    Raises:
        UsageError: there is none.
    """
    fits = lambda s: s.mode == "apply" and bool(s.planned)  # noqa: E731
    return latest(stories, "no apply with changes", fits, home)


def to_unlock(stories: Iterable[Story], home: Path) -> Story:
    """Return the newest run that may hold locks: one that came to a host to change it.

    Raises:
        UsageError: there is none.
    """
    locking = ("apply", "rollback")
    fits = lambda s: s.mode in locking and bool(s.began)  # noqa: E731
    return latest(stories, "no run that locks hosts", fits, home)
