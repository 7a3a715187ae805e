"""Diagnosing: read every log once, then decide."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from remedy.diagnose.diagnosis import Diagnosis
from remedy.diagnose.judge import judge
from remedy.diagnose.reader import Source, from_text, sources
from remedy.diagnose.scan import index, scan


def diagnose_paths(
    paths: Iterable[Path | str],
    *,
    told: Callable[[Source, int], None] | None = None,
    without: frozenset[str] = frozenset(),
) -> Diagnosis:
    """Diagnose the logs of one run.

    Args:
        paths: files, folders of files, or "-" for standard input.
        told: is called with how many bytes of a log have been read.
        without: families of the catalogue that are left out, for measuring.

    Raises:
        UsageError: a path is not there.
    """
    return diagnose_sources(sources(paths), told=told, without=without)


def diagnose_sources(
    logs: Iterable[Source],
    *,
    told: Callable[[Source, int], None] | None = None,
    without: frozenset[str] = frozenset(),
) -> Diagnosis:
    """Diagnose logs that are opened already; see ``diagnose_paths``."""
    ready = index(without)
    scanned = []
    for source in logs:
        if told is not None:
            source.told = partial(told, source)
        scanned.append(scan(source, ready))
    return judge(scanned)


def diagnose_lines(lines_by_source: Mapping[str, Iterable[str]]) -> Diagnosis:
    """Diagnose logs that are in memory, such as those of a failed verification. Pure.

    Args:
        lines_by_source: the lines by the name of what printed them (a host, a rank).
    """
    return diagnose_sources(
        from_text(name, "\n".join(lines).encode("utf-8", "replace"))
        for name, lines in lines_by_source.items()
    )
