"""What launchers need: sessions that sshd takes, and hosts that are not behind a proxy."""

from __future__ import annotations

from typing import Any

import pytest

from remedy.deploys.launching import LaunchingSpec, through_proxy
from remedy.probe import Mention
from tests.unit.deploys.report_bench import LATE, finding_of, findings_of, hosts, says

SSHD = "/etc/ssh/sshd_config"
INCLUDE = (SSHD, 12, "Include /etc/ssh/sshd_config.d/*.conf")


def mentions(*lines: tuple[str, int, str]) -> dict[str, Any]:
    return {"mentions": tuple(Mention(path=p, line=n, text=t) for p, n, t in lines)}


@pytest.mark.parametrize(
    ("lines", "fan_out", "start"),
    [
        ((), 10, None),
        ((), 64, "default 10:30:100"),
        ((INCLUDE, (SSHD, 40, "MaxStartups 3:50:10")), 10, f"{SSHD} line 40: MaxStartups 3:50:10"),
        (
            (INCLUDE, (f"{SSHD}.d/a.conf", 1, "maxstartups 100"), (SSHD, 40, "MaxStartups 3")),
            64,
            None,
        ),
        (
            ((SSHD, 2, "MaxStartups=4"), INCLUDE, (f"{SSHD}.d/a.conf", 1, "MaxStartups 100")),
            10,
            f"{SSHD} line 2: MaxStartups=4",
        ),
    ],
)
def test_sshd_takes_as_many_sessions_as_the_launcher_opens(
    lines: tuple[tuple[str, int, str], ...], fan_out: int, start: str | None
) -> None:
    found = findings_of("launching", hosts(mentions(*lines)), LaunchingSpec(fan_out=fan_out))
    assert [line for f in found for line in f.evidence] == ([start] if start else [])


@pytest.mark.parametrize(
    ("no_proxy", "proxied"),
    [
        ("", ("a", "b")),
        ("localhost,10.0.0.1", ("b",)),
        ("10.0.0.0/24", ()),
        (" * ", ()),
        (".example.org", ("a", "b")),
    ],
)
def test_which_hosts_are_behind_the_proxy(no_proxy: str, proxied: tuple[str, ...]) -> None:
    assert through_proxy(no_proxy, {"a": "10.0.0.1", "b": "10.0.0.2", "c": None}) == proxied


def test_a_proxy_without_exceptions_is_told() -> None:
    finding = finding_of("launching", hosts({"environment": {"HTTP_PROXY": "http://proxy:3128"}}))
    assert finding.evidence[:2] == ("HTTP_PROXY=http://proxy:3128", "no_proxy=")
    assert (
        findings_of("launching", hosts({"environment": {"HTTP_PROXY": "", "no_proxy": ""}})) == []
    )


def test_an_sshd_that_drops_connections_is_named_with_the_numbers() -> None:
    finding = finding_of(
        "launching", hosts(mentions((SSHD, 7, " MaxStartups 3:50:10 "))), LaunchingSpec(fan_out=9)
    )
    assert finding.label == "ssh-launch-failure"
    says(
        finding,
        title=("once 3 are", "and 9 may"), evidence=(f"{SSHD} line 7: MaxStartups 3:50:10",),
        fix=("MaxStartups 18:30:90", SSHD),
    )  # fmt: skip
    assert findings_of("launching", hosts({"mentions": LATE}), LaunchingSpec(fan_out=64)) == []


@pytest.mark.parametrize(
    ("lines", "start"),
    [
        (((SSHD, 2, "MaxStartups none"), (SSHD, 3, "MaxStartups 4")), 4),
        (((SSHD, 3, "MaxStartups 4"), (SSHD, 2, "MaxStartups 5")), 5),
        (((SSHD, 1, f"include {SSHD}.d/*.conf"), (f"{SSHD}.d/b.conf", 1, "MaxStartups 6"),
          (f"{SSHD}.d/a.conf", 9, "MaxStartups 7")), 7),
        (((SSHD, 1, "Include /elsewhere/*.conf"), (f"{SSHD}.d/b.conf", 1, "MaxStartups 6")), None),
        (((SSHD, 1, 'MaxStartups "8"'),), 8),
        ((("/etc/other", 1, "MaxStartups 2"),), None),
        (((SSHD, 1, "Port 22"), (SSHD, 2, "maxstartups=9:1:1")), 9),
    ],
)  # fmt: skip
def test_the_first_line_that_says_a_number_decides(
    lines: tuple[tuple[str, int, str], ...], start: int | None
) -> None:
    found = findings_of("launching", hosts(mentions(*lines)), LaunchingSpec(fan_out=10))
    assert [f"once {start} are" in finding.title for finding in found] == (
        [] if start is None else [True]
    )


def test_a_proxy_is_named_with_the_hosts_behind_it() -> None:
    proxy = {
        "environment": {"https_proxy": "http://p:1", "GRPC_PROXY": "q", "No_Proxy": "10.0.0.2,name"}
    }
    finding = finding_of("launching", hosts(proxy, {}, {}))
    assert (finding.label, finding.host) == ("env-not-propagated", "gpu01")
    says(
        finding,
        title=("2 hosts",),
        evidence=("https_proxy=http://p:1", "GRPC_PROXY=q", "No_Proxy=10.0.0.2,name", "gpu[01,03]"),
        fix=("no_proxy",),
    )
    for name in ("http_proxy", "https_proxy", "all_proxy", "grpc_proxy"):
        assert findings_of("launching", hosts({"environment": {name: "x"}}))
    assert findings_of("launching", hosts({"environment": {"ftp_proxy": "x"}})) == []
    assert through_proxy("10.0.0.0/31, ,x", {"a": "10.0.0.1", "b": "10.0.0.2"}) == ("b",)
