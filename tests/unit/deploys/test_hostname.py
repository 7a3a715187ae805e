"""Host names: what is wrong with them, what sets them right, and which ones collide though they differ."""

from __future__ import annotations

import shlex

import pytest

from remedy.deploys._cloud import cloud_setting
from remedy.deploys.hostname import CLOUD_FILE, CLOUD_TEXT, STATIC, HostnameSpec
from remedy.plan import CommandAction, FileAction, Finding, FindingKind, Fleet, Plan, make_plan
from remedy.probe import File, HostState
from remedy.values import Unknown
from tests.unit.build import WHEN, fleet, host_state, with_section

MAIN = "/etc/cloud/cloud.cfg"


def cloud(text: str, path: str = MAIN) -> File:
    return File(path=path, real_path=path, exists=True, content=text.encode())


def plan_of(*states: HostState, manage: bool = True) -> Plan:
    spec = with_section("hostname", HostnameSpec(manage=manage))
    return make_plan(fleet(*states, spec=spec), WHEN, only="hostname")


def of_host(plan: Plan, host: str | None = "a") -> list[Finding]:
    return [finding for finding in plan.findings if finding.host == host]


def titles(plan: Plan, host: str | None = "a") -> str:
    return "\n".join(finding.title for finding in of_host(plan, host))


def test_a_right_name_needs_nothing() -> None:
    plan = plan_of(host_state("a", "10.0.0.1"), host_state("b", "10.0.0.2"))
    assert (plan.findings, plan.changes) == ((), ())


def test_the_running_and_the_static_name_are_set_each_where_it_is_wrong() -> None:
    plan = plan_of(host_state("a", "10.0.0.1", running="old", static="other"))
    command, file = (change.action for change in plan.changes)
    assert isinstance(command, CommandAction)
    assert (command.observe, command.before, command.after) == ("uname -n", "old", "a")
    assert "hostname a" in command.do
    assert "hostnamectl --transient set-hostname a" in command.do
    assert "hostname old" in command.undo
    assert file.kind == "file"
    assert file.path == STATIC
    assert plan.contents[str(file.after)] == b"a\n"
    assert [change.label for change in plan.changes] == ["duplicate-hostname"] * 2
    assert "'a'" in plan.changes[0].title
    assert "'a'" in plan.changes[1].title
    assert STATIC in plan.changes[1].title
    assert plan.changes[0].disrupts
    assert [change.reason for change in plan.changes] == [plan.findings[0].title] * 2


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"other\n", b"a\n"),
        (b"", b"a\n"),
        (b"\n", b"a\n"),
        (b"# asset 4711\nother\n", b"# asset 4711\na\n"),
        (b"# asset 4711", b"# asset 4711\na\n"),
        (b"# asset 4711\n\nother\n# rack 3\nanother\n", b"# asset 4711\na\n# rack 3\n"),
    ],
)
def test_comments_beside_the_name_stay(before: bytes, after: bytes) -> None:
    there = File(path=STATIC, real_path=STATIC, exists=True, content=before)
    plan = plan_of(host_state("a", "10.0.0.1", static="other", files={STATIC: there}))
    (change,) = plan.changes
    assert isinstance(change.action, FileAction)
    assert plan.contents[str(change.action.after)] == after


@pytest.mark.parametrize(
    ("running", "static", "count"), [("x", "a", 1), ("a", "x", 1), ("a", "a", 0)]
)
def test_only_the_name_that_is_wrong_is_changed(running: str, static: str, count: int) -> None:
    plan = plan_of(host_state("a", "10.0.0.1", running=running, static=static))
    assert len(plan.changes) == len(plan.findings) == count


def test_what_is_wrong_is_said_with_both_names() -> None:
    plan = plan_of(host_state("a", "10.0.0.1", running="old", static=""))
    running, static = of_host(plan)
    assert (running.kind, static.kind) == (FindingKind.DRIFT, FindingKind.DRIFT)
    for word in ("running", "'old'", "'a'"):
        assert word in running.title
    assert "static" in static.title
    assert "next boot" in static.title


def test_a_name_that_others_have_is_said_with_their_number() -> None:
    others = [
        host_state(name, f"10.0.0.{n}", running="node.x", static=name)
        for n, name in enumerate("bcd", 2)
    ]
    plan = plan_of(host_state("a", "10.0.0.1", running="NODE", static="b"), *others)
    running, static = of_host(plan)
    assert "'NODE'" in running.title
    assert "3 other hosts" in running.title
    # The name that the inventory gives to another host counts as used, also where that host has a wrong one.
    assert "1 other host " in static.title


def test_a_name_is_not_its_own_twin() -> None:
    unread = host_state("b", "10.0.0.2").model_copy(update={"identity": Unknown(reason="no")})
    plan = plan_of(host_state("a", "10.0.0.1", running="b"), unread)
    assert "other host" not in titles(plan)


def test_without_manage_everything_is_only_reported() -> None:
    wrong = host_state("a", "10.0.0.1", running="old", files={MAIN: cloud("")})
    plan = plan_of(wrong, manage=False)
    assert plan.changes == ()
    assert {finding.kind for finding in of_host(plan)} == {FindingKind.REPORT}
    assert len(of_host(plan)) == 2
    assert {finding.kind for finding in of_host(plan_of(wrong))} == {FindingKind.DRIFT}


def test_the_name_of_a_host_that_cannot_be_read_is_unknown() -> None:
    blind = host_state("a", "10.0.0.1").model_copy(update={"identity": Unknown(reason="no answer")})
    (finding,) = plan_of(blind).findings
    assert (finding.kind, finding.evidence) == (FindingKind.UNKNOWN, ("no answer",))


def test_cloud_init_is_told_by_a_file_of_its_own() -> None:
    plan = plan_of(host_state("a", "10.0.0.1", files={MAIN: cloud("preserve_hostname: false\n")}))
    (finding,) = plan.findings
    assert "cloud-init" in finding.title
    assert finding.evidence == (f"{MAIN}: preserve_hostname: False",)
    (change,) = plan.changes
    assert change.action.kind == "file"
    assert change.action.path == CLOUD_FILE
    assert CLOUD_FILE in change.title
    assert plan.contents[str(change.action.after)] == CLOUD_TEXT
    told = File(path=CLOUD_FILE, real_path=CLOUD_FILE, exists=True, content=CLOUD_TEXT)
    assert (
        plan_of(host_state("a", "10.0.0.1", files={MAIN: cloud(""), CLOUD_FILE: told})).changes
        == ()
    )


DROP = "/etc/cloud/cloud.cfg.d"


@pytest.mark.parametrize(
    ("files", "value", "place"),
    [
        ({MAIN: "key: 1\n"}, 1, MAIN),
        ({MAIN: "other: 1\n"}, None, "not set"),
        ({MAIN: "key: 1\n", f"{DROP}/10-a.cfg": "key: 2\n"}, 2, "10-a.cfg"),
        (
            {MAIN: "key: 1\n", f"{DROP}/10-a.cfg": "key: 2\n", f"{DROP}/05-b.cfg": "key: 3\n"},
            2,
            "10-a.cfg",
        ),
        ({MAIN: "key: 1\n", f"{DROP}/10-a.cfg": "key: [\n"}, 1, MAIN),
        ({MAIN: "key: 1\n", f"{DROP}/10-a.cfg": "- key\n"}, 1, MAIN),
        (
            {MAIN: "key: 1\n", f"{DROP}/10-a.cfg": "key: null\n", f"{DROP}/20-b.cfg": "x: 1\n"},
            None,
            "10-a",
        ),
    ],
)
def test_of_cloud_inits_files_the_last_word_counts(
    files: dict[str, str], value: object, place: str
) -> None:
    state = host_state(
        "a", "10.0.0.1", files={path: cloud(text, path) for path, text in files.items()}
    )
    found = cloud_setting(state, "key")
    assert found is not None
    assert found[0] == value
    assert place in found[1]
    assert "key" in found[1]


def test_files_that_are_not_there_or_not_readable_say_nothing() -> None:
    assert cloud_setting(host_state("a", "10.0.0.1"), "key") is None
    unread = host_state("a", "10.0.0.1", files={MAIN: Unknown(reason="no")})
    assert cloud_setting(unread, "key") is None
    bytes_ = File(path=f"{DROP}/10-a.cfg", real_path="", exists=True, content=b"\xff\xfe\xff")
    gone = File(path=f"{DROP}/20-b.cfg", real_path="", exists=False, content=b"key: 9\n")
    files: dict[str, File | Unknown] = {
        MAIN: cloud("key: 1\n"),
        bytes_.path: bytes_,
        gone.path: gone,
        f"{DROP}/30.cfg": Unknown(reason="x"),
    }
    found = cloud_setting(host_state("a", "10.0.0.1", files=files), "key")
    assert found is not None
    assert found[0] == 1


# --- names that differ and collide all the same -------------------------------------------------------------


def fleetwide(*names: str, ids: tuple[str, ...] = ()) -> list[Finding]:
    states = [
        host_state(name, f"10.0.0.{n}", machine_id=ids[n - 1] if ids else "")
        for n, name in enumerate(names, 1)
    ]
    plan = plan_of(*states)
    assert all(
        finding.kind is FindingKind.REPORT and finding.fix for finding in of_host(plan, None)
    )
    return of_host(plan, None)


def test_two_names_with_one_short_name_collide() -> None:
    (finding,) = fleetwide("gpu.a.org", "GPU.b.org", "gpu2.a.org")
    assert finding.evidence == ("gpu.a.org", "GPU.b.org")
    assert finding.title.startswith("2 hosts")
    assert "'gpu'" in finding.title


@pytest.mark.parametrize(
    ("names", "pairs"),
    [
        (("w", "w-1"), [("w", "w-1")]),
        (("W", "w-1-2"), [("W", "w-1-2")]),
        (("w-1", "w-1-2", "w"), [("w", "w-1"), ("w", "w-1-2"), ("w-1", "w-1-2")]),
        (("w", "w1"), []),
        (("w-1", "w-12"), []),
        (("-w", "w"), []),
    ],
)
def test_a_name_that_another_begins_with_before_a_hyphen_collides(
    names: tuple[str, ...], pairs: list[tuple[str, str]]
) -> None:
    found = fleetwide(*names)
    assert sorted(finding.evidence for finding in found) == pairs
    for finding, (shorter, longer) in zip(
        sorted(found, key=lambda f: f.evidence), pairs, strict=True
    ):
        assert repr(shorter) in finding.title
        assert repr(longer) in finding.title


def test_hosts_with_one_machine_id_are_named() -> None:
    (finding,) = fleetwide("a", "b", "c", "d", ids=("x", "y", "x", ""))
    assert finding.evidence == ("a", "c")
    assert finding.title.startswith("2 hosts")
    assert "machine-id" in finding.fix
    assert fleetwide("a", "b", ids=("", "")) == []


def test_a_name_is_set_as_one_word() -> None:
    plan = plan_of(host_state("a", "10.0.0.1", running="$(reboot)"))
    action = plan.changes[0].action
    assert isinstance(action, CommandAction)
    assert "$(reboot)" in shlex.split(action.undo.partition("then ")[2].partition(";")[0])


def test_a_fleet_of_hosts_that_were_not_read_has_no_collisions() -> None:
    states = [host_state(n, f"10.0.0.{i}", machine_id="x") for i, n in enumerate("ab", 1)]
    blind = [state.model_copy(update={"identity": Unknown(reason="no")}) for state in states]
    found = fleet(*states)
    unread = Fleet(found.inventory, {state.host: state for state in blind}, found.spec)
    assert of_host(make_plan(unread, WHEN, only="hostname"), None) == []
