"""One run over hosts that are bad in every way: each is told for itself, and the others are made right."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from remedy.lab.faults.names import _CLONED_ID
from tests.lab.conftest import Cluster, clusters
from tests.lab.site import HostNames, RemedyOutput, Site, outside_block

pytestmark = pytest.mark.lab

# What is wrong with each host; of the last two one is as it came, and one does not let us in.
FAULTS: Mapping[str, tuple[str, ...]] = {
    "gpu01": ("hosts-immutable",),
    "gpu02": ("etc-read-only",),
    "gpu03": ("disk-full",),
    "gpu04": ("no-getent",),
    "gpu05": ("hanging-nvidia-smi", "same-machine-id"),
    "gpu06": ("unreachable",),
    "gpu07": ("node-lost",),
    "gpu08": ("hostile-text", "same-machine-id"),
    "gpu09": (),
    "gpu10": (),
}
REACHED = [host for host in FAULTS if host not in ("gpu06", "gpu07")]
REPAIRED = ["gpu05", "gpu08", "gpu09"]
# How each of the others ends: its status, what is said of it, and what to do.
ENDS = {
    "gpu01": ("failed", "/etc/hosts is immutable (chattr +i)", "chattr -i /etc/hosts"),
    "gpu02": ("failed", "mounted read-only", "mount -o remount,rw"),
    "gpu03": ("failed", "nothing was changed: /var/lib/remedy cannot be written", "run the command again"),
    "gpu04": ("failed", "getent is not installed", "run the command again"),
    "gpu06": ("unreachable", "no connection", "Is the host up"),
    "gpu07": ("unreachable", "no connection", "Is the host up"),
    "gpu10": ("unreachable", "refused the login", "authorized_keys"),
}  # fmt: skip
HOSTILE_NAME = "$(touch /tmp/pwned){{7*7}}"


@dataclass(frozen=True)
class Bad:
    """One run, and what was there before and after it."""

    site: Site
    before: Mapping[str, HostNames]
    applied: RemedyOutput
    after: Mapping[str, HostNames]
    resolved: Mapping[str, Mapping[str, str]]
    healed: RemedyOutput
    healed_text: RemedyOutput


@pytest.fixture(scope="module")
def bad(_no_leftovers: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bad]:
    with clusters(tmp_path_factory.mktemp("bad")) as make:
        cluster = make(count=len(FAULTS))
        site = Site(cluster)
        # What carries the sum does not matter here: the ranks run a stub of torch (docs/tests.md).
        site.run_on_stub()
        (site.folder / "remedy.yaml").write_text("verify: {sizes: [8]}\n", encoding="utf-8")
        for host, faults in FAULTS.items():
            if faults and host in REACHED:
                cluster.fault(host, *faults)
        before = {host: site.names(host) for host in REACHED}
        cluster.fault("gpu06", "unreachable")
        cluster.fault("gpu07", "node-lost")
        site.edit_inventory({"gpu10": {"ssh_user": "nobody-here"}})
        applied = site.remedy("apply", "--yes", "--json", "-v")
        after = {host: site.names(host) for host in REACHED}
        resolved = {host: site.resolved(host) for host in REPAIRED}
        _heal(cluster, site)
        yield Bad(
            site=site,
            before=before,
            applied=applied,
            after=after,
            resolved=resolved,
            healed=site.remedy("apply", "--yes", "--no-verify", "--json"),
            healed_text=site.remedy("check", "--exit-code"),
        )


def _heal(cluster: Cluster, site: Site) -> None:
    """Do what the messages say."""
    cluster.host("gpu01").must("chattr -i /etc/hosts")
    cluster.host("gpu02").must("mount -o remount,bind,rw /etc")
    cluster.host("gpu04").must("mv /usr/bin/getent.gone /usr/bin/getent")
    cluster.host("gpu05").must("rm /usr/bin/nvidia-smi")
    cluster.reboot("gpu03")
    cluster.reboot("gpu06")
    cluster.lab.start("gpu07")
    site.edit_inventory({"gpu10": {"ssh_user": "root"}})


def test_failed_is_the_most_severe_end(bad: Bad) -> None:
    assert bad.applied.code == bad.applied.document["exit_code"] == 1
    assert bad.applied.document["converged"] is False


@pytest.mark.parametrize("host", sorted(ENDS))
def test_a_bad_host_is_named_with_the_reason_and_the_next_step(bad: Bad, host: str) -> None:
    status, reason, next_step = ENDS[host]
    told = bad.applied.document["hosts"][host]
    assert told["status"] == status
    assert told["error"].startswith(host)
    assert reason in told["error"]
    assert next_step in told["next_step"]


@pytest.mark.parametrize("host", REPAIRED)
def test_the_others_are_made_right(bad: Bad, host: str) -> None:
    assert bad.applied.document["hosts"][host]["status"] == "changed"
    names = bad.after[host]
    assert (names.running, names.static) == (host, f"{host}\n".encode())
    assert bad.resolved[host] == bad.site.addresses()


def test_the_others_are_proved_and_the_bad_are_not_counted(bad: Bad) -> None:
    if bad.site.cluster.lab.record().python is None:
        pytest.skip("no torch for the hosts")
    verdict = bad.applied.document["verdict"]
    assert verdict["passed"] is True
    assert verdict["hosts"] == verdict["world_size"] == len(REPAIRED)
    outcomes = {o["host"]: o["outcome"] for o in verdict["outcomes"]}
    assert outcomes == {host: "pass" if host in REPAIRED else "not-tested" for host in FAULTS}
    reasons = {o["host"]: o["reason"] for o in verdict["outcomes"] if o["outcome"] == "not-tested"}
    assert reasons.keys() == FAULTS.keys() - set(REPAIRED)
    assert "" not in reasons.values()


def test_nothing_is_lost_on_a_bad_host(bad: Bad) -> None:
    # Nothing at all could be written there:
    assert bad.after["gpu03"] == bad.before["gpu03"]
    assert bad.after["gpu10"] == bad.before["gpu10"]
    # What could not be replaced is whole, the rest was done:
    assert bad.after["gpu01"].hosts == bad.before["gpu01"].hosts
    assert bad.after["gpu01"].static == b"gpu01\n"
    assert bad.after["gpu02"].hosts == bad.before["gpu02"].hosts
    assert bad.after["gpu02"].static == bad.before["gpu02"].static
    for host in ("gpu04", *REPAIRED):
        assert outside_block(bad.after[host].hosts) == outside_block(bad.before[host].hosts)
        assert bad.after[host].owner_mode == bad.before[host].owner_mode
    assert not any(bad.site.copies(host) for host in FAULTS)


def test_text_from_a_host_is_neither_run_nor_rendered(bad: Bad) -> None:
    assert bad.before["gpu08"].running == HOSTILE_NAME
    for host in FAULTS:
        assert bad.site.cluster.run(host, "ls /tmp/pwned").returncode != 0
    assert not Path("/tmp/pwned").exists()
    # It is shown as it is, and stays in the file as it was.
    document = bad.applied.document
    change = next(
        c
        for c in document["plan"]["changes"]
        if c["host"] == "gpu08" and c["action"].get("before") == HOSTILE_NAME
    )
    assert change["action"]["do"].count("pwned") == 0
    assert HOSTILE_NAME in bad.applied.stderr
    assert b"{{ 7 * 7 }} {% raw %} `touch /tmp/pwned`" in bad.after["gpu08"].hosts
    records = list((bad.site.folder / ".remedy").rglob("*.json*"))
    assert bad.site.folder / ".remedy" / "journal.jsonl" in records
    for path in records:
        assert "touch /tmp/pwned)49" not in path.read_text()


def test_a_machine_id_that_hosts_share_is_reported_and_left_alone(bad: Bad) -> None:
    (finding,) = (f for f in bad.applied.document["findings"] if "machine-id" in f["title"])
    assert (finding["kind"], finding["evidence"]) == ("report", ["gpu05", "gpu08"])
    assert "systemd-machine-id-setup" in finding["fix"]
    for host in ("gpu05", "gpu08"):
        assert bad.site.cluster.run(host, "cat /etc/machine-id").stdout == _CLONED_ID


def test_a_hanging_tool_costs_its_own_section_only(bad: Bad) -> None:
    assert bad.applied.document["hosts"]["gpu05"]["status"] == "changed"
    # The stand-in is killed, not left behind.
    assert bad.site.cluster.run("gpu05", "pgrep -f '[s]leep infinity'").stdout == ""


def test_the_journal_tells_how_each_host_ended(bad: Bad) -> None:
    lines = (bad.site.folder / ".remedy" / "journal.jsonl").read_text().splitlines()
    run = bad.applied.document["run"]
    records = [json.loads(line) for line in lines]
    (ended,) = (r["data"] for r in records if r["run"] == run and r["event"] == "ended")
    statuses = {host: told["status"] for host, told in bad.applied.document["hosts"].items()}
    assert ended["hosts"] == statuses
    assert set(statuses) == set(FAULTS)


def test_when_the_obstacles_are_gone_one_run_makes_all_right(bad: Bad) -> None:
    assert bad.healed.code == 0, bad.healed.stderr
    changed = {n for n, h in bad.healed.document["hosts"].items() if h["status"] == "changed"}
    assert changed == set(FAULTS) - {"gpu04", *REPAIRED}
    assert bad.healed_text.code == 0
    bad.site.assert_right()
