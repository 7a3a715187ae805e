"""Limits: what sessions and services need, what is written, and what stands in the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from remedy.deploys.limits import NOFILE, PAM, SYSTEMD, LimitsSpec
from remedy.edit.limits import UNLIMITED, at_least, decides, parse_limits_file
from remedy.errors import SpecError
from remedy.plan import FindingKind, section_models
from remedy.probe import HostState, Limit, RdmaPort, Sysctls, SysctlSetting, Unit
from remedy.spec import load_spec
from remedy.values import Unknown
from tests.unit.build import record
from tests.unit.deploys.limits_bench import GOOD, LATER, MAIN, SITE, content, host, planned


@pytest.mark.parametrize(
    "state",
    [
        host(),
        host({SITE: b"* - memlock 64\n"}),
        host(memlock=65536, nofile=1024),
        host(gpu=True),
        host(rdma=True, memlock=UNLIMITED),
    ],
)
def test_without_a_need_nothing_is_touched(state: HostState) -> None:
    plan = planned(state, LimitsSpec())
    assert (plan.changes, plan.findings) == ((), ())


def test_rdma_needs_locked_memory_for_everybody_and_for_services() -> None:
    plan = planned(host({SITE: b"* - memlock 64\n"}, rdma=True), LimitsSpec())
    text = content(plan, PAM) or b""
    assert b"*\t-\tmemlock\tunlimited\nroot\t-\tmemlock\tunlimited\n" in text
    assert b"nofile" not in text
    assert b"[Manager]\nDefaultLimitMEMLOCK=infinity\n" in (content(plan, SYSTEMD) or b"")
    assert plan.findings[0].evidence[0] == f"* soft memlock: 64 KiB ({SITE}:1)"
    assert [change.guarded for change in plan.changes] == [True, False]


def test_a_hard_limit_that_nccl_cannot_raise() -> None:
    plan = planned(host(gpu=True, nofile=4096), LimitsSpec())
    assert b"*\t-\tnofile\t131072\n" in (content(plan, PAM) or b"")
    assert b"DefaultLimitNOFILE=131072\n" in (content(plan, SYSTEMD) or b"")


def test_what_other_files_give_already_is_not_given_twice() -> None:
    plan = planned(host({SITE: GOOD}, systemd=False), LimitsSpec(memlock=UNLIMITED))
    assert plan.changes == ()


@pytest.mark.parametrize(
    ("path", "text"),
    [(LATER, b"# x\n* hard memlock 64\n"), (SITE, b"\n@train - memlock 64\n"), (SITE, b"\njo - memlock 64\n")],
)  # fmt: skip
def test_a_line_that_counts_before_remedys_is_named(path: str, text: bytes) -> None:
    plan = planned(host({path: text}), LimitsSpec(memlock=UNLIMITED))
    (blocked,) = plan.blocked("gpu01")
    assert blocked.evidence == (f"{path}:2",)


def test_more_files_than_the_kernel_allows_are_refused() -> None:
    plan = planned(host(nr_open=65536), LimitsSpec(nofile=131072))
    assert (plan.changes, [f.kind for f in plan.findings]) == ((), [FindingKind.BLOCKED])


def test_what_a_session_does_not_get_in_spite_of_the_files_is_reported() -> None:
    unit = record(Unit, name="slurmd.service", memlock=65536)
    state = host({SITE: GOOD}, systemd=False, units={"slurmd.service": unit})
    plan = planned(state, LimitsSpec(memlock=UNLIMITED))
    assert [f.kind for f in plan.findings] == [FindingKind.REPORT] * 2
    assert "slurmd.service runs with memlock 64 KiB" in plan.findings[1].title


def test_what_nothing_asks_for_any_more_goes() -> None:
    plan = planned(host({PAM: b"* - memlock 1\n", SYSTEMD: b"[Manager]\n"}), LimitsSpec())
    assert (content(plan, PAM), content(plan, SYSTEMD)) == (b"", b"")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "limits: {memlock: 32 elephants}",
            "limits.memlock is .* needs bytes from 1024, a size such as 64g",
        ),
        ("limits: {nofile: 5}", "limits.nofile"),
        ("limits: {memlock: 3}", "limits.memlock"),
        ("logind: {remove_ipc: maybe}", "logind.remove_ipc"),
    ],
)
def test_bad_values_are_refused_with_their_path(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "remedy.yaml"
    path.write_text(text)
    with pytest.raises(SpecError, match=words):
        load_spec(path, section_models())


SIZES = [("64g", 64 << 30), ("unlimited", -1), ("infinity", -1), ("8 MiB", 8 << 20)]


@pytest.mark.parametrize(("text", "value"), SIZES)
def test_sizes(text: str, value: int) -> None:
    assert LimitsSpec.model_validate({"memlock": text}).memlock == value


def test_how_pam_reads_limits() -> None:
    text = (
        b"# c\n* soft nofile 10\n* - nofile 20 # x\nroot hard memlock 64\nbroken\n* - nofile many\n"
    )
    entries = parse_limits_file(SITE, text)
    assert [(e.line, e.domain, e.kind, e.item, e.value) for e in entries] == [
        (2, "*", "soft", "nofile", 10),
        (3, "*", "-", "nofile", 20),
        (4, "root", "hard", "memlock", 65536),
    ]
    found = decides(entries, "*", "nofile", "soft")
    assert found is not None
    assert found.line == 3
    assert decides(entries, "root", "nofile", "soft") is None
    assert at_least(UNLIMITED, 5)
    assert not at_least(5, UNLIMITED)


def limited(state: HostState, item: str, hard: int) -> HostState:
    assert not isinstance(state.limits, Unknown)
    return state.model_copy(update={"limits": {**state.limits, item: Limit(hard, hard)}})


# --- which limits are needed ---


@pytest.mark.parametrize(("nofile", "needed"), [(65535, True), (65536, False), (UNLIMITED, False)])
@pytest.mark.parametrize("hardware", ["gpu", "rdma"])
def test_files_are_needed_below_what_nccl_wants_where_there_is_hardware(
    nofile: int, needed: bool, hardware: str
) -> None:
    state = host(rdma=hardware == "rdma", gpu=hardware == "gpu", nofile=nofile, memlock=UNLIMITED)
    plan = planned(state, LimitsSpec())
    assert (content(plan, PAM) is not None) is needed
    if needed:
        assert f"nofile {NOFILE}".encode() in b" ".join((content(plan, PAM) or b"").split())
    assert content(planned(host(nofile=nofile), LimitsSpec()), PAM) is None


def test_locked_memory_is_needed_only_where_an_rdma_port_is_active() -> None:
    idle = RdmaPort("mlx5_0", 1, "DOWN", "Disabled", 0.0, "InfiniBand", "", (), {})
    state = host(gpu=True).model_copy(update={"rdma": (idle,)})
    assert planned(state, LimitsSpec()).changes == ()
    blind = host(gpu=True).model_copy(update={"rdma": Unknown(reason="no")})
    assert planned(blind, LimitsSpec()).changes == ()
    assert planned(host(rdma=True), LimitsSpec()).changes


@pytest.mark.parametrize("limits", [Unknown(reason="no"), {}])
def test_a_limit_that_is_not_known_is_not_too_low(limits: object) -> None:
    state = host(rdma=True, gpu=True).model_copy(update={"limits": limits})
    assert planned(state, LimitsSpec()).changes == ()


@pytest.mark.parametrize("limits", [Unknown(reason="no"), {}])
def test_a_session_whose_limits_are_not_known_is_not_said_to_lack_them(limits: object) -> None:
    whole = host({MAIN: GOOD}, rdma=True, systemd=False)
    blind = whole.model_copy(update={"limits": limits})
    for state, is_said in ((blind, False), (limited(whole, "memlock", 64), True)):
        found = planned(state, LimitsSpec(memlock="unlimited")).findings
        assert any("though the files give more" in f.title for f in found) is is_said, found


def test_what_remedy_gave_once_stays_though_sessions_now_have_it() -> None:
    files = {PAM: b"* - memlock unlimited\n", SYSTEMD: b""}
    state = limited(host(files, rdma=True, systemd=False), "memlock", UNLIMITED)
    plan = planned(state, LimitsSpec())
    assert b"memlock" in (content(plan, PAM) or b"")


# --- what is written ---


def lines(plan_content: bytes | None) -> set[tuple[str, ...]]:
    assert plan_content is not None
    return {
        tuple(x.split()) for x in plan_content.decode().splitlines() if x and not x.startswith("#")
    }


def test_everybody_and_root_get_soft_and_hard_limits_in_the_units_of_the_file() -> None:
    plan = planned(host(), LimitsSpec(memlock=(1 << 30) + 1, nofile=2048))
    written = lines(content(plan, PAM))
    assert {line[0] for line in written} == {"*", "root"}
    assert {(line[2], line[3]) for line in written} == {
        ("memlock", str((1 << 20) + 1)),
        ("nofile", "2048"),
    }
    services = lines(content(plan, SYSTEMD))
    assert ("[Manager]",) in services
    assert {x[0] for x in services} >= {
        f"DefaultLimitMEMLOCK={(1 << 30) + 1}",
        "DefaultLimitNOFILE=2048",
    }


def test_no_limit_is_written_in_the_word_of_each_file() -> None:
    plan = planned(host(), LimitsSpec(memlock=UNLIMITED))
    assert all(line[3] == "unlimited" for line in lines(content(plan, PAM)))
    assert ("DefaultLimitMEMLOCK=infinity",) in lines(content(plan, SYSTEMD))


def test_titles_and_evidence_say_which_limit_and_what_there_is_now() -> None:
    plan = planned(host({SITE: b"* soft memlock 64\n"}), LimitsSpec(memlock=1 << 20, nofile=4096))
    sessions, services = (f for f in plan.findings if f.kind is FindingKind.DRIFT)
    assert PAM in sessions.title
    assert "memlock" in sessions.title
    assert "nofile" in sessions.title
    assert f"* soft memlock: 64 KiB ({SITE}:1)" in sessions.evidence
    assert any(x.startswith("* hard memlock: ") and "no file" in x for x in sessions.evidence)
    assert len(sessions.evidence) == 8
    assert SYSTEMD in services.title
    assert [x.partition(":")[0] for x in services.evidence] == [
        "DefaultLimitMEMLOCK",
        "DefaultLimitNOFILE",
    ]
    assert (sessions.label, services.label) == ("memlock-limit", "memlock-limit")
    written, dropped = plan.changes
    assert "memlock 1024 KiB" in written.title
    assert "nofile 4096" in written.title
    assert (written.guarded, dropped.guarded) == (True, False)
    assert "login" in written.disrupts
    assert "boot" in dropped.disrupts


def test_the_first_limit_that_is_asked_for_is_the_cause() -> None:
    (finding, *_) = planned(host(), LimitsSpec(nofile=4096)).findings
    assert finding.label == "nofile-limit"


def test_a_line_of_others_that_gives_more_is_enough() -> None:
    more = b"* - memlock 2048\nroot - memlock unlimited\n"
    assert (
        content(planned(host({SITE: more}, systemd=False), LimitsSpec(memlock=1 << 20)), PAM)
        is None
    )
    assert (
        content(planned(host({SITE: more}, systemd=False), LimitsSpec(memlock=4 << 20)), PAM)
        is not None
    )


def test_a_service_limit_of_another_file_counts_only_when_it_is_the_same() -> None:
    conf = "/etc/systemd/system.conf"
    same = host({PAM: b"", conf: b"[Manager]\nDefaultLimitNOFILE=4096\n"})
    assert content(planned(same, LimitsSpec(nofile=4096)), SYSTEMD) is None
    other = planned(host({conf: b"[Manager]\nDefaultLimitNOFILE=8192\n"}), LimitsSpec(nofile=4096))
    assert content(other, SYSTEMD) is not None
    evidence = [x for f in other.findings for x in f.evidence]
    assert f"DefaultLimitNOFILE: 8192 ({conf}:2)" in evidence


@pytest.mark.parametrize("path", [PAM, SYSTEMD])
def test_a_file_of_remedys_that_cannot_be_read_is_unknown_where_it_is_needed(path: str) -> None:
    state = host()
    state = state.model_copy(update={"files": {**state.files, path: Unknown(reason="I/O error")}})
    (finding,) = (f for f in planned(state, LimitsSpec(memlock=1 << 20)).findings
                  if f.kind is FindingKind.UNKNOWN)  # fmt: skip
    assert path in finding.title
    assert finding.evidence == ("I/O error",)
    assert planned(state, LimitsSpec()).findings == ()


@pytest.mark.parametrize("path", [PAM, SYSTEMD])
def test_a_file_that_nothing_asks_for_is_removed_and_named(path: str) -> None:
    plan = planned(host({path: b"# old\n"}), LimitsSpec())
    (finding,) = plan.findings
    assert path in finding.title
    assert path in plan.changes[0].title
    assert plan.changes[0].guarded is (path == PAM)
    assert content(plan, path) == b""


# --- what stands in the way ---


@pytest.mark.parametrize(("nr_open", "refused"), [(4095, True), (4096, False)])
def test_more_files_than_the_kernel_has_are_refused_with_both_numbers(
    nr_open: int, refused: bool
) -> None:
    plan = planned(host(nr_open=nr_open), LimitsSpec(nofile=4096))
    assert (plan.changes == ()) is refused
    if refused:
        (finding,) = plan.blocked("gpu01")
        assert "4096" in finding.title
        assert finding.evidence == ("fs.nr_open = 4095",)
        assert "limits.nofile" in finding.fix
        assert finding.label == "nofile-limit"


@pytest.mark.parametrize(
    "sysctls", [Unknown(reason="no"), Sysctls(live={}, persisted=(), unread=())]
)
def test_where_the_kernels_limit_is_not_known_nothing_is_written(sysctls: object) -> None:
    state = host().model_copy(update={"sysctls": sysctls})
    plan = planned(state, LimitsSpec(nofile=4096))
    assert plan.changes == ()
    (finding,) = (f for f in plan.findings if f.kind is FindingKind.UNKNOWN)
    assert finding.evidence[0] in ("no", "it was not read")
    assert planned(state, LimitsSpec(memlock=UNLIMITED)).changes


def test_what_the_next_boot_makes_of_the_kernels_limit_counts_too() -> None:
    line = SysctlSetting(key="fs.nr_open", value="2048", path="/etc/sysctl.d/9.conf", line=3)
    sysctls = Sysctls(live={"fs.nr_open": "1048576"}, persisted=(line,), unread=())
    plan = planned(host().model_copy(update={"sysctls": sysctls}), LimitsSpec(nofile=4096))
    assert plan.changes == ()
    (finding,) = plan.blocked("gpu01")
    assert finding.title == "after the next boot, nofile 4096 is more than fs.nr_open allows"
    assert finding.evidence == ("/etc/sysctl.d/9.conf:3: fs.nr_open = 2048",)


@pytest.mark.parametrize(
    ("path", "line", "named"),
    [
        (LATER, "* - memlock 64", True),
        (LATER, "root hard memlock 64", True),
        (LATER, "@gpu - memlock 64", True),
        (SITE, "alice - memlock 64", True),
        (MAIN, "alice - memlock 64", True),
        (SITE, "* - memlock 64", False),
        (SITE, "root - memlock 64", False),
        (MAIN, "* - memlock 64", False),
        (LATER, "%gpu - memlock 64", False),
        (LATER, "* - memlock 4096", False),
        (LATER, "* - nproc 4096", False),
    ],
)
def test_a_line_that_counts_before_remedys_and_gives_less_is_named(
    path: str, line: str, named: bool
) -> None:
    plan = planned(host({path: f"{line}\n".encode()}), LimitsSpec(memlock=1 << 20))
    blocked = plan.blocked("gpu01")
    assert bool(blocked) is named
    if named:
        assert path in blocked[0].title
        assert line.split()[0] in blocked[0].title
        assert "64 KiB" in blocked[0].title
        assert "memlock" in blocked[0].title
        assert blocked[0].evidence == (f"{path}:1",)
        assert "line 1" in blocked[0].fix
        assert PAM in blocked[0].fix
        assert blocked[0].label == "memlock-limit"


def test_a_session_and_a_service_that_have_less_than_the_files_give_are_reported() -> None:
    slurm = record(Unit, name="slurmd.service", memlock=65536)
    fine = record(Unit, name="sshd.service", memlock=UNLIMITED)
    unset = record(Unit, name="cron.service", memlock=None)
    conf = {SITE: GOOD, "/etc/systemd/system.conf": b"[Manager]\nDefaultLimitMEMLOCK=infinity\n"}
    units = {unit.name: unit for unit in (slurm, fine, unset)}
    plan = planned(host(conf, units=units), LimitsSpec(memlock=UNLIMITED))
    assert plan.changes == ()
    session, service = plan.findings
    assert (session.kind, service.kind) == (FindingKind.REPORT, FindingKind.REPORT)
    assert "memlock 8192 KiB" in session.title
    assert "UsePAM" in session.fix
    assert "slurmd.service" in service.title
    assert "64 KiB" in service.title
    assert (session.label, service.label) == ("memlock-limit", "memlock-limit")
    assert session.fix
    assert "LimitMEMLOCK" in service.fix
