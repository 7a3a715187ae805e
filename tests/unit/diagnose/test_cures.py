"""Which remedy ends a cause is known without importing any, and as the remedies themselves say it."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from remedy import installed
from remedy.diagnose import cures
from remedy.diagnose.cures import cause_of, curing, own_cures, remedy_for
from remedy.plan import all_causes, remedies

LINE = "NCCL WARN socketStartConnect: Connect to 10.0.0.9<41235> failed : No route to host"
LOADED = """
import json, sys
from remedy.cli.main import main
try:
    main(sys.argv[1:])
finally:
    names = [name for name in sys.modules if name.startswith(("remedy.deploys", "remedy.probe", "remedy.plan"))]
    print(json.dumps(names), file=sys.stderr)
"""


def line_of(name: str, remedy: cures.Cures) -> str:
    """Return the line of the table that a remedy has."""
    rows = {"cures": remedy.cures, "finds": remedy.finds}
    causes = ", ".join(f"{key}: [{', '.join(row)}]" for key, row in rows.items() if row)
    return f"{name}: {{{causes}}}"


def test_the_table_has_what_the_remedies_say() -> None:
    there = [line_of(name, remedy) for name, remedy in own_cures().items()]
    wanted = [line_of(r.name, cures.Cures(r.cures, r.finds)) for r in remedies()]
    missing, extra = sorted(set(wanted) - set(there)), sorted(set(there) - set(wanted))
    assert not missing, f"write into remedy/diagnose/cures.yaml: {'; '.join(missing)}"
    assert not extra, f"no remedy is so, take out of remedy/diagnose/cures.yaml: {'; '.join(extra)}"
    assert there == wanted, (
        "the lines of remedy/diagnose/cures.yaml follow the order of the remedies"
    )


@pytest.mark.parametrize("line", [LINE, "ValueError: the loss is no number", "step 1 loss 0.1"])
def test_a_log_is_explained_without_a_remedy(tmp_path: Path, line: str) -> None:
    log = tmp_path / "train.log"
    log.write_text(f"{line}\n")
    ended = subprocess.run(
        [sys.executable, "-c", LOADED, "diagnose", str(log)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode in (0, 1, 3)
    assert json.loads(ended.stderr) == []
    assert ended.stdout


@pytest.mark.parametrize("label", sorted(all_causes()))
def test_every_cause_is_there_by_its_label(label: str) -> None:
    assert cause_of(label) == all_causes()[label]


def test_a_remedy_of_others_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry point stands for one that a package has; what it names is not asked for its causes here."""
    assert curing("firewall-ports") == ["port_range", "firewall", "paddle", "environment"]
    point = EntryPoint("theirs", "theirs.module", installed.REMEDIES)
    monkeypatch.setattr(
        cures, "points", lambda *, group: (point,) if group == installed.REMEDIES else ()
    )
    monkeypatch.setattr("remedy.plan.remedies", lambda: ())
    assert curing("firewall-ports") == []
    assert remedy_for("firewall-ports") is None
