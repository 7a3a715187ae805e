"""The ladder over real hosts: three kinds of faults are named at once, and a hang is found by tests."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests import stub
from tests.lab.conftest import Cluster
from tests.lab.site import Site, wait_for

pytestmark = pytest.mark.lab

# What runs on a host while every pair is tried, and while the all-reduce is under way; for pgrep -f.
KNOCKING, TRAINING = "[p]ython[0-9.]* -I -S -", "[p]ython.* -u .*worker"
GONE = 8.0  # seconds within which everything has to be gone after remedy is
# Stops every worker on a host before it can join: as a hang of its GPU or its driver would.
HANG = "while :; do pkill -STOP -f '[p]ython.* -u .*worker'; sleep 0.1; done"


@dataclass(frozen=True)
class Fleet:
    """How many hosts there are, and what their ranks run: torch, or the stub of tests/stub_torch."""

    count: int = 4
    ranks: str = "torch"


@pytest.fixture
def site(new_cluster: Callable[..., Cluster], request: pytest.FixtureRequest) -> Site:
    """Right hosts: four with torch, or what the test's parameter says."""
    fleet: Fleet = getattr(request, "param", Fleet())
    made = Site(new_cluster(count=fleet.count))
    if fleet.ranks == "stub":
        made.run_on_stub()
        # The stub sums in Python: what larger sums measure is not of interest there.
        (made.folder / "remedy.yaml").write_text("verify: {sizes: [8]}\n", encoding="utf-8")
    elif not made.cluster.lab.record().python:
        pytest.skip("no torch for the hosts: install the extra `torch`, or name an environment")
    assert made.remedy("apply", "--yes", "--no-verify").code == 0
    return made


# How a run ends does not depend on what its ranks sum with: the stub starts in no time (docs/tests.md).
STUB = pytest.param(Fleet(ranks="stub"), id="stub")
TORCH_TOO = pytest.param(Fleet(), id="torch", marks=pytest.mark.full)
on_stub = pytest.mark.parametrize("site", [STUB, TORCH_TOO], indirect=True)


def close(site: Site, host: str, rule: str) -> None:
    site.cluster.host(host).must(
        ["nft", "-f", "-"],
        stdin="table inet test { chain input { type filter hook input priority 0; policy accept;\n"
        f"ct state established,related accept\n{rule} drop\n}}\n}}\n",
    )


@pytest.mark.parametrize("site", [pytest.param(Fleet(5), id="5")], indirect=True)
def test_three_faults_of_three_kinds_are_named_at_once(site: Site) -> None:
    one, two, three, four, five = site.cluster.hosts
    address = site.addresses()
    close(site, two, 'iifname != "lo" tcp dport 32768-60999')
    close(site, three, f"ip saddr {address[four]} tcp dport 1024-65535")
    site.cluster.host(one).must(
        f"sed -i '/[[:space:]]{five}$/d' /etc/hosts && echo 10.9.9.9 {five} >> /etc/hosts"
    )
    answer = site.remedy("verify", "--json", "--html", str(site.folder / "verdict.html"))
    verdict = answer.document["verdict"]
    assert answer.code == 3
    named = {culprit["name"] for culprit in verdict["culprits"]}
    assert {two, f"{four} -> {three}", f"{one} -> {five}"} == named
    outcomes = {link["outcome"] for link in verdict["dead_links"]}
    assert outcomes == {"dropped", "no name"}
    steps = [culprit["next_step"] for culprit in verdict["culprits"]]
    assert all(step.startswith("remedy apply") for step in steps)
    page = (site.folder / "verdict.html").read_text(encoding="utf-8")
    assert '<div class="map">' in page
    assert answer.document["run"] in page


@pytest.mark.full
@on_stub
def test_a_host_that_hangs_is_found_and_the_others_pass(site: Site) -> None:
    victim = site.cluster.hosts[3]
    site.cluster.host(victim).must(["systemd-run", "--unit=hang", "sh", "-c", HANG])
    # A busy machine needs most of the longer one to start torch.
    deadline = 20 if site.cluster.host(victim).run(["test", "-e", stub.ON_HOSTS]).returncode else 10
    spec = site.folder / "short.yaml"
    spec.write_text(f"verify: {{deadline: {deadline}}}\n", encoding="utf-8")
    answer = site.remedy("verify", "--json", "--spec", str(spec), seconds=600)
    verdict = answer.document["verdict"]
    assert answer.code == 3
    assert [culprit["name"] for culprit in verdict["culprits"]] == [victim]
    ends = {one["host"]: one["outcome"] for one in verdict["outcomes"]}
    assert ends == {**dict.fromkeys(site.cluster.hosts, "pass"), victim: "fail"}


@pytest.mark.full
@pytest.mark.parametrize("site", [STUB], indirect=True)
def test_a_host_that_only_starts_slowly_is_not_blamed_beside_one_that_hangs(site: Site) -> None:
    """The others wait seven seconds for it, and ten when it gets its second chance."""
    _, slow, _, victim = site.cluster.hosts
    torch = f"{stub.ON_HOSTS}/torch/__init__.py"
    late = "import os, time; 'RANK' in os.environ and time.sleep(8)"
    site.cluster.host(slow).must(f'echo "{late}" >>{torch}')
    site.cluster.host(victim).must(["systemd-run", "--unit=hang", "sh", "-c", HANG])
    spec = site.folder / "short.yaml"
    spec.write_text("verify: {deadline: 10}\n", encoding="utf-8")
    answer = site.remedy("verify", "--json", "--spec", str(spec), seconds=600)
    verdict = answer.document["verdict"]
    assert [culprit["name"] for culprit in verdict["culprits"]] == [victim], verdict["tests"]
    ends = {one["host"]: one["outcome"] for one in verdict["outcomes"]}
    assert ends == {**dict.fromkeys(site.cluster.hosts, "pass"), victim: "fail"}
    (isolation,) = [rung for rung in verdict["rungs"] if rung["name"] == "isolation"]
    assert f"{slow} started slowly and got more time" in isolation["message"]


@pytest.mark.full
@pytest.mark.parametrize("site", [pytest.param(Fleet(3, ranks="stub"), id="3")], indirect=True)
def test_a_replaced_host_is_tested_with_one_partner_and_then_with_all(site: Site) -> None:
    assert site.remedy("verify").code == 0
    victim = site.cluster.hosts[1]
    site.cluster.replace(victim)
    stub.install(site.cluster.host(victim))
    assert site.remedy("trust", "--replace", victim, "--yes").code == 0
    assert site.remedy("apply", "--yes", "--no-verify").code == 0
    answer = site.remedy("verify", "--incremental", "--json")
    rungs = {rung["name"]: rung for rung in answer.document["verdict"]["rungs"]}
    assert answer.code == 0
    assert rungs["new hosts"]["passed"]
    assert victim in rungs["new hosts"]["message"]
    assert "reachability" not in rungs


@pytest.mark.full
def test_a_slow_host_is_named_with_its_figures(site: Site) -> None:
    victim = site.cluster.hosts[3]
    site.cluster.fault(victim, "slow-link")
    answer = site.remedy("verify", "--json", "--html", str(site.folder / "verdict.html"))
    verdict = answer.document["verdict"]
    assert [one["host"] for one in verdict["slow"]] == [victim], verdict["pace"]
    assert verdict["slow"][0]["share"] < 0.5
    assert victim in verdict["reason"]
    assert "Slow hosts" in (site.folder / "verdict.html").read_text(encoding="utf-8")


def left(site: Site) -> str:
    """Processes, folders and listeners of a verification on all hosts, as text."""
    look = (
        "ls -d /tmp/remedy-verify-* 2>/dev/null; pgrep -af '[p]ython|[s]h -s';"
        " ss -Hltn 'sport >= :1024'"
    )
    return "".join(site.cluster.run(host, look).stdout for host in site.cluster.hosts)


def begin(site: Site, running: str) -> subprocess.Popen[bytes]:
    """Start ``remedy verify``, and come back when every host is at this stage of it."""
    process = subprocess.Popen(
        site.command("verify"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )

    def there() -> bool:
        looks = (site.cluster.run(host, ["pgrep", "-f", running]) for host in site.cluster.hosts)
        return all(look.returncode == 0 for look in looks)

    wait_for(there, 60)
    return process


@on_stub
@pytest.mark.parametrize("stage", [pytest.param(KNOCKING, marks=pytest.mark.full), TRAINING])
def test_nothing_is_left_when_remedy_itself_is_killed(site: Site, stage: str) -> None:
    before = left(site)
    if stage == KNOCKING:
        # A way that is dropped keeps all hosts at it for a while.
        close(site, site.cluster.hosts[1], 'iifname != "lo" tcp dport 32768-60999')
    process = begin(site, stage)
    process.kill()
    process.wait()
    wait_for(lambda: left(site) == before, GONE)


@pytest.mark.full
@on_stub
@pytest.mark.parametrize("stage", [KNOCKING, TRAINING])
def test_nothing_is_left_when_the_network_to_remedy_goes(site: Site, stage: str) -> None:
    """No FIN and no RST ever comes: the hosts' own deadlines end it."""
    spec = site.folder / "remedy.yaml"
    spec.write_text("verify: {deadline: 12}\n", encoding="utf-8")
    before = left(site)
    if stage == KNOCKING:
        close(site, site.cluster.hosts[1], 'iifname != "lo" tcp dport 32768-60999')
    process = begin(site, stage)
    try:
        for host in site.cluster.hosts:
            if stage == TRAINING:
                site.cluster.run(host, ["pkill", "-STOP", "-f", TRAINING])
            site.cluster.host(host).must(
                ["nft", "-f", "-"],
                stdin="table inet cut { chain input { type filter hook input priority -10;\n"
                "tcp dport 22 drop\n}\n}\n",
            )
        wait_for(lambda: left(site) == before, 12 + GONE)
    finally:
        process.kill()
        process.wait()
