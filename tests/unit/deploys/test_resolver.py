"""The resolver: the order that it asks in, and how long it takes."""

from __future__ import annotations

import pytest

from remedy.deploys.resolver import ResolverSpec
from remedy.probe import Names
from tests.unit.build import record
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
