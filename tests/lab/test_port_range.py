"""Ports for new sockets on real hosts: set, merged, and as they are after a reboot."""

from __future__ import annotations

import pytest

from tests.lab.conftest import Cluster
from tests.lab.site import Site

pytestmark = pytest.mark.lab

APPLY = ("--yes", "--no-verify", "--json", "--limit", "gpu01,gpu02")
# Takes ports as NCCL and gloo do, and tells how many of them are a launcher's.
BIND = """\
import socket
held = []
for _ in range(3000):
    one = socket.socket()
    one.bind(("0.0.0.0", 0))
    held.append(one)
ports = {one.getsockname()[1] for one in held}
print(min(ports), max(ports), len(ports & {29400, *range(29500, 29564)}))
"""


@pytest.fixture
def site(cluster: Cluster) -> Site:
    return Site(cluster)


def ports(site: Site, host: str) -> tuple[str, str]:
    """Return a host's range and its reserved ports, as the kernel has them."""
    folder = "/proc/sys/net/ipv4"
    look = f"cat {folder}/ip_local_port_range {folder}/ip_local_reserved_ports"
    first, second = site.cluster.host(host).must(look).splitlines()
    return " ".join(first.split()), second


def bound(site: Site, host: str) -> list[int]:
    words = ["sh", "-c", 'ulimit -n 4096; exec python3 -c "$1"', "sh", BIND]
    return [int(word) for word in site.cluster.host(host).must(words).split()]


def test_launchers_ports_are_kept_from_others_and_stay_so(site: Site) -> None:
    site.cluster.fault("gpu01", "ports-widened")
    told = site.remedy("check", "--json").document["hosts"]
    found = {
        h: [f["title"] for f in t["findings"] if f["remedy"] == "port_range"]
        for h, t in told.items()
    }
    assert found.pop("gpu01") == [
        "the kernel may give ports that launchers need to outgoing connections"
    ]
    assert not any(found.values()), "a usual host needs nothing"
    applied = site.remedy("apply", *APPLY)
    assert applied.code == 0, applied.text
    wanted = ("1024 65535", "8080,29400,29500-29563")
    assert ports(site, "gpu01") == wanted
    low, high, taken = bound(site, "gpu01")
    assert low < 32768
    assert high > 60999
    assert taken == 0
    assert site.remedy("apply", *APPLY).document["plan"]["changes"] == []
    site.cluster.reboot("gpu01")
    assert ports(site, "gpu01") == wanted
    back = site.remedy("rollback", applied.document["run"], "--yes")
    assert back.code == 0, back.text
    assert ports(site, "gpu01") == ("1024 65535", "8080")
    assert site.cluster.run("gpu01", "ls /etc/sysctl.d").stdout.split() == [
        "50-site.conf",
        "99-sysctl.conf",
        "README.sysctl",
    ]


def test_a_range_for_all_and_a_file_that_would_win_at_boot(site: Site) -> None:
    (site.folder / "remedy.yaml").write_text("port_range: {range: 50000-51000}\n")
    site.cluster.fault("gpu01", "ports-set-late")
    applied = site.remedy("apply", *APPLY)
    assert applied.code == 1, "gpu01 would be wrong after a reboot"
    assert {host: ports(site, host)[0] for host in ("gpu01", "gpu02")} == {
        "gpu01": "50000 51000",
        "gpu02": "50000 51000",
    }
    assert bound_within(site, "gpu02", 50000, 51000)
    (late,) = (
        f for f in applied.document["hosts"]["gpu01"]["findings"] if f["remedy"] == "port_range"
    )
    assert late["kind"] == "blocked"
    assert late["evidence"][0].startswith("/etc/sysctl.d/99-tuning.conf:1:")
    assert applied.document["hosts"]["gpu02"]["status"] == "changed"
    site.cluster.host("gpu01").must(["rm", "/etc/sysctl.d/99-tuning.conf"])
    again = site.remedy("apply", *APPLY)
    assert (again.code, again.document["plan"]["changes"]) == (0, [])


def bound_within(site: Site, host: str, low: int, high: int) -> bool:
    """Whether what a socket is given lies in a range."""
    program = "import socket; s = socket.socket(); s.bind(('', 0)); print(s.getsockname()[1])"
    return low <= int(site.cluster.host(host).must(["python3", "-c", program])) <= high
