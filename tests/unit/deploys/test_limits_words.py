"""What is said of limits and logind, and which commands are run."""

from __future__ import annotations

from typing import Any

import pytest

from remedy.deploys.limits import LimitsSpec
from remedy.edit.limits import UNLIMITED
from remedy.probe import HostState, Sysctls, SysctlSetting, Unit
from remedy.values import Unknown
from tests.unit.deploys import limits_bench
from tests.unit.deploys.limits_bench import GOOD, LATER, MAIN, SITE
from tests.unit.deploys.words_bench import Said, planned, run, said, written

HOST = "gpu01"

PAM, SYSTEMD = "/etc/security/limits.d/99-remedy.conf", "/etc/systemd/system.conf.d/99-remedy.conf"
MEMLOCK = {"memlock": "unlimited"}


def test_limits_are_written_for_sessions_and_services() -> None:
    plan = planned(
        "limits", limits_bench.host({SITE: b"* soft memlock 64\n"}), memlock="64g", nofile=4096
    )
    lacks = "what login starts with (no file)"
    assert said(plan, HOST) == [
        Said(
            "drift", f"{PAM} does not give memlock, nofile",
            (
                f"* soft memlock: 64 KiB ({SITE}:1)", f"* hard memlock: {lacks}", f"root soft memlock: {lacks}",
                f"root hard memlock: {lacks}", f"* soft nofile: {lacks}", f"* hard nofile: {lacks}",
                f"root soft nofile: {lacks}", f"root hard nofile: {lacks}",
            ), "",
        ),
        Said(
            "drift", f"{SYSTEMD} does not give memlock, nofile",
            ("DefaultLimitMEMLOCK: as systemd is built", "DefaultLimitNOFILE: as systemd is built"), "",
        ),
    ]  # fmt: skip
    values = "memlock 67108864 KiB, nofile 4096"
    assert [write[:5] for write in written(plan, HOST)] == [
        (f"write {PAM}: {values}", "low", True, "new logins have it; what runs keeps its limits", PAM),
        (f"write {SYSTEMD}: {values}", "low", False,
         "services have it after the next boot; systemd is not reloaded", SYSTEMD),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("state", "settings", "expected"),
    [
        (limits_bench.host({PAM: b"x\n"}), {}, Said("drift", f"{PAM} holds what nothing asks for any more", (),
         "")),
        (limits_bench.host({MAIN: GOOD, LATER: b"* hard memlock 64\n"}, systemd=False), MEMLOCK, Said(
            "blocked", f"{LATER} gives * only 64 KiB of memlock", (f"{LATER}:1",),
            f"Correct or remove line 1: it counts before {PAM}.",
        )),
        (limits_bench.host({MAIN: GOOD}, systemd=False, memlock=65536), MEMLOCK, Said(
            "report", "a new session over ssh has memlock 64 KiB, though the files give more", (),
            "In a container the kernel refuses to raise it: start the container with the limit. Else see that "
            "sshd "
            "uses PAM (UsePAM yes), and /etc/pam.d/sshd pam_limits.",
        )),
        (limits_bench.host({MAIN: GOOD}, systemd=False, memlock=UNLIMITED, units={"slurmd.service": Unit(
            name="slurmd.service", load="loaded", active="active", enabled="enabled", memlock=65536)}), MEMLOCK,
            Said(
            "report", "slurmd.service runs with memlock 64 KiB, which its jobs inherit", (),
            "It has the new limit after the next boot, unless its own unit says LimitMEMLOCK.",
        )),
        (limits_bench.host(nr_open=4095), {"nofile": 4096}, Said(
            "blocked", "nofile 4096 is more than fs.nr_open allows", ("fs.nr_open = 4095",),
            "Raise fs.nr_open first (sysctl.d), or ask for less in limits.nofile.",
        )),
        (limits_bench.host().model_copy(update={"sysctls": Unknown(reason="no /proc")}), {"nofile": 4096}, Said(
            "unknown", "whether fs.nr_open allows nofile 4096 is not known, so no limit is written",
            ("no /proc",),
            "See that the probe can read it: sysctl fs.nr_open",
        )),
        (limits_bench.host().model_copy(update={"sysctls": Sysctls(live={}, persisted=(), unread=())}),
         {"nofile": 4096}, Said(
            "unknown", "whether fs.nr_open allows nofile 4096 is not known, so no limit is written",
            ("it was not read",), "See that the probe can read it: sysctl fs.nr_open",
        )),
        (limits_bench.host().model_copy(update={"sysctls": Sysctls(
            live={"fs.nr_open": "4096"}, unread=(),
            persisted=(SysctlSetting(key="fs.nr_open", value="4000", path="/etc/sysctl.d/9.conf", line=2),),
        )}), {"nofile": 4096}, Said(
            "blocked", "after the next boot, nofile 4096 is more than fs.nr_open allows",
            ("/etc/sysctl.d/9.conf:2: fs.nr_open = 4000",),
            "Raise fs.nr_open first (sysctl.d), or ask for less in limits.nofile.",
        )),
    ],
)  # fmt: skip
def test_what_is_said_of_limits(state: HostState, settings: dict[str, Any], expected: Said) -> None:
    assert expected in said(planned("limits", state, **settings), HOST)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1k", 1024), ("1KiB", 1024), ("2m", 2 << 20), ("3 GB", 3 << 30), ("4t", 4 << 40), ("2048", 2048),
         (1024, 1024),
        ("unlimited", UNLIMITED), ("Infinity", UNLIMITED), (1023, "memlock"), ("1x", "memlock"),
    ],
)  # fmt: skip
def test_sizes_of_locked_memory(value: Any, expected: int | str) -> None:
    if isinstance(expected, int):
        assert LimitsSpec(memlock=value).memlock == expected
        return
    with pytest.raises(ValueError, match=expected):
        LimitsSpec(memlock=value)


# ---- logind

LOGIND = "/etc/systemd/logind.conf.d/99-remedy.conf"
DELETES = "the last logout of a user deletes the shared memory of the user's jobs (RemoveIPC)"


def test_what_is_said_of_logind() -> None:
    plan = planned("logind", limits_bench.host(), remove_ipc=False)
    assert said(plan, HOST) == [
        Said("drift", DELETES, ("systemd's default, no file says otherwise",), "")
    ]
    (step,) = run(plan, HOST)
    assert step[:5] == (
        f"write {LOGIND}: RemoveIPC=no, and have logind read it", "low", True, "",
        f"if [ -e {LOGIND} ]; then sha256sum <{LOGIND} | cut -d' ' -f1; else echo absent; fi",
    )  # fmt: skip
    assert step.before == "absent"
    assert step.do.endswith(f" {step.after} && again 'b false'")
    assert (
        f'| base64 -d >"$DIR/logind.conf" && put {LOGIND} {LOGIND} 644 "$DIR/logind.conf" '
        in step.do
    )
    assert step.undo.endswith(f"drop {LOGIND} {LOGIND} && again 'b true'")
    later = "/etc/systemd/logind.conf.d/zz.conf"
    text = b"# Written by remedy: logging out removes no shared memory.\n[Login]\nRemoveIPC=no\n"
    beaten = limits_bench.host({LOGIND: text, later: b"[Login]\nRemoveIPC=yes\n"})
    (found,) = said(planned("logind", beaten, remove_ipc=False), HOST)
    assert found.title.endswith(f" sets RemoveIPC=yes after {LOGIND}")
    assert found.title.startswith(later)
    assert found.fix == "Remove that line: of two drop-in files the later name wins."


@pytest.mark.parametrize("name", ["rhel", "centos", "rocky", "almalinux", "ol", "debian", "ubuntu"])
def test_where_logind_leaves_memory_alone(name: str) -> None:
    plan = planned("logind", limits_bench.host(os_id=name), remove_ipc=False)
    assert bool(plan.changes) is (name in ("debian", "ubuntu"))
