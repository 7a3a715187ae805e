"""ufw: its file of rules, and the rules in force."""

from __future__ import annotations

import shlex

import pytest

from remedy.firewall import iptables, ufw
from remedy.plan import FindingKind, make_plan, promised
from remedy.probe import Firewalls
from remedy.values import Unknown
from tests.unit.build import WHEN, fleet
from tests.unit.firewall.firewall_bench import (
    OPENING,
    UFW_LIVE,
    UFW_RULES,
    file,
    findings,
    fleet_of,
    plan_of,
    several,
    walled,
)


def test_rules_of_ufw_are_tuples_with_the_line_that_ufw_makes_of_them() -> None:
    text = ufw.edit_rules(UFW_RULES, OPENING)
    assert text is not None
    lines = text.decode().splitlines()
    at = lines.index("### RULES ###") + 2
    assert lines[at].startswith(
        "### tuple ### allow tcp 22,29500:29563 0.0.0.0/0 any 10.0.0.2 in comment="
    )
    assert bytes.fromhex(lines[at].rpartition("comment=")[2]).decode() == "remedy"
    assert (
        lines[at + 1]
        == "-A ufw-user-input -p tcp -m multiport --dports 22,29500:29563 -s 10.0.0.2 -j ACCEPT"
    )
    assert lines[at + 3].split()[8] == "10.0.0.4/30"
    assert [x for x in lines if "dport 22 -j" in x] == [
        "-A ufw-user-input -p tcp --dport 22 -j ACCEPT"
    ]
    assert ufw.live_lines(text) == iptables.accepts(ufw.CHAINS["in"], OPENING.incoming)


@pytest.mark.parametrize(
    ("rules", "kind", "words"),
    [
        (Unknown(reason="I/O error"), FindingKind.UNKNOWN, "I/O error"),
        (b"nothing of ufw\n", FindingKind.BLOCKED, "ufw reset"),
    ],
)
def test_a_file_of_ufw_that_cannot_be_used_is_said(
    rules: Unknown | bytes, kind: FindingKind, words: str
) -> None:
    state = walled("a", "10.0.0.1", iptables=UFW_LIVE, ufw=True)
    known = rules if isinstance(rules, Unknown) else file(ufw.RULES, rules)
    state = state.model_copy(update={"files": {**state.files, ufw.RULES: known}})
    plan = plan_of(fleet_of(state, walled("b", "10.0.0.2")))
    assert plan.changes == ()
    (finding,) = [f for f in findings(plan, kind) if ufw.RULES in f.title]
    assert words in f"{finding.evidence} {finding.fix}"


def test_rules_of_the_user_stay_in_force_when_those_of_remedy_change() -> None:
    before = several()
    after = promised(before, plan_of(before))
    live = after.states["ufw"].firewalls
    assert isinstance(live, Firewalls)
    assert isinstance(live.iptables, str)
    rules = [x for x in live.iptables.splitlines() if x.startswith("-A ufw-user-input")]
    assert rules[-1] == "-A ufw-user-input -p tcp -m tcp --dport 22 -j ACCEPT"
    fewer = fleet(*(s for n, s in after.states.items() if n != "leg"))
    (action,) = [
        c.action
        for c in make_plan(fewer, WHEN, only="firewall").for_host("ufw")
        if c.action.kind == "command"
    ]
    restore = shlex.split(action.do)[2]
    assert "--dport 22 -j" not in restore
    assert (restore.count("\n-D "), restore.count("\n-I ")) == (4, 3)
