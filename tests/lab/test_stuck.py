"""Hosts that are stuck at each stage of reaching them: one run names the stage and makes the others right."""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from remedy.apply.start import new_run_id
from remedy.lab.rootfs import GUARDED_PASSWORD
from remedy.runs.session import open_session
from tests.lab.conftest import Cluster, clusters
from tests.lab.runs import LOCKOUT, plan_of
from tests.lab.site import RemedyOutput, Site, wait_for

pytestmark = pytest.mark.lab

# Shorter than the defaults, and long enough for a busy machine.
DEADLINES = (
    "ssh: {connect: 8, key_exchange: 12, login: 12, channel: 12, command: 12, silence: 12}\n"
)
FAULTS: Mapping[str, tuple[str, ...]] = {
    "gpu01": (),
    "gpu02": ("shell-chatters",),
    "gpu03": ("unreachable",),
    "gpu04": ("sshd-frozen",),
    "gpu05": ("login-sleeps",),
    "gpu06": ("session-sleeps",),
    "gpu07": ("shell-sleeps",),
    "gpu08": ("script-frozen",),
    "gpu09": ("cut-off",),
    "gpu10": ("shell-floods",),
    "gpu11": ("script-floods",),
    "gpu12": ("shell-refuses",),
    "gpu13": ("sudo-requires-tty",),
    "gpu14": ("sudo-sleeps",),
    "gpu15": ("password-sleeps",),
}
WELL = ["gpu01", "gpu02"]
# How each of the others ends: its status, what is said of it, and where to look.
ENDS = {
    "gpu03": ("unreachable", "stuck in the stage 'connect': no connection", "Is the host up"),
    "gpu04": ("unreachable", "stuck in the stage 'key exchange'", "ps -o stat,cmd -C sshd"),
    "gpu05": ("unreachable", "stuck in the stage 'login'", "auth and account in"),
    "gpu06": ("unreachable", "stuck in the stage 'channel'", "session lines of /etc/pam.d/sshd"),
    "gpu07": ("unreachable", "stuck in the stage 'command'", "the shell in /etc/passwd"),
    "gpu08": ("unreachable", "stuck in the stage 'output': no sign of life", "frozen, or cut off"),
    "gpu09": ("unreachable", "stuck in the stage 'output': no sign of life", "frozen, or cut off"),
    "gpu10": ("failed", "the login shell printed 256 KiB", " true | head"),
    "gpu11": ("failed", "the script printed more than 4 MiB", " true | head"),
    "gpu12": ("unreachable", "This account is currently not available", "/etc/passwd"),
    "gpu13": ("failed", "without a terminal (requiretty", "Defaults:trainer !requiretty"),
    "gpu15": ("unreachable", "stuck in the stage 'login'", "auth and account in"),
    "gpu14": ("unreachable", "sudo did not start the script", "time sudo -n true"),
}  # fmt: skip


@dataclass(frozen=True)
class Stuck:
    """One run over all of them."""

    site: Site
    applied: RemedyOutput


@pytest.fixture(scope="module")
def stuck(_no_leftovers: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stuck]:
    with clusters(tmp_path_factory.mktemp("stuck")) as make:
        cluster = make(count=len(FAULTS))
        site = Site(cluster)
        (site.folder / "remedy.yaml").write_text(DEADLINES)
        site.edit_inventory({host: {"ssh_user": "trainer"} for host in ("gpu13", "gpu14")})
        by_password = {"ssh_user": "guarded", "ssh_password": GUARDED_PASSWORD, "ssh_key": ""}
        site.edit_inventory({"gpu15": {**by_password, "ssh_look_for_keys": False}})
        for host, names in FAULTS.items():
            if names:
                cluster.fault(host, *names)
        yield Stuck(site, site.remedy("apply", "--yes", "--no-verify", "--json", "-v"))


def test_every_host_is_reported(stuck: Stuck) -> None:
    assert stuck.applied.document["hosts"].keys() == FAULTS.keys()
    assert stuck.applied.code == 1


@pytest.mark.parametrize("host", sorted(ENDS))
def test_a_stuck_host_is_named_with_its_stage_and_where_to_look(stuck: Stuck, host: str) -> None:
    status, reason, next_step = ENDS[host]
    ended = stuck.applied.document["hosts"][host]
    assert (ended["status"], reason in ended["error"]) == (status, True), ended
    assert next_step in ended["next_step"] or next_step in ended["error"]
    assert "refused the login" not in ended["error"]


@pytest.mark.parametrize("host", WELL)
def test_the_others_are_made_right_meanwhile(stuck: Stuck, host: str) -> None:
    assert stuck.applied.document["hosts"][host]["status"] == "changed"
    assert stuck.site.names(host).static == f"{host}\n".encode()


def test_where_a_host_waits_is_shown_while_it_does(stuck: Stuck) -> None:
    shown = stuck.applied.stderr
    for host, stage in (("gpu04", "key exchange"), ("gpu05", "login"), ("gpu06", "channel")):
        assert f"{host}: waiting: {stage}" in shown
    assert "gpu01: waiting" not in shown.replace("waiting: connect", "")


def test_the_journal_has_how_each_ended(stuck: Stuck) -> None:
    (ended,) = (r["data"] for r in journal(stuck.site) if r["event"] == "ended")
    assert ended["hosts"] == {
        name: host["status"] for name, host in stuck.applied.document["hosts"].items()
    }


@pytest.mark.full
def test_a_host_that_freezes_in_a_change_lets_no_guard_of_the_others_expire(
    cluster: Cluster,
) -> None:
    """The others' changes are confirmed when they are made, and not when the last host has answered."""
    spec = cluster.inventory_path.with_name("remedy.yaml")
    spec.write_text("ssh: {silence: 20}\n")
    session = open_session(
        cluster.inventory_path,
        limit=("gpu01", "gpu02"),
        settings={"apply": {"confirm_seconds": 15}},
    )
    harmless = LOCKOUT.model_copy(update={"do": LOCKOUT.do.replace("dport 22", "dport 2222")})
    freeze = LOCKOUT.model_copy(
        update={"do": "sleep 1; kill -STOP $(pgrep sshd); sleep 1000", "undo": "true"}
    )
    good, bad = plan_of("gpu01", harmless, {}), plan_of("gpu02", freeze, {})
    plan = good.model_copy(update={"changes": (*good.changes, *bad.changes)})
    reports = session.carrier.make(plan, new_run_id())
    assert reports["gpu01"].reverted == ""
    assert "no sign of life" in str(reports["gpu02"].error)
    assert "dport 2222" in cluster.run("gpu01", "nft list ruleset").stdout


def test_output_that_nobody_reads_holds_up_no_change(cluster: Cluster) -> None:
    """The pipe of all output is full from when hosts are changed until the run is on record."""
    site = Site(cluster)
    (site.folder / "remedy.yaml").write_text("apply: {confirm_seconds: 20}\n")
    cluster.fault("gpu01", "firewall-nftables")
    read, write = os.pipe()
    fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
    command = site.command("apply", "--yes", "--no-verify", "-v", "--limit", "gpu01")
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=write, stderr=write) as process:
        shown = b""
        while b"Changing 1 host" not in shown:
            shown += os.read(read, 4096)
        fill(write)
        os.close(write)
        wait_for(lambda: any(r["event"] == "ended" for r in journal(site)), 120)
        while piece := os.read(read, 4096):
            shown += piece
    os.close(read)
    (ended,) = (record["data"] for record in journal(site) if record["event"] == "ended")
    assert (process.returncode, ended["hosts"]) == (0, {"gpu01": "changed"})
    assert b"zero drift" in shown  # the outcome comes whole, to whoever reads on
    assert cluster.run("gpu01", "ls /var/lib/remedy/pending 2>/dev/null").stdout == ""


@pytest.mark.full
def test_a_controller_that_was_stopped_finds_no_host_late(cluster: Cluster) -> None:
    """As with Ctrl-Z or a closed lid: what came meanwhile is read before a deadline counts."""
    site = Site(cluster)
    (site.folder / "remedy.yaml").write_text(DEADLINES)
    command = site.command("check", "--json", "-v")
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        while "connecting" not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGSTOP)
        time.sleep(25)
        process.send_signal(signal.SIGCONT)
        stdout, _ = process.communicate(timeout=120)
    hosts = json.loads(stdout)["hosts"]
    assert {name: host["error"] for name, host in hosts.items()} == dict.fromkeys(cluster.hosts)


def fill(number: int) -> None:
    """Write to a pipe until it takes no more."""
    poll = select.poll()
    poll.register(number, select.POLLOUT)
    while poll.poll(0):
        os.write(number, b"." * 4096)


def journal(site: Site) -> list[dict[str, Any]]:
    """Return the records of a site's journal."""
    path = site.folder / ".remedy" / "journal.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
