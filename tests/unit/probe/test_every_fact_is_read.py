"""What the probe reads is for somebody: a fact that nothing reads costs time on every host."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[3]
PROBE = ROOT / "remedy" / "probe"

# Facts that no remedy judges yet, each with what it is kept for.
KEPT = {
    "Docker.default_runtime": "whether containers start with the GPU runtime",
    "Gpu.compute_mode": "a GPU that only one process may use",
    "Gpu.pci_address": "which GPU is near which network card",
    "Gpu.utilization": "a foreign job on a host that is to be proved",
    "Identity.hardware": "settings and firmware by model",
    "Kernel.numa_nodes": "which GPU is near which network card",
    "Kernel.transparent_hugepages": "a setting that should be equal on all hosts",
    "RdmaPort.counters": "errors of a port while a verification runs",
    "RdmaPort.firmware": "firmware that differs between hosts",
}
# Read in the probe itself: to parse other facts, by the methods of the record, or for the fingerprint.
INTERNAL = {
    "Clock.uptime": "when a process was started",
    "File.gid": "the fingerprint",
    "NftRule.handle": "told apart from what the fingerprint counts",
    "NftRuleset.tables": "the fingerprint",
    "Sysctls.excluded": "Sysctls.winner",
    "LoginSession.programs": "LoginSession.has",
    "Software.packages": "Software.versions",
    "ProbeRequest.heads_of": "the script",
    "ProbeRequest.name_seconds": "the script",
    "ProbeRequest.tool_seconds": "the script",
}


@cache
def fields() -> set[str]:
    """Return every field of the probe's records, as ``Class.field``."""
    found = set()
    for path in PROBE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            # What is private is read where it is made.
            if (
                isinstance(node, ast.ClassDef)
                and not node.name.startswith("_")
                and any(
                    isinstance(base, ast.Name) and base.id in ("Record", "NamedTuple")
                    for base in node.bases
                )
            ):
                found |= {
                    f"{node.name}.{item.target.id}"
                    for item in node.body
                    if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
                }
    return found


@cache
def names_read() -> set[str]:
    """Return every attribute, and every name handed to getattr, in the product outside the probe."""
    names = set()
    for folder in ("remedy", "deploys"):
        for path in (ROOT / folder).rglob("*.py"):
            if PROBE in path.parents:
                continue
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Attribute):
                    names.add(node.attr)
                elif isinstance(node, ast.Constant) and node.value in ("soft", "hard"):
                    names.add(node.value)  # limits.py takes a Limit by the name of its part
    return names


def test_a_fact_is_read_or_kept_for_a_reason() -> None:
    """By name: a field that shares its name with another one passes unseen."""
    names = names_read()
    unread = {field for field in fields() if field.partition(".")[2] not in names}
    assert unread == (KEPT.keys() | INTERNAL.keys()) & unread, "nobody reads these: delete them"


def test_the_list_of_exceptions_is_not_stale() -> None:
    names = names_read()
    for field in KEPT.keys() | INTERNAL.keys():
        assert field in fields(), field
        assert field.partition(".")[2] not in names, f"{field} is read now"
