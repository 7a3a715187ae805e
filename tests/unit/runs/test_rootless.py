"""Hosts that were read without root: what sudo said, and what makes the ssh user root there."""

from __future__ import annotations

import pytest

from remedy.runs.probe import ProbeResult
from tests.unit.build import fleet, host_state


@pytest.mark.parametrize(
    ("refusal", "words", "step"),
    [
        ("", "sudo refused or is not there", "with -K"),
        ("sudo: a password is required", "sudo: a password is required", "with -K"),
        ("sudo: sorry, you must have a tty to run sudo", "must have a tty", "!requiretty"),
        ("ops is not in the sudoers file.", "not in the sudoers", "as a user that may"),
        ("sudo: /usr/bin/sudo must be owned by uid 0", "owned by uid 0", "sudo -n true"),
    ],
)
def test_what_sudo_said_leads_to_what_helps(refusal: str, words: str, step: str) -> None:
    state = host_state("gpu01", "10.0.0.1").model_copy(update={"root": False, "refusal": refusal})
    plan = ProbeResult(fleet(state), {}).plan
    finding = next(f for f in plan.findings if f.title.startswith("read without root"))
    assert words in finding.evidence[0]
    assert step in finding.fix
    assert ("-K" in finding.fix) is (not refusal or "password" in refusal)
