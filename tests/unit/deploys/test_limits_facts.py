"""Limits and logind: what findings and changes say, and the borders at which they are made."""

from __future__ import annotations

import pytest

from remedy.deploys._systemd import FALSE, deciding
from remedy.deploys.limits import NOFILE, PAM, SYSTEMD, LimitsSpec
from remedy.deploys.logind import PATH, TEXT, LogindSpec
from remedy.edit.limits import UNLIMITED
from remedy.plan import CommandAction, FindingKind
from remedy.probe import File, HostState, Limit, RdmaPort, Sysctls, Unit
from remedy.values import Unknown
from tests.unit.build import record
from tests.unit.deploys.test_limits import GOOD, LATER, SITE, content, host, planned

MAIN = "/etc/security/limits.conf"


def limited(state: HostState, item: str, hard: int) -> HostState:
    assert not isinstance(state.limits, Unknown)
    return state.model_copy(update={"limits": {**state.limits, item: Limit(hard, hard)}})


# --- which limits are needed --------------------------------------------------------------------------------


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


def test_what_remedy_gave_once_stays_though_sessions_now_have_it() -> None:
    files = {PAM: b"* - memlock unlimited\n", SYSTEMD: b""}
    state = limited(host(files, rdma=True, systemd=False), "memlock", UNLIMITED)
    plan = planned(state, LimitsSpec())
    assert b"memlock" in (content(plan, PAM) or b"")


# --- what is written ----------------------------------------------------------------------------------------


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


# --- what stands in the way ---------------------------------------------------------------------------------


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
def test_where_the_kernels_limit_is_not_known_it_refuses_nothing(sysctls: object) -> None:
    state = host().model_copy(update={"sysctls": sysctls})
    assert planned(state, LimitsSpec(nofile=4096)).changes


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
        (LATER, "* - nproc 64", False),
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


# --- logind -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["1", "yes", "y", "true", "t", "on", "YES"])
def test_every_word_for_yes_removes(word: str) -> None:
    plan = planned(logind(f"[Login]\nRemoveIPC={word}\n"), LogindSpec(), "logind")
    assert len(plan.changes) == 1


@pytest.mark.parametrize("word", ["0", "no", "n", "false", "f", "off", "No"])
def test_every_word_for_no_keeps(word: str) -> None:
    assert planned(logind(f"[Login]\nRemoveIPC={word}\n"), LogindSpec(), "logind").findings == ()
    assert word.lower() in FALSE


CONF = "/etc/systemd/logind.conf"


def logind(text: str, path: str = CONF, **more: bytes) -> HostState:
    return host({path: text.encode(), **more}, gpu=True)


@pytest.mark.parametrize("os_id", ["rhel", "centos", "rocky", "almalinux", "ol"])
def test_distributions_that_are_built_with_no_need_nothing(os_id: str) -> None:
    assert planned(host(gpu=True, os_id=os_id), LogindSpec(), "logind").findings == ()
    assert planned(host(gpu=True, os_id="fedora"), LogindSpec(), "logind").findings != ()


def test_the_step_for_logind_says_where_the_setting_stands_and_goes_back() -> None:
    plan = planned(logind("[Login]\nRemoveIPC=yes\n"), LogindSpec(), "logind")
    (finding,), (change,) = plan.findings, plan.changes
    assert finding.evidence == (f"{CONF}:2",)
    assert "RemoveIPC" in finding.title
    assert PATH in change.title
    action = change.action
    assert isinstance(action, CommandAction)
    assert action.before == "absent"
    assert PATH in action.observe
    assert "again 'b false'" in action.do
    assert "again 'b true'" in action.undo
    assert f"rm -f {PATH}" in action.undo
    assert "RemoveIPC" in action.do
    (default,) = planned(host(gpu=True), LogindSpec(), "logind").findings
    assert "default" in default.evidence[0]


def test_a_later_drop_in_is_named_with_its_line() -> None:
    later = "/etc/systemd/logind.conf.d/zz.conf"
    state = host({PATH: TEXT, later: b"[Login]\nRemoveIPC=yes\n"}, gpu=True)
    (finding,) = planned(state, LogindSpec(), "logind").blocked("gpu01")
    assert f"{later}:2" in finding.title
    assert PATH in finding.title
    assert "name" in finding.fix


@pytest.mark.parametrize(
    ("state", "setting", "changes"),
    [
        (host(gpu=True), None, 1),
        (host(rdma=True), None, 1),
        (host(), None, 0),
        (host(), False, 1),
        (host(gpu=True), True, 0),
        (host(gpu=True, systemd=False), False, 0),
    ],
)
def test_logind_is_told_where_there_is_hardware_or_the_user_asks(
    state: HostState, setting: bool | None, changes: int
) -> None:
    assert len(planned(state, LogindSpec(remove_ipc=setting), "logind").changes) == changes


def test_drop_ins_count_by_their_names_and_a_file_in_etc_hides_its_namesakes() -> None:
    def state(**files: str) -> HostState:
        return host({path.replace("__", "/"): text.encode() for path, text in files.items()})

    found = state(
        **{
            "/etc/systemd/x.conf": "[M]\nKey=1\n",
            "/usr/lib/systemd/x.conf": "Key=9\n",
            "/usr/lib/systemd/x.conf.d/20.conf": "Key=2\n",
            "/run/systemd/x.conf.d/10.conf": " Key = 3 \n#Key=4\nOther=5\n",
            "/etc/systemd/x.conf.d/20.conf": "# hidden\n",
        }
    )
    line = deciding(found, "x.conf", "Key")
    assert line is not None
    assert (line.path, line.number, line.value) == ("/run/systemd/x.conf.d/10.conf", 1, "3")
    assert line.shown == "/run/systemd/x.conf.d/10.conf:1"
    without = deciding(found, "x.conf", "Key", without="/run/systemd/x.conf.d/10.conf")
    assert without is not None
    assert (without.path, without.number, without.value) == ("/etc/systemd/x.conf", 2, "1")
    assert deciding(found, "x.conf", "Absent") is None
    assert deciding(found, "y.conf", "Key") is None


def test_files_that_are_not_there_decide_nothing() -> None:
    gone = File(path="/etc/systemd/x.conf", real_path="", exists=False, content=b"Key=1\n")
    state = host().model_copy(update={"files": {gone.path: gone}})
    assert deciding(state, "x.conf", "Key") is None
