"""Limits and logind: what is decided from files, sessions and hardware."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.deploys.limits import PAM, SYSTEMD, LimitsSpec
from remedy.deploys.logind import PATH, TEXT, LogindSpec
from remedy.edit.limits import UNLIMITED, at_least, decides, parse_limits_file
from remedy.errors import SpecError
from remedy.plan import (
    FileAction,
    FindingKind,
    Plan,
    inverse,
    make_plan,
    promised,
    section_models,
)
from remedy.probe import (
    File,
    Gpus,
    HostState,
    Identity,
    Limit,
    LoginSession,
    PciDevice,
    RdmaPort,
    Sysctls,
    Unit,
)
from remedy.spec import SpecSection, load_spec
from tests.unit.build import fleet, host_state, record, with_section
from tests.unit.plans import WHEN

MAIN = "/etc/security/limits.conf"
SITE = "/etc/security/limits.d/50-site.conf"
LATER = "/etc/security/limits.d/zz.conf"
LOGIND = "/etc/systemd/logind.conf"
GPU = PciDevice("0000:01:00.0", "10de", "2330", "0302")
PORT = RdmaPort("mlx5_0", 1, "ACTIVE", "LinkUp", 400.0, "InfiniBand", "", (), {})
GOOD = b"* - memlock unlimited\nroot - memlock unlimited\n"


def host(
    files: Mapping[str, bytes] | None = None,
    *,
    rdma: bool = False,
    gpu: bool = False,
    memlock: int = 8 << 20,
    nofile: int = 1048576,
    nr_open: int = 1048576,
    os_id: str = "debian",
    systemd: bool = True,
    units: Mapping[str, Unit] | None = None,
) -> HostState:
    known = {
        path: File(path=path, real_path=path, exists=False) for path in (PAM, SYSTEMD, PATH, MAIN)
    }
    known |= {
        path: File(path=path, real_path=path, exists=True, content=content)
        for path, content in (files or {}).items()
    }
    present = frozenset(("/run/systemd/system",)) if systemd else frozenset()
    return host_state("gpu01", "10.0.0.1", files=known).model_copy(
        update={
            "identity": record(Identity, os_id=os_id, static_name="gpu01", transient_name="gpu01"),
            "session": record(LoginSession, homes=(), programs={}, present=present),
            "gpus": record(Gpus, pci=(GPU,) if gpu else ()),
            "rdma": (PORT,) if rdma else (),
            "limits": {"memlock": Limit(memlock, memlock), "nofile": Limit(1024, nofile)},
            "sysctls": Sysctls(live={"fs.nr_open": str(nr_open)}, persisted=(), unread=()),
            "units": dict(units or {}),
        }
    )


def planned(state: HostState, spec: SpecSection, name: str = "limits") -> Plan:
    return make_plan(fleet(state, spec=with_section(name, spec)), WHEN, only=name)


def content(plan: Plan, path: str) -> bytes | None:
    for change in plan.changes:
        assert isinstance(change.action, FileAction)
        if change.action.path == path:
            return b"" if change.action.after is None else plan.contents[change.action.after]
    return None


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
        ("limits: {memlock: 32 elephants}", "limits.memlock.*neither a size"),
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


SIZES = [("64g", 64 << 30), ("unlimited", -1), ("8 MiB", 8 << 20)]


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


LINES = st.lists(
    st.sampled_from([b"* - memlock 64\n", b"root - memlock unlimited\n", b"* hard nofile 512\n",
                     b"\xff\n", b"* - memlock unlimited\n", b"root - nofile 200000\n"]),
    max_size=4,
).map(b"".join)  # fmt: skip
SPECS = st.builds(
    LimitsSpec,
    memlock=st.sampled_from([None, UNLIMITED, 1 << 30]),
    nofile=st.sampled_from([None, 4096, 131072]),
)


@given(st.fixed_dictionaries({}, optional={MAIN: LINES, SITE: LINES, PAM: LINES}), SPECS,
       st.booleans(), st.booleans(), st.booleans())  # fmt: skip
def test_any_host_converges_in_one_plan_and_undoes(
    files: dict[str, bytes], spec: LimitsSpec, rdma: bool, gpu: bool, ipc: bool
) -> None:
    state = host(files, rdma=rdma, gpu=gpu, memlock=65536, nofile=512)
    both = with_section("limits", spec)
    both.sections["logind"] = LogindSpec(remove_ipc=False if ipc else None)
    before = fleet(state, spec=both)
    for name in ("limits", "logind"):
        plan = make_plan(before, WHEN, only=name)
        after = promised(before, plan)
        again = make_plan(after, WHEN, only=name)
        assert again.changes == ()
        assert not again.blocked("gpu01")
        assert not [f for f in again.findings if f.kind is FindingKind.DRIFT]
        assert bool(plan.changes) is any(f.kind is FindingKind.DRIFT for f in plan.findings)
        undo = plan.model_copy(update={"changes": inverse(plan.changes)})
        back = promised(after, undo).states["gpu01"]
        for path, file in state.files.items():
            old = back.files[path]
            assert isinstance(old, File)
            assert isinstance(file, File)
            assert (old.exists, old.content) == (file.exists, file.content)
