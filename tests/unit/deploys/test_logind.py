"""logind and RemoveIPC: which line decides, when it is changed, and what is said."""

from __future__ import annotations

import pytest

from remedy.deploys._systemd import FALSE, deciding
from remedy.deploys.logind import PATH, TEXT, LogindSpec
from remedy.plan import CommandAction, FindingKind
from remedy.probe import File, HostState
from tests.unit.deploys.limits_bench import LOGIND, host, planned


def logind(text: str, path: str = LOGIND, **more: bytes) -> HostState:
    return host({path: text.encode(), **more}, gpu=True)


@pytest.mark.parametrize(
    ("files", "kwargs", "wanted"),
    [
        ({}, {}, None),
        ({}, {"gpu": True}, "systemd's default, no file says otherwise"),
        ({}, {"rdma": True, "os_id": "rocky"}, None),
        ({LOGIND: b"[Login]\n#RemoveIPC=yes\nRemoveIPC=no\n"}, {"gpu": True}, None),
        ({LOGIND: b"[Login]\nRemoveIPC=yes\n"}, {"gpu": True}, f"{LOGIND}:2"),
        (
            {LOGIND: b"RemoveIPC=no\n", "/usr/lib/systemd/logind.conf.d/5.conf": b"RemoveIPC = yes"},
            {"gpu": True},
            "/usr/lib/systemd/logind.conf.d/5.conf:1",
        ),
        ({}, {"gpu": True, "systemd": False}, None),
    ],
)  # fmt: skip
def test_when_logind_is_told(
    files: dict[str, bytes], kwargs: dict[str, object], wanted: str | None
) -> None:
    plan = planned(host(files, **kwargs), LogindSpec(), "logind")  # type: ignore[arg-type]
    assert [f.evidence for f in plan.findings] == ([(wanted,)] if wanted else [])
    assert len(plan.changes) == len(plan.findings)


def test_a_later_drop_in_is_named() -> None:
    later = "/etc/systemd/logind.conf.d/zz.conf"
    state = host({PATH: TEXT, later: b"[Login]\nRemoveIPC=yes\n"})
    (finding,) = planned(state, LogindSpec(remove_ipc=False), "logind").findings
    assert finding.kind is FindingKind.BLOCKED
    assert f"{later}:2" in finding.title


@pytest.mark.parametrize("word", ["1", "yes", "y", "true", "t", "on", "YES"])
def test_every_word_for_yes_removes(word: str) -> None:
    plan = planned(logind(f"[Login]\nRemoveIPC={word}\n"), LogindSpec(), "logind")
    assert len(plan.changes) == 1


@pytest.mark.parametrize("word", ["0", "no", "n", "false", "f", "off", "No"])
def test_every_word_for_no_keeps(word: str) -> None:
    assert planned(logind(f"[Login]\nRemoveIPC={word}\n"), LogindSpec(), "logind").findings == ()
    assert word.lower() in FALSE


@pytest.mark.parametrize("os_id", ["rhel", "centos", "rocky", "almalinux", "ol"])
def test_distributions_that_are_built_with_no_need_nothing(os_id: str) -> None:
    assert planned(host(gpu=True, os_id=os_id), LogindSpec(), "logind").findings == ()
    assert planned(host(gpu=True, os_id="fedora"), LogindSpec(), "logind").findings != ()


def test_the_step_for_logind_says_where_the_setting_stands_and_goes_back() -> None:
    plan = planned(logind("[Login]\nRemoveIPC=yes\n"), LogindSpec(), "logind")
    (finding,), (change,) = plan.findings, plan.changes
    assert finding.evidence == (f"{LOGIND}:2",)
    assert "RemoveIPC" in finding.title
    assert PATH in change.title
    action = change.action
    assert isinstance(action, CommandAction)
    assert action.before == "absent"
    assert PATH in action.observe
    assert "again 'b false'" in action.do
    assert "again 'b true'" in action.undo
    assert f"drop {PATH} {PATH}" in action.undo
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
