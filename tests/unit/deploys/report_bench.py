"""Fleets whose hosts differ in a few facts, and what a remedy that only reports finds in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from remedy.plan import Finding, Fleet, make_plan
from remedy.probe import Gpu, Gpus, Package, PciDevice, Software
from remedy.spec import SpecSection
from remedy.values import Unknown
from tests.unit.build import WHEN, fleet, host_state, record, with_section

LATE = Unknown(reason="it did not answer in time")
SITE = "/opt/venv/lib/python3.11/site-packages"


def hosts(*facts: Mapping[str, Any]) -> Fleet:
    """Return a fleet of hosts that differ in these facts."""
    return fleet(
        *(
            host_state(f"gpu{n:02d}", f"10.0.0.{n}").model_copy(update=dict(own))
            for n, own in enumerate(facts, 1)
        )
    )


def findings_of(remedy: str, these: Fleet, spec: SpecSection | None = None) -> list[Finding]:
    """Return what one remedy finds; it never has changes."""
    if spec is not None:
        these = Fleet(these.inventory, these.states, with_section(remedy, spec), these.missing)
    plan = make_plan(these, WHEN, only=remedy)
    assert plan.changes == ()
    return list(plan.findings)


def finding_of(remedy: str, these: Fleet, spec: SpecSection | None = None) -> Finding:
    """Return the only thing that one remedy finds."""
    (finding,) = findings_of(remedy, these, spec)
    return finding


def says(
    finding: Finding,
    *,
    title: tuple[str, ...] = (),
    evidence: tuple[str, ...] = (),
    fix: tuple[str, ...] = (),
) -> None:
    """Check that a finding names these facts, each where it belongs."""
    for facts, text in (
        (title, finding.title),
        (evidence, "\n".join(finding.evidence)),
        (fix, finding.fix),
    ):
        for fact in facts:
            assert fact in text, (fact, text)


def software(**versions: str) -> dict[str, Software]:
    packages = tuple(Package(name, version, SITE) for name, version in versions.items())
    return {"software": record(Software, packages=packages)}


def gpus(count: int = 2, *, driver: str = "580.65.06", **given: Any) -> dict[str, Gpus]:
    pci = tuple(PciDevice(f"0000:0{n}:00.0", "10de", "2330", "0302") for n in range(count))
    listed = tuple(
        Gpu(n, f"GPU-{n}", f"0000:0{n}:00.0", "H100", driver, True, "Default", 81559, 4, 0)
        for n in range(count)
    )
    facts: dict[str, Any] = {
        "pci": pci,
        "driver": driver,
        "devices": listed,
        "processes": (),
        "acs": {},
        "links": {},
    }
    facts |= given
    return {"gpus": Gpus(**facts)}
