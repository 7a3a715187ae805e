"""The controller dies, or the network between hosts does: nothing hangs, nothing is torn, nothing is left."""

from __future__ import annotations

import json
import time

import pytest

from tests.lab.at_work import AT_WORK, SLOW, SLOWLY, VERIFYING, processes, start
from tests.lab.conftest import Cluster
from tests.lab.site import Site, outside_block, wait_for

pytestmark = pytest.mark.lab

GONE = 15.0  # seconds within which a host has noticed that the controller is gone


# A controller that is killed is in tests/crashes, too.
@pytest.mark.full
@pytest.mark.parametrize("delay", [0.0, 1.0])
def test_a_controller_killed_while_it_changes_hosts(cluster: Cluster, delay: float) -> None:
    site = Site(cluster)
    cluster.fault("gpu01", "hosts-huge")
    for host in cluster.hosts:
        for tool in SLOW:
            cluster.host(host).write(f"/usr/local/bin/{tool}", SLOWLY.format(tool).encode())
            cluster.host(host).must(f"chmod 755 /usr/local/bin/{tool}")
    before = site.all_names()
    controller = start(site, "apply", "--yes", "--no-verify", "-v")
    assert controller.stderr is not None
    for line in controller.stderr:
        if "changing" in line:
            break
    time.sleep(delay)
    controller.kill()
    controller.communicate()

    # It died before it could look again: nobody has recorded an end.
    journal = (site.folder / ".remedy" / "journal.jsonl").read_text().splitlines()
    assert [json.loads(line)["event"] for line in journal] == ["planned", "began"]
    wait_for(lambda: not processes(cluster, AT_WORK), 60)
    for host, names in site.all_names().items():
        # Each file is as it was or as it shall be, and nothing of others is lost.
        assert outside_block(names.hosts) == outside_block(before[host].hosts)
        assert names.static in (before[host].static, f"{host}\n".encode())
        assert site.copies(host) == ""
        cluster.host(host).must("cd /usr/local/bin && rm " + " ".join(SLOW))
    applied = site.remedy("apply", "--yes", "--no-verify")
    assert applied.code == 0, applied.text
    site.assert_right()
    assert site.remedy("check", "--exit-code").code == 0
    assert site.remedy("audit verify").code == 0


def test_a_host_on_which_a_run_is_still_at_work_is_left_to_it(cluster: Cluster) -> None:
    site = Site(cluster)
    held = "flock -x /var/lib/remedy/lock sleep 60"
    # As the owner of the lock would leave it; the process that holds the kernel's lock stands for its own.
    cluster.host("gpu01").must(
        f"mkdir -p -m 700 /var/lib/remedy; systemd-run --quiet --unit=held {held};"
        " pid=$(systemctl show -p MainPID --value held);"
        ' ln -s "token 20260101T000000Z-0123abcd $(cat /proc/sys/kernel/random/boot_id) $pid'
        " $(sed 's/.*) //' /proc/$pid/stat | cut -d' ' -f20) 2026-01-01T00:00:00Z Y\""
        " /var/lib/remedy/owner"
    )
    wait_for(lambda: "sleep 60" in cluster.run("gpu01", "pgrep -af '[s]leep 60'").stdout, 10)
    before = site.names("gpu01")
    applied = site.remedy("apply", "--yes", "--no-verify")
    assert applied.code == 4
    assert (
        "gpu01: about to change: run 20260101T000000Z-0123abcd by Y is at work there since 2026-01-01"
        in applied.stdout
    )
    assert "Wait until it ends" in applied.stdout
    shut = site.remedy("unlock", "20260101T000000Z-0123abcd", "--limit", "gpu01")
    assert (shut.code, "the run is still at work there" in shut.stdout) == (4, True)
    assert site.names("gpu01") == before
    site.assert_right("gpu02", "gpu03", "gpu04")
    cluster.host("gpu01").must("systemctl stop held")
    assert site.remedy("apply", "--yes", "--no-verify").code == 0
    site.assert_right()


@pytest.mark.full
def test_a_controller_killed_while_it_verifies_leaves_nothing(cluster: Cluster) -> None:
    site = Site(cluster)
    site.run_on_stub()
    controller = start(site, "apply", "--yes")
    wait_for(lambda: processes(cluster, VERIFYING).count("worker") >= len(cluster.hosts), 60)
    controller.kill()
    controller.communicate()
    left = f"ls -d /tmp/remedy-verify-* 2>/dev/null; pgrep -af '[p]ython|{AT_WORK}'"
    wait_for(lambda: not any(cluster.run(h, left).stdout for h in cluster.hosts), GONE)
    site.assert_right()
    again = site.remedy("apply", "--yes", "--no-verify", "--json")
    assert (again.code, again.document["plan"]["changes"]) == (0, [])


@pytest.mark.full
def test_packets_that_are_dropped_between_two_hosts_end_as_not_proved(cluster: Cluster) -> None:
    if cluster.lab.record().python is None:
        pytest.skip("no torch for the hosts")
    site = Site(cluster)
    (site.folder / "remedy.yaml").write_text("verify: {deadline: 25}\n")
    assert site.remedy("apply", "--yes", "--no-verify").code == 0
    addresses = site.addresses()
    for host, peer in (("gpu02", "gpu03"), ("gpu03", "gpu02")):
        cluster.host(host).must(
            "nft add table inet cut && nft add chain inet cut input"
            " '{ type filter hook input priority -10; }'"
            f" && nft add rule inet cut input ip saddr {addresses[peer]} drop"
        )
    done = site.remedy("verify", "--json")
    assert done.code == 3, done.stderr
    verdict = done.document["verdict"]
    assert verdict["passed"] is False
    assert {"gpu02", "gpu03"} & {o["host"] for o in verdict["outcomes"] if o["outcome"] == "fail"}
    assert "gpu02" in verdict["reason"] or "gpu03" in verdict["reason"]
    left = f"ls -d /tmp/remedy-verify-* 2>/dev/null; pgrep -af '[p]ython|{AT_WORK}'"
    assert not any(cluster.run(host, left).stdout for host in cluster.hosts)
    shown = site.remedy("history").stdout
    assert "NOT proved" in shown
