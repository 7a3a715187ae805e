"""The resolver: the order that it asks in, and how long it takes."""

from __future__ import annotations

import pytest

from remedy.deploys.resolver import ResolverSpec
from remedy.plan import FindingKind, make_plan
from remedy.probe import File, Names
from tests.unit.build import WHEN, record
from tests.unit.deploys.report_bench import finding_of, findings_of, hosts, says


@pytest.mark.parametrize(
    ("order", "wrong"),
    [
        ("files dns", False),
        ("dns files", True),
        ("dns", True),
        ("mymachines resolve [!UNAVAIL=return] files myhostname dns", False),
        ("myhostname [NOTFOUND=return] dns files", True),
        ("", False),
        ("files", False),
    ],
)
def test_the_order_of_the_resolver(order: str, wrong: bool) -> None:
    names = record(Names, order=tuple(order.split()))
    assert bool(findings_of("resolver", hosts({"names": names}))) is wrong


def test_a_dead_name_server_is_told_by_the_time_it_took() -> None:
    names = record(Names, servers=("192.0.2.53",), peers={"gpu01": ("10.0.0.1",)})
    slow = {"names": names, "costs": {"names": 9.5}}
    finding = finding_of("resolver", hosts(slow, {"names": names, "costs": {"names": 0.4}}))
    assert finding.host == "gpu01"
    assert finding.evidence[0] == "2 names took 9.5 s, 1 of them were not asked in time"


def test_the_order_of_services_is_shown() -> None:
    names = record(Names, order=("dns", "[!UNAVAIL=return]", "files"))
    finding = finding_of("resolver", hosts({"names": names}))
    says(
        finding,
        title=("DNS",),
        evidence=("/etc/nsswitch.conf: hosts: dns [!UNAVAIL=return] files",),
        fix=("files", "dns"),
    )
    assert finding.label == "hostname-unresolvable"
    for service in ("files", "resolve", "db"):
        assert (
            findings_of("resolver", hosts({"names": record(Names, order=(service, "dns"))})) == []
        )
    bracketed = record(Names, order=("[files]", "dns"))
    assert findings_of("resolver", hosts({"names": bracketed}))


@pytest.mark.parametrize(("seconds", "named"), [(2.0, True), (1.9, False)])
def test_a_slow_resolver_is_named_with_its_servers(seconds: float, named: bool) -> None:
    names = record(Names, servers=("192.0.2.53", "192.0.2.54"), peers={"gpu01": ("10.0.0.1",)})
    found = findings_of(
        "resolver",
        hosts({"names": names, "costs": {"names": seconds}}),
        ResolverSpec(slow_seconds=2.0),
    )
    assert bool(found) is named
    if named:
        says(
            found[0],
            evidence=("1 name took 2.0 s", "nameserver 192.0.2.53, nameserver 192.0.2.54"),
            fix=("getent",),
        )
    without = record(Names, servers=())
    assert findings_of("resolver", hosts({"names": without, "costs": {"names": 9.0}})) == []


def with_files(**files: tuple[str, int]) -> dict[str, object]:
    """Return the files of a host: by the end of their paths, content and mode."""
    return {
        "names": record(Names),
        "files": {
            path: File(path=path, real_path=path, exists=True, content=text.encode(), mode=mode)
            for path, (text, mode) in ((f"/etc{end}", of) for end, of in files.items())
        },
    }


@pytest.mark.parametrize(
    ("mode", "is_named"), [(0o700, True), (0o750, True), (0o751, True), (0o755, False)]
)
def test_a_closed_etc_is_named_for_those_who_are_not_root(mode: int, *, is_named: bool) -> None:
    found = findings_of("resolver", hosts(with_files(**{"": ("", mode)}), with_files()))
    assert [finding.fix for finding in found] == (
        ["Let everybody in: chmod 755 /etc"] if is_named else []
    )


def test_a_gai_conf_of_root_alone_is_opened() -> None:
    closed = with_files(**{"/gai.conf": ("", 0o600)})
    (change,) = make_plan(hosts(closed, with_files()), WHEN, only="resolver").changes
    assert "/etc/gai.conf has mode 0600" in change.reason


ORDER = "# precedence ::1/128 50\nprecedence ::ffff:0:0/96 10 # IPv4 last\n"


def test_lines_that_reorder_families_are_named_where_they_matter() -> None:
    one, other = with_files(**{"/gai.conf": (ORDER, 0o644)}), with_files()
    finding = finding_of("resolver", hosts(one, other))
    assert finding.kind is FindingKind.REPORT
    assert finding.evidence == ("/etc/gai.conf:2: precedence ::ffff:0:0/96 10",)
    assert findings_of("resolver", hosts(one, one)) == []
    one["names"] = record(Names, peers={"gpu01": ("fd00::1", "10.0.0.1")})
    (blocked,) = (f for f in findings_of("resolver", hosts(one, one)) if f.host == "gpu01")
    assert blocked.kind is FindingKind.BLOCKED
