"""Planning: what is found leads to changes, and the state that a plan promises needs none."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.deploys.hostname import HostnameSpec
from remedy.deploys.hosts_file import HostsFileSpec
from remedy.edit.hosts import block_entries, foreign_entries
from remedy.plan import (
    FileAction,
    Finding,
    FindingKind,
    Fleet,
    Plan,
    inverse,
    make_plan,
    promised,
)
from remedy.probe import File, HostState, Names
from remedy.probe.state import NOT_PROBED
from remedy.values import Unknown
from tests.unit.build import WHEN, fleet, host_state, with_section

LINE_127 = b"127.0.0.1\tlocalhost\n127.0.1.1\tnode\n"


def resolve(content: bytes, names: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Answer as the `files` service of a resolver does: every IPv4 address the file has for a name."""
    lines = [*foreign_entries(content), *block_entries(content)]
    return {
        name: tuple(
            line.address for line in lines if name.lower() in line.names and ":" not in line.address
        )
        for name in names
    }


def blocked(plan: Plan, host: str) -> tuple[Finding, ...]:
    """Return what blocks a host, without the groups of facts that the hosts of these tests leave out."""
    return tuple(f for f in plan.blocked(host) if f.evidence != (NOT_PROBED.reason,))


def broken(count: int = 3) -> Fleet:
    names = tuple(f"gpu{n:02d}" for n in range(1, count + 1))
    return fleet(
        *(
            host_state(
                name,
                f"10.0.0.{n}",
                hosts=LINE_127,
                static="node",
                running="node",
                peers=resolve(LINE_127, names),
            )
            for n, name in enumerate(names, 1)
        )
    )


def test_careless_images_get_names_and_entries() -> None:
    plan = make_plan(broken(), WHEN)
    for host in ("gpu01", "gpu02", "gpu03"):
        assert [c.remedy for c in plan.for_host(host)] == ["hosts_file", "hostname", "hostname"]
        assert [c.id for c in plan.for_host(host)] == [
            "01-hosts_file",
            "02-hostname",
            "03-hostname",
        ]
    titles = [f.title for f in plan.findings]
    assert "the running host name 'node' is used by 2 other hosts too" in titles


def test_what_a_plan_promises_needs_no_plan() -> None:
    before = broken()
    after = promised(before, make_plan(before, WHEN))
    again = make_plan(after, WHEN)
    assert again.changes == ()
    assert [f for f in again.findings if f.kind is FindingKind.DRIFT] == []
    assert [f for name in before.inventory.names for f in blocked(again, name)] == []


def test_every_digest_of_a_plan_has_its_bytes() -> None:
    plan = make_plan(broken(), WHEN)
    files = [c.action for c in plan.changes if isinstance(c.action, FileAction)]
    digests = {digest for file in files for digest in (file.before, file.after)} - {None}
    assert digests
    assert digests <= plan.contents.keys()


def test_a_node_that_left_is_dropped_and_a_node_that_is_down_is_kept() -> None:
    before = broken(3)
    after = promised(before, make_plan(before, WHEN))
    smaller = fleet(*list(after.states.values())[:2], absent=("gpu09",))
    plan = make_plan(smaller, WHEN)
    content = plan.contents[plan.for_host("gpu01")[0].action.after].decode()  # type: ignore[index]
    assert "gpu03" not in content
    assert "10.0.0.200\tgpu09" in content
    assert any("left the inventory" in f.title for f in plan.findings)


def test_a_node_that_was_not_looked_at_keeps_the_address_it_has() -> None:
    before = broken(3)
    after = promised(before, make_plan(before, WHEN))
    limited = fleet(*list(after.states.values())[:2], absent=("gpu03",))
    assert limited.addresses["gpu03"].address == "10.0.0.200"
    assert make_plan(limited, WHEN).changes == ()


def test_the_long_form_of_the_own_name_stays_the_canonical_one() -> None:
    line = b"127.0.1.1 gpu01.example.org gpu01\n"
    state = host_state("gpu01", "10.0.0.1", hosts=line, peers={"gpu01": ("127.0.1.1",)})
    before = fleet(state, host_state("gpu02", "10.0.0.2"))
    plan = make_plan(before, WHEN)
    content = plan.contents[plan.for_host("gpu01")[0].action.after]  # type: ignore[index]
    assert b"10.0.0.1\tgpu01.example.org gpu01\n" in content
    assert make_plan(promised(before, plan), WHEN).changes == ()


def test_a_resolver_that_disagrees_with_a_right_file_blocks() -> None:
    before = broken(2)
    after = promised(before, make_plan(before, WHEN))
    state = after.states["gpu01"]
    assert isinstance(state.names, Names)
    lying = state.model_copy(
        update={"names": Names(local=(), peers={**state.names.peers, "gpu02": ("10.9.9.9",)})}
    )
    plan = make_plan(Fleet(after.inventory, {**after.states, "gpu01": lying}, after.spec), WHEN)
    (finding,) = blocked(plan, "gpu01")
    assert finding.title == "names do not resolve to the cluster address: gpu02"
    assert finding.evidence == ("gpu02: 10.9.9.9, expected 10.0.0.2",)
    assert blocked(plan, "gpu02") == ()


@pytest.mark.parametrize(
    ("update", "words"),
    [({"immutable": True}, "chattr"), ({"read_only": True}, "read-only")],
)
def test_a_file_that_cannot_be_changed_blocks_in_words(update: dict[str, bool], words: str) -> None:
    before = broken(2)
    state = before.states["gpu01"]
    hosts = state.files["/etc/hosts"].model_copy(update=update)
    locked = state.model_copy(update={"files": {**state.files, "/etc/hosts": hosts}})
    plan = make_plan(Fleet(before.inventory, {**before.states, "gpu01": locked}, before.spec), WHEN)
    assert any(words in f.title for f in plan.blocked("gpu01"))
    assert "hosts_file" not in [c.remedy for c in plan.for_host("gpu01")]
    assert "hosts_file" in [c.remedy for c in plan.for_host("gpu02")]


@pytest.mark.parametrize(
    "header",
    [b"# This file is managed by Puppet. DO NOT EDIT.\n", b"# Generated by NetworkManager\n"],
)
def test_a_file_that_another_program_writes_again_is_refused_in_words(header: bytes) -> None:
    hosts = header + LINE_127
    plan = make_plan(fleet(host_state("gpu01", "10.0.0.1", hosts=hosts)), WHEN)
    assert any("would write it again" in f.title for f in plan.blocked("gpu01"))
    assert plan.changes == ()


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("manage_etc_hosts: true\n", True),
        ("manage_etc_hosts: localhost\n", True),
        ("manage_etc_hosts: false\n", False),
        ("x: 1\n", False),
    ],
)
def test_cloud_init_that_writes_the_hosts_file_at_boot_is_told(text: str, blocks: bool) -> None:
    path = "/etc/cloud/cloud.cfg"
    cloud = File(path=path, real_path=path, exists=True, content=text.encode())
    plan = make_plan(
        fleet(host_state("gpu01", "10.0.0.1", files={path: cloud})), WHEN, only="hosts_file"
    )
    told = any("replaces /etc/hosts at each boot" in f.title for f in plan.blocked("gpu01"))
    assert told is blocks


def test_unknown_is_never_fine() -> None:
    before = broken(2)
    blind = before.states["gpu01"].model_copy(
        update={
            "identity": Unknown(reason="no answer"),
            "names": Unknown(reason="getent is not installed"),
            "files": {},
        }
    )
    plan = make_plan(Fleet(before.inventory, {**before.states, "gpu01": blind}, before.spec), WHEN)
    assert plan.for_host("gpu01") == ()
    assert len(blocked(plan, "gpu01")) >= 2


def test_without_manage_nothing_is_changed_and_everything_is_told() -> None:
    spec = with_section("hosts_file", HostsFileSpec(manage=False))
    spec.sections["hostname"] = HostnameSpec(manage=False)
    plan = make_plan(fleet(*broken().states.values(), spec=spec), WHEN)
    assert plan.changes == ()
    assert len(plan.findings) >= 3


@pytest.mark.parametrize(
    ("settings_text", "resets"),
    [
        ("", True),
        ("preserve_hostname: false\n", True),
        ("preserve_hostname: true\n", False),
        ("preserve_hostname: {{ jinja }}\n", True),
    ],
)
def test_cloud_init_is_told_to_leave_the_name_alone(settings_text: str, resets: bool) -> None:
    path = "/etc/cloud/cloud.cfg"
    cloud = File(path=path, real_path=path, exists=True, content=settings_text.encode())
    plan = make_plan(
        fleet(host_state("gpu01", "10.0.0.1", files={path: cloud})), WHEN, only="hostname"
    )
    assert bool(plan.changes) is resets


def test_names_that_collide_in_part_are_reported() -> None:
    states = [
        host_state(name, f"10.0.0.{n}", machine_id="same")
        for n, name in enumerate(("worker-0", "worker-0-1", "gpu.a", "gpu.b"), 1)
    ]
    titles = [f.title for f in make_plan(fleet(*states), WHEN).findings if f.host is None]
    assert "the name 'worker-0' is the beginning of 'worker-0-1'" in titles
    assert "2 hosts of the inventory have the short name 'gpu'" in titles
    assert "4 hosts have one machine-id, as cloned images do" in titles


READING = (
    "open",
    "os.listdir",
    "os.scandir",
    "socket.",
    "subprocess.",
    "os.exec",
    "os.posix_spawn",
)


@pytest.fixture(scope="module")
def events() -> Iterator[list[str]]:
    """What the interpreter says of files, sockets and programs; an audit hook stays for good."""
    seen: list[str] = []
    listening = True

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if listening and event.startswith(READING):
            seen.append(f"{event} {arguments[0] if arguments else ''}")

    sys.addaudithook(hook)
    yield seen
    listening = False


def test_planning_reads_nothing(events: list[str], tmp_path: Path) -> None:
    before = broken(2)
    make_plan(before, WHEN)  # imports what it needs
    events.clear()
    make_plan(before, WHEN)
    assert events == []
    tmp_path.joinpath("seen").write_text("the hook hears of a file that pathlib opens")
    assert events != []


host_files = st.lists(
    st.sampled_from(
        [
            b"127.0.0.1\tlocalhost\n",
            b"127.0.1.1\tnode\n",
            b"127.0.1.1\tgpu01.example.org gpu01\n",
            b"10.0.0.77\tgpu02\n",
            b"10.0.0.2\tgpu02\n",
            b"::1 gpu03 ip6-localhost\n",
            b"# BEGIN remedy: hosts of the cluster (this block is replaced as a whole)\n",
            b"# END remedy\n",
            b"10.0.0.9\tgone\n",
            b"\xff\xfe\n",
            b"{{ 7*7 }} $(id)\r\n",
            b"no newline",
        ]
    ),
    max_size=8,
).map(b"".join)
host_names = st.sampled_from(["", "node", "gpu01", "gpu02", "gpu03", "localhost"])


@given(st.lists(st.tuples(host_files, host_names, host_names), min_size=1, max_size=4))
def test_any_fleet_converges_in_one_plan_and_undoes(
    hosts: list[tuple[bytes, str, str]],
) -> None:
    names = tuple(f"gpu{n:02d}" for n in range(1, len(hosts) + 1))
    before = fleet(
        *(
            host_state(
                name,
                f"10.0.0.{n}",
                hosts=content,
                static=static,
                running=running,
                peers=resolve(content, names),
            )
            for n, (name, (content, static, running)) in enumerate(
                zip(names, hosts, strict=True), 1
            )
        )
    )
    plan = make_plan(before, WHEN)
    after = promised(before, plan)
    again = make_plan(after, WHEN)
    assert again.changes == ()
    assert not any(blocked(again, name) for name in names)
    named = {f.host for f in plan.findings}
    assert {c.host for c in plan.changes} <= named, "a change without a finding"
    undo = plan.model_copy(
        update={"changes": tuple(c for name in names for c in inverse(plan.for_host(name)))}
    )
    back = promised(after, undo)
    for name in names:
        assert _files(back.states[name]) == _files(before.states[name])


def _files(state: HostState) -> dict[str, tuple[bool, bytes]]:
    return {
        path: (file.exists, file.content)
        for path, file in state.files.items()
        if isinstance(file, File)
    }
