"""Diagnosing logs: each is read once, then all are judged together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from remedy.diagnose.course.dumps import of_no_text, scan_dump
from remedy.diagnose.diagnosis import Diagnosis
from remedy.diagnose.judgement.decide import decide
from remedy.diagnose.scanner.log_scan import LogScan
from remedy.diagnose.scanner.parts import parts_of
from remedy.diagnose.scanner.reader import Source, blocks_of, from_text, is_binary, sources
from remedy.diagnose.scanner.scan import index, scan
from remedy.diagnose.states.recorder import is_dump


def diagnose_paths(
    paths: Iterable[Path | str],
    *,
    progress: Callable[[Source, int], None] | None = None,
    without: frozenset[str] = frozenset(),
) -> Diagnosis:
    """Diagnose the logs of one run.

    Args:
        paths: files, folders of files, or "-" for standard input.
        progress: is called with how many bytes of a log have been read.
        without: families of the catalogue that are left out, for measuring.

    Raises:
        UsageError: a path does not exist.
    """
    return diagnose_sources(sources(paths), progress=progress, without=without)


def diagnose_sources(
    logs: Iterable[Source],
    *,
    progress: Callable[[Source, int], None] | None = None,
    without: frozenset[str] = frozenset(),
) -> Diagnosis:
    """Diagnose logs that are opened already; see ``diagnose_paths``."""
    return decide(scans_of(logs, progress=progress, without=without))


def scans_of(
    logs: Iterable[Source],
    *,
    progress: Callable[[Source, int], None] | None = None,
    without: frozenset[str] = frozenset(),
) -> list[LogScan]:
    """Return what each of the logs holds, apart from what it means; see ``diagnose_paths``."""
    prepared = index(without)
    scans: list[LogScan] = []
    for source in logs:
        if progress is not None:
            source.progress = partial(progress, source)
        first, blocks = blocks_of(source)
        if is_dump(first):
            scans.append(scan_dump(source.name, blocks))
        elif is_binary(first):
            scans.append(of_no_text(source.name, len(first)))
        else:
            parts, blocks = parts_of(source, first, blocks)
            scans += [scan(part, prepared) for part in parts] or [scan(source, prepared, blocks)]
    return scans


def diagnose_lines(lines_by_source: Mapping[str, Iterable[str]]) -> Diagnosis:
    """Diagnose logs that are in memory, such as those of a failed verification. Pure.

    Args:
        lines_by_source: the lines by the name of what printed them (a host, a rank).
    """
    return diagnose_sources(
        from_text(name, "\n".join(lines).encode("utf-8", "replace"))
        for name, lines in lines_by_source.items()
    )
