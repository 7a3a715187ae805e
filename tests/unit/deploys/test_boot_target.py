"""What systemd starts at the next boot."""

from __future__ import annotations

import pytest

from remedy.deploys._boot_target import DEFAULT
from remedy.probe import File
from tests.unit.deploys.boot_bench import found, host


@pytest.mark.parametrize(
    ("target", "is_named"),
    [
        ("rescue", True),
        ("emergency", True),
        ("poweroff", True),
        ("multi-user", False),
        ("graphical", False),
        ("site", False),
    ],
)
def test_a_target_without_services_is_named(target: str, is_named: bool) -> None:
    where = f"/usr/lib/systemd/system/{target}.target"
    file = File(path=DEFAULT, real_path=where, exists=True, content=b"[Unit]\n")
    state = host()
    findings = found(state.model_copy(update={"files": {**state.files, DEFAULT: file}}))
    assert [f.title for f in findings] == (
        [f"after the next boot, the host comes up in {target}.target, without its services"]
        if is_named
        else []
    )
    for finding in findings:
        assert finding.evidence == (f"{DEFAULT} leads to {where}",)


def test_without_a_file_systemd_has_a_default() -> None:
    state = host()
    absent = File(path=DEFAULT, real_path=DEFAULT, exists=False)
    assert found(state.model_copy(update={"files": {**state.files, DEFAULT: absent}})) == []
