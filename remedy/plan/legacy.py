"""For the time of the move: remedies that are not on the workbench yet."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from remedy.plan.change import Change, Finding
from remedy.plan.registry import Remedy
from remedy.plan.workbench import FleetBench, Workbench


@dataclass(frozen=True)
class Assessment:
    findings: tuple[Finding, ...] = ()
    changes: tuple[Change, ...] = ()
    blobs: Mapping[str, bytes] | None = None


def old_remedy(
    *,
    name: str,
    title: str,
    text: str | None,
    cures: tuple[str, ...],
    spec: type[Any],
    assess: Callable[..., Assessment],
    order: int = 50,
    assess_fleet: Callable[..., tuple[Finding, ...]] | None = None,
    reads: tuple[str, ...] = (),
    promise: Any = None,
    finds: tuple[str, ...] = (),
) -> Remedy[Any]:
    def decide(bench: Workbench[Any]) -> None:
        result = assess(bench.fleet, bench.host, bench.settings)
        bench.findings += result.findings
        bench.changes += result.changes
        bench.contents.update(result.blobs or {})

    decide.__name__ = name
    decide.__module__ = assess.__module__
    made = Remedy(decide, title, spec, cures=cures, finds=finds, order=order, reads=reads)
    made.text = text or ""
    made.promise = promise

    if assess_fleet is not None:

        @made.fleetwide
        def whole(bench: FleetBench[Any]) -> None:
            bench.findings += assess_fleet(bench.fleet, bench.settings)

    setattr(sys.modules[assess.__module__], name, made)
    return made
