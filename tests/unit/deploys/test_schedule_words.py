"""What is said of changes that are to come by themselves."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from remedy.deploys import schedule as module
from remedy.plan import remedy_of
from remedy.probe import File, HostState, Process
from tests.unit.build import host_state
from tests.unit.deploys.words_bench import Said, planned, said

SHUTDOWN = "/run/systemd/shutdown/scheduled"
TIMER = "/run/systemd/transient/run-7.timer"
FLUSH = "/usr/sbin/nft flush ruleset"
ACCEPT = 'if it changes nothing that matters, add to schedule.accept in remedy.yaml: "{}"'
WAIT = "Wait for it, or take it back: "


def host(files: Mapping[str, str] = {}, *commands: str) -> HostState:
    """Return a host with these files, which runs these commands."""
    known = {
        path: File(path=path, real_path=path, exists=True, content=text.encode())
        for path, text in files.items()
    }
    running = tuple(
        Process(70 + n, 1, 7, 7, False, "S", "x", 1, 1, arguments=tuple(text.split(" ")))
        for n, text in enumerate(commands)
    )
    state = host_state("a", "10.0.0.1")
    return state.model_copy(update={"files": {**state.files, **known}, "processes": running})


def shutdown(text: str) -> HostState:
    return host({SHUTDOWN: text})


def timer(text: str, path: str = TIMER) -> HostState:
    return host({path: text})


ON = f"Description={FLUSH}\n[Timer]\nOnActiveSec=5min\nAccuracySec=1s\n OnBootSec = 9min \n"
APPLY, SLEEPER = "/bin/bash /usr/sbin/iptables-apply /root/rules", "bash -c sleep 5m && ufw disable"


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (shutdown("USEC=1795418214710964\nMODE=reboot\n"), Said(
            "unknown", "a reboot is scheduled at 2026-11-23 07:16 UTC", (f"{SHUTDOWN}: MODE=reboot",),
            f"{WAIT}shutdown -c; {ACCEPT.format('reboot')}",
        )),
        (shutdown("MODE = poweroff \nUSEC=soon"), Said(
            "unknown", "a poweroff is scheduled", (f"{SHUTDOWN}: MODE=poweroff",),
            f"{WAIT}shutdown -c; {ACCEPT.format('poweroff')}",
        )),
        (shutdown("MODE=halt"), Said(
            "unknown", "a halt is scheduled", (f"{SHUTDOWN}: MODE=halt",),
            f"{WAIT}shutdown -c; {ACCEPT.format('halt')}",
        )),
        (shutdown(f"MODE=halt\nUSEC={'9' * 19}"), Said(
            "unknown", "a halt is scheduled at a time that cannot be read", (f"{SHUTDOWN}: MODE=halt",),
            f"{WAIT}shutdown -c; {ACCEPT.format('halt')}",
        )),
        (timer(f"[Unit]\n{ON}"), Said(
            "unknown", f"run-7.timer is to run: {FLUSH}",
            (f"{TIMER}: OnActiveSec=5min", f"{TIMER}: OnBootSec=9min"),
            f"{WAIT}systemctl stop run-7.timer; {ACCEPT.format(FLUSH)}",
        )),
        (host({}, "sleep 9", APPLY), Said(
            "unknown", f"a program is to change the host: {APPLY}", ("process 71",),
            f"{WAIT}answer it where it runs; {ACCEPT.format(APPLY)}",
        )),
        (host({}, SLEEPER), Said(
            "unknown", f"a program is to change the host: {SLEEPER}", ("process 70",),
            f"{WAIT}kill 70; {ACCEPT.format(SLEEPER)}",
        )),
    ],
)  # fmt: skip
def test_what_an_operator_reads(state: HostState, expected: Said) -> None:
    assert said(planned("schedule", state)) == [expected]
    text = expected.fix.split('"')[1]
    assert said(planned("schedule", state, accept=(text,))) == []


def test_a_long_command_is_cut_in_the_title_alone() -> None:
    long = f"{FLUSH} {'x' * 300}"
    for state, before in (
        (timer(f"Description={long}\n"), "run-7.timer is to run: "),
        (host({}, f"{APPLY} {long}"), "a program is to change the host: "),
    ):
        (found,) = said(planned("schedule", state))
        assert found.title.startswith(before)
        assert len(found.title) == len(before) + 200
        assert "x" * 300 in found.fix


@pytest.mark.parametrize(
    "path",
    ["/run/systemd/transient/remedy-1.timer", "/run/systemd/transient/x.service", "/etc/systemd/x.timer"],
)  # fmt: skip
def test_remedys_own_timers_and_other_files_are_left_out(path: str) -> None:
    assert said(planned("schedule", timer(f"[Unit]\n{ON}", path))) == []


def test_each_of_several_is_named() -> None:
    files = {SHUTDOWN: "MODE=halt", TIMER: ON, TIMER.replace("7", "8"): ON}
    titles = [f.title for f in said(planned("schedule", host(files, APPLY, SLEEPER)))]
    assert titles == [
        "a halt is scheduled",
        f"run-7.timer is to run: {FLUSH}",
        f"run-8.timer is to run: {FLUSH}",
        f"a program is to change the host: {APPLY}",
        f"a program is to change the host: {SLEEPER}",
    ]


def test_a_file_that_is_gone_says_nothing() -> None:
    state = shutdown("MODE=halt")
    gone = File(path=SHUTDOWN, real_path=SHUTDOWN, exists=False)
    assert said(planned("schedule", state.model_copy(update={"files": {SHUTDOWN: gone}}))) == []


def is_named(command: str) -> bool:
    return bool(said(planned("schedule", timer(f"Description={command}\n"))))


TOOLS = (
    "nft", "iptables", "ip6tables", "iptables-legacy", "iptables-nft", "iptables-restore", "ip6tables-restore",
    "iptables-nft-restore", "iptables-apply", "arptables", "arptables-nft", "ebtables", "ebtables-restore",
    "ipset", "ufw", "firewall-cmd", "netplan", "nmcli", "networkctl", "ifup", "ifdown", "ifconfig", "sysctl",
    "hostnamectl", "shutdown", "reboot", "poweroff", "halt", "kexec",
)  # fmt: skip


@pytest.mark.parametrize("tool", TOOLS)
def test_each_tool_that_changes_a_host(tool: str) -> None:
    for command in (
        f"/usr/sbin/{tool} x",
        tool,
        f"sh -c '{tool}'",
        f"true;{tool}&",
        f"(date|{tool})",
    ):
        assert is_named(command), command
    assert not is_named(f"/bin/my{tool}x y")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        *((f"ip {noun} x", True) for noun in (
            "a", "r", "l", "ro", "addr", "address", "route", "rule", "link", "neigh", "neighbour", "xfrm",
        )),
        ("ip -4 -o route add x", True),
        ("ip maddr show", False),
        ("tc qdisc del x", True),
        ("tc filter del x", True),
        ("tc class del x", False),
        *((f"systemctl {verb} x", True) for verb in (
            "reboot", "poweroff", "halt", "kexec", "isolate", "start", "stop", "restart", "disable", "enable",
        )),
        ("systemctl --no-reload --now disable x", True),
        ("systemctl status x", False),
        *((f"/root/{word}.sh", True) for word in ("rollback", "roll-back", "revert", "restore", "undo")),
        ("/root/my_undo now", True),
        ("/root/undoing now", False),
        ("sh /root/net-revert-1", True),
    ],
)  # fmt: skip
def test_which_commands_change_a_host(command: str, expected: bool) -> None:
    assert is_named(command) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sh -c sleep 1.5; nft -f x", True),
        ("sh -c sleep 3h & nft -f x", True),
        ("sh -c (sleep 30s; nft -f x)", True),
        ("sh -c 'sleep 30; nft -f x'", True),
        ("sh -c sleep 30 nft", False),
        ("sh -c asleep 30; nft -f x", False),
        ("iptables-apply", True),
        ("my-iptables-apply x", False),
        ("netplan try", True),
        ("netplan trying", False),
        ("iptables-apply-log x", False),
    ],
)
def test_which_programs_wait(text: str, expected: bool) -> None:
    assert bool(said(planned("schedule", host({}, text)))) is expected


def test_the_probe_is_asked_for_what_is_judged() -> None:
    assert set(remedy_of(module).reads) == {SHUTDOWN, "/run/systemd/transient/*.timer"}
