"""Plans that look right and break a proved fleet stop at their first wave, which is as it was before."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from remedy.audit.agreement import Agreement
from remedy.runs.apply import apply
from remedy.runs.gate import Proposal
from remedy.runs.outcome import HostStatus
from remedy.runs.probe import probe
from remedy.runs.session import open_session
from tests.lab.bad_plans import BAD_PLANS, BadPlan, plan_of
from tests.lab.conftest import Cluster
from tests.lab.site import Site

pytestmark = pytest.mark.lab

USUAL = ("rule-too-narrow",)
# All that these plans touch, and what is near to it: bytes and owners of files, rules, routes, links, mounts.
STATE = (
    "find /etc -xdev -type f -exec sha256sum {} + | sort -k2;"
    " find /etc -xdev -printf '%p %m %u %g %l\\n' | sort;"
    " nft -s list ruleset; ip -4 route show table all; ip rule show; ip neigh show nud permanent;"
    " ip xfrm policy;"
    " ip -o link show | sed 's/ qlen.*//'; findmnt -rn -o TARGET,FSTYPE,OPTIONS /tmp; uname -n"
)


@pytest.fixture(scope="module")
def proved(module_cluster: Cluster, request: pytest.FixtureRequest) -> Site:
    """A fleet with a proof that holds, by torch where all plans are tried."""
    site = Site(module_cluster)
    spec = "deadline: 90, isolate: false"
    if not request.config.getoption("full"):
        site.run_on_stub()
        spec += ", sizes: [8]"
    elif module_cluster.lab.record().python is None:
        pytest.skip("no torch for the hosts")
    (site.folder / "remedy.yaml").write_text(f"verify: {{{spec}}}\n")
    applied = site.remedy("apply", "--yes", seconds=300)
    assert applied.code == 0, applied.text
    return site


def states(site: Site) -> dict[str, str]:
    cluster = site.cluster
    return {host: cluster.host(host).must(["sh", "-c", STATE]) for host in cluster.hosts}


def cases() -> Iterator[object]:
    for bad in BAD_PLANS:
        yield pytest.param(bad, marks=() if bad.name in USUAL else pytest.mark.full, id=bad.name)


@pytest.mark.parametrize("bad", list(cases()))
def test_a_bad_plan_stops_at_its_first_wave(proved: Site, bad: BadPlan) -> None:
    before = states(proved)
    session = open_session(proved.inventory, settings={"apply": {"waves": bad.waves}})
    read = probe(session)
    record = proved.cluster.lab.record()
    interfaces = {host.name: host.cluster_interface for host in record.hosts}
    plan = plan_of(session.inventory, interfaces, bad)
    proposal = Proposal("apply", Agreement(plan), plan, read)
    outcome = apply(session, proposal, consent=lambda _: None, prove=True)
    after = states(proved)
    first = proved.cluster.hosts[: int(bad.waves[0])]
    assert outcome.exit_code in (1, 3), outcome.waves
    assert any("NOT PROVED" in line for line in outcome.waves), outcome.waves
    assert after == before
    for name in proved.cluster.hosts:
        status = outcome.hosts[name].status
        assert status is (HostStatus.FAILED if name in first else HostStatus.NOT_REACHED), name
        ran = (
            proved.cluster.run(name, f"test -d /var/lib/remedy/runs/{outcome.run}").returncode == 0
        )
        assert ran is (name in first), "a host outside of the wave was touched"
    story = session.story(outcome.run)
    assert story.red["as_before"] == first, story.red
    assert story.red["not_as_before"] == {}
    assert story.red["suspects"][0]["host"] in first
    assert story.red["suspects"][0]["title"] == bad.name
    assert story.red["proved_again"] is True, outcome.waves
    shown = proved.show(outcome.run).stdout
    assert "suspected" in shown
    assert f"({bad.name})" in shown


def test_there_are_twenty_of_them_and_some_more() -> None:
    assert len({bad.name for bad in BAD_PLANS}) == len(BAD_PLANS) >= 20
