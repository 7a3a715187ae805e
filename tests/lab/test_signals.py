"""Signals while hosts are at work: each phase ends in words, with its code, and the next command goes on."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.lab.at_work import SLOW, SLOWLY, VERIFYING, processes, start
from tests.lab.conftest import Cluster
from tests.lab.site import Site, wait_for

pytestmark = pytest.mark.lab

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
FULL = pytest.mark.full


def stop(process: subprocess.Popen[str], words: str, number: signal.Signals) -> str:
    """Send a signal when a command has come to a stage; return what it says then."""
    assert process.stderr is not None
    for line in process.stderr:
        if words in line:
            break
    process.send_signal(number)
    text = process.communicate(timeout=60)[1]
    assert "Traceback" not in text
    assert process.returncode == CODES[number], text
    return text


def events(folder: Path) -> list[dict[str, object]]:
    lines = (folder / ".remedy" / "journal.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def slow_down(cluster: Cluster, *hosts: str) -> None:
    for host in hosts:
        for tool in SLOW:
            cluster.host(host).write(f"/usr/local/bin/{tool}", SLOWLY.format(tool).encode())
            cluster.host(host).must(f"chmod 755 /usr/local/bin/{tool}")


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGINT,
        pytest.param(signal.SIGTERM, marks=FULL),
        pytest.param(signal.SIGHUP, marks=FULL),
    ],
    ids=lambda number: number.name,
)
def test_while_hosts_are_changed(cluster: Cluster, number: signal.Signals) -> None:
    site = Site(cluster)
    two = ("--limit", "gpu01,gpu02", "--yes", "--no-verify")
    slow_down(cluster, "gpu01", "gpu02")
    text = stop(start(site, "apply", *two, "-v"), ": changing", number)
    entries = events(site.folder)
    run = entries[0]["run"]
    assert [entry["event"] for entry in entries] == ["planned", "began", "ended"]
    assert "while: Changing 2 hosts" in text
    for command in ("--resume", "remedy rollback", "remedy show"):
        assert command in text
    assert f"remedy rollback {run} {site.inventory}" in text
    for host in ("gpu01", "gpu02"):
        cluster.host(host).must("cd /usr/local/bin && rm " + " ".join(SLOW))
    # What the message says to type is what goes on: also while a host is still at what it began.
    resumed = site.remedy("apply", "--resume", str(run), *two)
    assert resumed.code == 0, resumed.text
    site.assert_right("gpu01", "gpu02", addresses=site.addresses())
    assert site.remedy("audit verify").code == 0


@FULL
def test_while_a_change_waits_for_its_confirmation(cluster: Cluster) -> None:
    site = Site(cluster)
    (site.folder / "remedy.yaml").write_text("port_range: {range: 50000-51000}\n")
    one = ("--limit", "gpu01", "--yes", "--no-verify")
    cluster.fault("gpu01", "firewall-nftables")
    text = stop(start(site, "apply", *one, "-v"), ": confirming", signal.SIGTERM)
    assert "what is guarded there is taken back in 60 s" in text
    again = site.remedy("apply", *one)
    assert again.code == 0, again.text
    assert "confirmed, since they are part of this plan" in again.stdout or "waited" in again.stdout
    assert site.remedy("check", "--limit", "gpu01").code == 0


@pytest.mark.full
def test_while_the_fleet_is_verified(cluster: Cluster) -> None:
    site = Site(cluster)
    site.run_on_stub()
    two = ("--limit", "gpu01,gpu02")
    assert site.remedy("apply", "--yes", "--no-verify", *two).code == 0
    process = start(site, "verify", *two)
    wait_for(lambda: processes(cluster, VERIFYING).count("worker") >= 2, 60)
    process.send_signal(signal.SIGTERM)
    text = process.communicate(timeout=60)[1]
    assert (process.returncode, "Traceback" in text) == (143, False)
    assert "nothing was changed on any host" in text
    assert events(site.folder)[-1]["event"] == "ended"
    left = "ls -d /tmp/remedy-verify-* 2>/dev/null; pgrep -af '[p]ython'"
    wait_for(lambda: not any(cluster.run(h, left).stdout for h in ("gpu01", "gpu02")), 20)


@pytest.mark.parametrize(
    ("redirected", "code", "changed"),
    [
        # Nobody could have read the plan: it ends before the question.
        pytest.param("2>&1 | head -c1", 141, False, marks=pytest.mark.full),
        ("2> >(head -c1) >/dev/null", 0, True),  # progress that nobody reads stops no work on hosts
    ],
)
def test_a_reader_who_leaves(cluster: Cluster, redirected: str, code: int, changed: bool) -> None:
    site = Site(cluster)
    command = " ".join(site.command("apply", "--limit", "gpu01", "--yes", "--no-verify"))
    done = subprocess.run(
        ["bash", "-c", f"{command} {redirected}; exit ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (code, "")
    assert (site.folder / ".remedy" / "journal.jsonl").exists() is changed
    assert site.remedy("check", "--limit", "gpu01", "--exit-code").code == (0 if changed else 10)
