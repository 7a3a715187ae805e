"""What ufw and saved rules come to at boot, as iptables-save would print it."""

from __future__ import annotations

import pytest

from remedy.firewall.boot.iptables import UFW_FILES, UFW_IPV6_FILES, ufw_text, without_counters

FILES = {
    "defaults": 'IPV6=yes\nDEFAULT_INPUT_POLICY="DROP"\nDEFAULT_OUTPUT_POLICY="ACCEPT"\n',
    "before": "*nat\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -j NATTED\nCOMMIT\n*filter\n:mine - [0:0]\n"
    ":ufw-before-input - [0:0]\n# -A mine -j REMARK\n-A mine -j ONE\n-I mine -j NO\nCOMMIT\n",
    "user": "*filter\n:users - [0:0]\n-A users -j TWO\nCOMMIT\n",
    "after": "*filter\n:late - [0:0]\n-A late -j THREE\nCOMMIT\n",
}
HOOKS = ("input", "output", "forward")


def lines(prefix: str = "ufw", defaults: str = FILES["defaults"]) -> list[str]:
    return ufw_text({**FILES, "defaults": defaults}, prefix).splitlines()


def test_a_table_begins_and_ends() -> None:
    found = lines()
    assert (found[0], found[-1]) == ("*filter", "COMMIT")
    assert ufw_text(FILES).endswith("COMMIT\n")


@pytest.mark.parametrize("prefix", ["ufw", "ufw6"])
def test_ufw_makes_its_chains_and_calls_them(prefix: str) -> None:
    found = lines(prefix)
    for hook in HOOKS:
        for part in ("before", "user", "after", "reject"):
            assert found.count(f":{prefix}-{part}-{hook} -") == 1
        calls = [line for line in found if line.startswith(f"-A {hook.upper()} ")]
        assert calls == [
            f"-A {hook.upper()} -j {prefix}-{part}-{hook}" for part in ("before", "after", "reject")
        ]
        assert f"-A {prefix}-before-{hook} -j {prefix}-user-{hook}" in found


def test_the_chains_and_rules_of_each_file_are_there_in_order() -> None:
    found = lines()
    assert [f":{name} -" in found for name in ("mine", "users", "late")] == [True] * 3
    rules = [x for x in found if x.startswith(("-A mine", "-A users", "-A late", "-A ufw-before"))]
    assert rules == [
        "-A mine -j ONE",
        *(f"-A ufw-before-{hook} -j ufw-user-{hook}" for hook in HOOKS),
        "-A users -j TWO",
        "-A late -j THREE",
    ]
    assert not any("PREROUTING" in x or "REMARK" in x or "-I" in x for x in found)
    assert all(found.index(x) > found.index(":late -") for x in rules)


@pytest.mark.parametrize(
    ("defaults", "policies"),
    [
        ("", ("DROP", "ACCEPT", "DROP")),
        ("DEFAULT_INPUT_POLICY=ACCEPT\n", ("ACCEPT", "ACCEPT", "DROP")),
        (' DEFAULT_FORWARD_POLICY = "ACCEPT" \n', ("DROP", "ACCEPT", "ACCEPT")),
        ("DEFAULT_OUTPUT_POLICY=DROP\n", ("DROP", "DROP", "DROP")),
        ("DEFAULT_OUTPUT_POLICY=REJECT\n", ("DROP", "DROP", "DROP")),
        ("# DEFAULT_INPUT_POLICY=ACCEPT\n", ("DROP", "ACCEPT", "DROP")),
    ],
)
def test_policies_are_those_of_the_defaults(defaults: str, policies: tuple[str, ...]) -> None:
    found = lines(defaults=defaults)
    assert [f":{h.upper()} {p}" in found for h, p in zip(HOOKS, policies, strict=True)] == [
        True
    ] * 3


@pytest.mark.parametrize("hook", HOOKS)
def test_a_policy_that_rejects_is_a_rule_of_its_own(hook: str) -> None:
    rule = f"-A ufw-reject-{hook} -j REJECT"
    assert rule in lines(defaults=f"DEFAULT_{hook.upper()}_POLICY=REJECT\n")
    assert rule not in lines(defaults=f"DEFAULT_{hook.upper()}_POLICY=DROP\n")


@pytest.mark.parametrize(
    ("setting", "is_closed"),
    [("IPV6=yes", False), ('IPV6="YES"', False), ("IPV6=no", True), ("# IPV6=yes", True)],
)
def test_ipv6_is_closed_where_ufw_leaves_it_alone(setting: str, is_closed: bool) -> None:
    found = lines("ufw6", f"{setting}\n")
    assert (":ufw6-before-input -" not in found) is is_closed
    if is_closed:
        assert found[0] == "*filter"
        assert found[-1] == "COMMIT"
        assert [f":{hook.upper()} DROP" in found for hook in HOOKS] == [True] * 3
        assert [x for x in found if x.startswith("-A")] == [
            "-A INPUT -i lo -j ACCEPT",
            "-A OUTPUT -o lo -j ACCEPT",
        ]
    assert ":ufw-before-input -" in lines("ufw", f"{setting}\n")


def test_the_files_of_ufw() -> None:
    assert UFW_FILES == {
        "before": "/etc/ufw/before.rules",
        "user": "/etc/ufw/user.rules",
        "after": "/etc/ufw/after.rules",
        "defaults": "/etc/default/ufw",
    }
    assert UFW_IPV6_FILES["user"] == "/etc/ufw/user6.rules"
    assert UFW_IPV6_FILES["defaults"] == UFW_FILES["defaults"]


def test_counters_and_remarks_are_taken_out() -> None:
    text = "# by iptables-save\n*filter\n:INPUT DROP [10:600]\n\n[5:300] -A INPUT -j ACCEPT  \nCOMMIT\n"
    assert without_counters(text) == "*filter\n:INPUT DROP\n-A INPUT -j ACCEPT\nCOMMIT\n"
