"""Names on real hosts, in both families and as the user of the jobs: the cluster address is first."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.lab.conftest import Cluster
from tests.lab.site import Site

pytestmark = pytest.mark.lab

FAULTS = {
    "gpu01": ("own-name-ipv6-loopback",),
    "gpu02": ("own-name-ipv6-first",),
    "gpu03": ("hosts-root-only", "nsswitch-root-only"),
    "gpu04": ("stale-dns-first",),
}
# What each of them is called, as check says it.
SAID = {
    "gpu01": ("names resolve to loopback for the user trainer: gpu01", "::1"),
    "gpu02": ("names resolve to an IPv6 address first for the user trainer: gpu02", "fd5e:11ab::"),
    "gpu03": ("/etc/hosts has mode 0600", "no answer, expected"),
    "gpu04": ("dns is asked before the hosts file", "hosts: dns files"),
}
SUM = (
    "import torch, torch.distributed as d; d.init_process_group('gloo'); t = torch.ones(1); "
    "d.all_reduce(t); print('SUM', int(t[0]))"
)
FAMILIES = "ss1.ss_family == ss2.ss_family"


@pytest.fixture
def site(cluster: Cluster) -> Site:
    """Hosts that are right but for what a test breaks."""
    made = Site(cluster)
    assert made.remedy("apply", "--yes", "--no-verify").code == 0
    return made


def first_answers(site: Site, host: str) -> dict[str, str]:
    """Return what getaddrinfo gives first there to the user trainer, as gloo asks it, for every host."""
    names = " ".join(site.cluster.hosts)
    ask = (
        "import socket, sys\n"
        "for name in sys.argv[1:]:\n"
        "    try: print(name, socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)[0][4][0])\n"
        "    except OSError as error: print(name, type(error).__name__)\n"
    )
    seen = site.cluster.host(host).must(
        f"setpriv --reuid=trainer --regid=trainer --init-groups python3 -c '{ask}' {names}"
    )
    return dict(line.split() for line in seen.splitlines())


def files(site: Site, host: str) -> str:
    """Return mode and content of what the resolver reads there."""
    return site.cluster.host(host).must(
        "for f in /etc/hosts /etc/nsswitch.conf /etc/resolv.conf; do stat -L -c '%n %a' $f; cat $f; done"
    )


def test_each_way_to_a_wrong_first_answer_is_found_repaired_and_taken_back(site: Site) -> None:
    Path(site.folder, "remedy.yaml").write_text("cluster: {user: trainer}\n", encoding="utf-8")
    for host, names in FAULTS.items():
        site.cluster.fault(host, *names)
        assert first_answers(site, host) != site.addresses(), names
    before = {host: files(site, host) for host in FAULTS}
    hosts = site.remedy("check", "--json").document["hosts"]
    for host, (title, evidence) in SAID.items():
        own = [f"{f['title']} {f['evidence']}" for f in hosts[host]["findings"]]
        assert any(title in text for text in own), own
        assert any(evidence in text for text in own), own
    applied = site.remedy("apply", "--yes", "--no-verify", "--json")
    assert applied.code == 0, applied.text
    for host in FAULTS:
        assert first_answers(site, host) == site.addresses()
    again = site.remedy("check", "--json").document
    assert again["plan"]["changes"] == []
    assert [again["hosts"][host]["findings"] for host in FAULTS] == [[], [], [], []]
    back = site.remedy("rollback", applied.document["run"], "--yes")
    assert back.code == 0, back.text
    assert {host: files(site, host) for host in FAULTS} == before


@pytest.mark.full
def test_gloo_meets_two_families_before_and_one_after(site: Site) -> None:
    if not site.cluster.lab.record().python:
        pytest.skip("no torch for the hosts")
    spec = "verify: {isolate: false, deadline: 60}\n"
    Path(site.folder, "remedy.yaml").write_text(spec, encoding="utf-8")
    both = ("--limit", "gpu01,gpu02")
    site.cluster.fault("gpu01", "own-name-ipv6-first")
    broken = site.remedy("verify", *both)
    assert broken.code == 3, broken.text
    assert FAMILIES in broken.text
    assert "ipv6-issue" in broken.text
    fixed = site.remedy("apply", "--yes", "--json", *both)
    assert fixed.code == 0, fixed.text
    assert FAMILIES not in fixed.text


@pytest.mark.full
def test_peers_reach_the_long_name_that_rank_0_tells_them(site: Site) -> None:
    """c10d publishes getfqdn() of rank 0 as MASTER_ADDR, and Debian's installer makes that a long name."""
    python = site.cluster.lab.record().python
    if not python:
        pytest.skip("no torch for the hosts")
    one, two = site.cluster.hosts[:2]
    for host in (one, two):
        site.cluster.fault(host, "loopback-long-name")
    fixed = site.remedy("apply", "--yes", "--no-verify", "--json")
    assert fixed.code == 0, fixed.text
    address = site.addresses()[one]
    long = site.cluster.host(one).must("hostname -f").strip()
    assert long == f"{one}.lab.example"
    assert site.cluster.host(two).must(f"getent ahosts {long}").split()[0] == address
    torchrun = (
        f'cd /tmp; echo "{SUM}" > sum.py; PYTHONWARNINGS=ignore timeout 60 '
        f"{python} -m torch.distributed.run --nnodes 2 --nproc-per-node 1 --rdzv-backend c10d "
        f"--rdzv-endpoint {one}:29400 --rdzv-id names sum.py 2>&1"
    )
    with ThreadPoolExecutor() as pool:
        runs = list(pool.map(lambda host: site.cluster.run(host, torchrun), (one, two)))
    for run in runs:
        assert "SUM 2\n" in run.stdout, [r.stdout for r in runs]
