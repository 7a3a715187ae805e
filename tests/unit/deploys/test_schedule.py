"""What is to change a host by itself."""

from __future__ import annotations

import pytest

from remedy.deploys.schedule import SHUTDOWN, TIMERS, ScheduleSpec
from remedy.plan import Finding, FindingKind
from remedy.probe import File, Mention, Process
from tests.unit.build import fleet, host_state
from tests.unit.deploys.report_bench import findings_of


def said(
    *,
    shutdown: str = "",
    timers: tuple[str, ...] = (),
    processes: tuple[str, ...] = (),
    accept: tuple[str, ...] = (),
) -> list[Finding]:
    """Return what is said of a host with these."""
    texts = {SHUTDOWN: shutdown} if shutdown else {}
    for number, command in enumerate(timers):
        texts[f"{TIMERS}/run-{number}.timer"] = (
            f"[Unit]\nDescription={command}\n\n[Timer]\nOnActiveSec=5min\n"
        )
    state = host_state("gpu01", "10.0.0.1")
    files = {
        path: File(path=path, real_path=path, exists=True, content=text.encode())
        for path, text in texts.items()
    }
    running = tuple(
        Process(7 + n, 1, 7, 7, False, "S", "x", 1, 1, arguments=tuple(text.split(" ")))
        for n, text in enumerate(processes)
    )
    state = state.model_copy(update={"files": {**state.files, **files}, "processes": running})
    return findings_of("schedule", fleet(state), ScheduleSpec(accept=accept))


@pytest.mark.parametrize(
    "command",
    [
        "/usr/sbin/nft flush ruleset", "/usr/bin/sh -c iptables-restore </root/old",
        "/sbin/ip route add default via x",
        "/usr/sbin/shutdown -r now", "/usr/bin/systemctl restart networking", "/root/rollback.sh",
        "/bin/sh /root/undo-mtu.sh", "/usr/sbin/tc qdisc del dev eth0 root", "/usr/sbin/ufw disable",
    ],
)  # fmt: skip
def test_a_timer_that_changes_the_host_is_unknown_until_it_is_accepted(command: str) -> None:
    (finding,) = said(timers=(command,))
    assert finding.kind is FindingKind.UNKNOWN
    assert command in finding.title
    assert "systemctl stop run-0.timer" in finding.fix
    assert said(timers=(command,), accept=(command,)) == []


@pytest.mark.parametrize(
    "command",
    [
        "/usr/bin/apt-get update", "/usr/local/bin/backup --ip=10.0.0.1", "/usr/bin/python3 train.py",
        "[systemd-run] /bin/ls",
    ],
)  # fmt: skip
def test_other_timers_are_not_mentioned(command: str) -> None:
    assert said(timers=(command,)) == []


def test_a_shutdown_is_named_with_its_time() -> None:
    text = "USEC=1795418214710964\nWARN_WALL=1\nMODE=reboot\nUID=0\n"
    (finding,) = said(shutdown=text)
    assert (finding.kind, finding.title) == (
        FindingKind.UNKNOWN,
        "a reboot is scheduled at 2026-11-23 07:16 UTC",
    )
    assert said(shutdown=text, accept=("reboot",)) == []
    assert "cannot be read" in said(shutdown=f"MODE=halt\nUSEC={'9' * 19}\n")[0].title
    assert said(shutdown="MODE=") == []


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("/bin/bash /usr/sbin/iptables-apply /root/rules", True),
        ("/usr/bin/python3 /usr/sbin/netplan try", True),
        ("sh -c sleep 300; iptables-restore </root/old", True),
        ("bash -c sleep 5m && ufw disable", True),
        ("sh -c while sleep 60; do date; done", False),
        ("sh -c sleep 60; . /var/lib/remedy/runs/x/guard; nft -f x", False),
        ("/usr/sbin/nft monitor", False),
    ],
)
def test_programs_that_wait_before_they_change_the_host(text: str, named: bool) -> None:
    found = said(processes=(text,))
    assert [f.kind for f in found] == [FindingKind.UNKNOWN] * named
    assert said(processes=(text,), accept=(text,)) == []


JOB = "/var/spool/cron/atjobs/a0000101ba4e08"


@pytest.mark.parametrize(
    "path", [JOB, "/var/spool/at/b0000101ba4e08", "/var/spool/at/=0000101ba4e08"]
)
def test_a_job_of_at_that_changes_the_host_is_unknown_until_it_is_accepted(path: str) -> None:
    text = "iptables -I INPUT -j DROP"
    state = host_state("gpu01", "10.0.0.1")
    line = Mention(path=path, line=30, text=text)
    state = state.model_copy(update={"mentions": (line,)})
    (finding,) = findings_of("schedule", fleet(state), ScheduleSpec())
    assert finding.kind is FindingKind.UNKNOWN
    assert finding.title == f"job 1 of at is to run at 2025-02-10 18:48 UTC: {text}"
    assert finding.evidence == (f"{path}:30: {text}",)
    assert "atrm 1" in finding.fix
    assert findings_of("schedule", fleet(state), ScheduleSpec(accept=(text,))) == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (JOB, "/usr/local/bin/backup --ip x"),
        (JOB, "# nft flush ruleset"),
        ("/etc/rc.local", "nft flush ruleset"),
    ],
)
def test_other_jobs_and_files_are_not_mentioned(path: str, text: str) -> None:
    state = host_state("gpu01", "10.0.0.1")
    state = state.model_copy(update={"mentions": (Mention(path=path, line=1, text=text),)})
    assert findings_of("schedule", fleet(state), ScheduleSpec()) == []
