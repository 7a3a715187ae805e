"""Trying one remedy in many cases."""

from __future__ import annotations

from typing import Any

from remedy.plan import Remedy
from tests.unit.deploys.fleets import single_cases
from tests.unit.plans import settled


def sweep(remedy: Remedy[Any]) -> None:
    """Check a remedy in many cases, of which it must change something in one at least."""
    changes = sum(len(settled(case.fleet(), remedy.name).changes) for case in single_cases(remedy))
    assert changes or remedy.only_reports, (
        f"{remedy.name} never planned a change in any of these cases, so nothing of it was tried: say with "
        f"@{remedy.name}.breaks how a host is broken, or give its settings Field(examples=[...])"
    )
