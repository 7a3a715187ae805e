"""Whoever may write plans and signatures, and not the inventory, changes no host alone."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from remedy.apply import script
from remedy.apply.job import Job, Once
from remedy.audit.approval import NAMESPACE, PLANNER, require, sign
from remedy.cli.main import main
from remedy.errors import RefusedError, StaleError
from remedy.inventory import Inventory, Node
from remedy.plan import Plan, make_plan, section_models, write_plan
from remedy.plan.planner import Origin
from remedy.runs.probe import ProbeResult
from remedy.runs.saved import check_machines
from remedy.spec import load_spec
from tests.unit import host_bench
from tests.unit.build import fleet, host_state
from tests.unit.host_bench import SHELLS, Bench, shell_of


def key(folder: Path, who: str, purposes: str) -> Path:
    path = folder / who.partition("@")[0].replace(".", "")
    if not path.exists():
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)]
        subprocess.run(command, check=True)
    with (folder / "allowed_signers").open("a") as file:
        file.write(f'{who} namespaces="{purposes}" {path.with_suffix(".pub").read_text()}')
    return path


def plan(author: str = "mallory@box") -> Plan:
    return Plan(
        tool_version="0",
        created="2026-01-01T00:00:00Z",
        author=author,
        inventory="inventory.py",
        inventory_digest="0",
        spec_digest="0",
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_plan(plan(), tmp_path / "plan.json")
    return tmp_path / "plan.json"


def checked(path: Path, count: int = 1) -> tuple[str, ...]:
    signers = path.with_name("allowed_signers")
    return tuple(a.principal for a in require(plan(), path, signers, count)[1])


def test_who_planned_is_no_approver_whatever_the_author_is_called(path: Path) -> None:
    both = f"{NAMESPACE},{PLANNER}"
    mine = key(path.parent, "m.allory@example.org", both)
    sign(plan(), path, mine)
    with pytest.raises(RefusedError, match="has not signed it as its planner"):
        checked(path)
    sign(plan(), path, mine, planner=True)
    with pytest.raises(RefusedError, match="the planner's own"):
        checked(path)
    sign(plan(), path, key(path.parent, "bob@example.org", both))
    assert checked(path) == ("bob@example.org",)


def test_a_principal_in_two_spellings_is_one_person(path: Path) -> None:
    sign(plan(), path, key(path.parent, "ann@example.org", PLANNER), planner=True)
    for spelling in ("bob@example.org", "BOB@example.org"):
        sign(plan(), path, key(path.parent, spelling, NAMESPACE))
    assert len(checked(path, 1)) == 1
    with pytest.raises(RefusedError, match="2 approvals are required"):
        checked(path, 2)


def test_one_key_is_not_two_people(path: Path) -> None:
    mine = key(path.parent, "mal@example.org", PLANNER)
    with (path.parent / "allowed_signers").open("a") as file:
        file.write(
            f'bob@example.org namespaces="{NAMESPACE}" {mine.with_suffix(".pub").read_text()}'
        )
    sign(plan(), path, mine, planner=True)
    sign(plan(), path, mine)
    with pytest.raises(RefusedError, match="valid ones are from nobody"):
        checked(path)


def test_what_lies_beside_a_plan_keeps_nobody_waiting(path: Path) -> None:
    """Whoever may write signatures may also put a pipe there, an endless file, or thousands of them."""
    folder = path.parent
    sign(plan(), path, key(folder, "ann@here", PLANNER), planner=True)
    sign(plan(), path, key(folder, "bob@here", NAMESPACE))
    os.mkfifo(folder / "plan.json.a.sig")
    (folder / "plan.json.b.sig").symlink_to("/dev/zero")
    with (folder / "plan.json.c.sig").open("wb") as file:
        file.truncate(1 << 40)
    assert checked(path) == ("bob@here",)
    for number in range(5000):
        (folder / f"plan.json.a{number}.sig").touch()
    began = time.monotonic()
    with pytest.raises(RefusedError, match="more than 64 signatures: move those away"):
        checked(path)
    assert time.monotonic() - began < 20


def test_signatures_are_found_whatever_the_plan_is_called(tmp_path: Path) -> None:
    path = tmp_path / "plan[1]*.json"
    write_plan(plan(), path)
    sign(plan(), path, key(tmp_path, "ann@here", PLANNER), planner=True)
    sign(plan(), path, key(tmp_path, "bob@here", NAMESPACE))
    assert checked(path) == ("bob@here",)


def test_an_approval_is_no_signature_of_a_planner_and_the_other_way_round(path: Path) -> None:
    mine = key(path.parent, "mal@example.org", NAMESPACE)
    bob = key(path.parent, "bob@example.org", NAMESPACE)
    sign(plan(), path, bob)
    path.with_name("plan.json.planner").write_bytes(sign(plan(), path, mine).read_bytes())
    with pytest.raises(RefusedError, match="has not signed it as its planner"):
        checked(path)


def remedy(*words: str | Path) -> Result:
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    """One host that no command may come to."""
    (tmp_path / "remedy.yaml").write_text("approval: {required: 1}\n")
    (tmp_path / "inventory.py").write_text(
        'hosts = [("gpu01", {"ssh_hostname": "127.0.0.1", "ssh_port": 1})]\n'
    )
    return tmp_path / "inventory.py"


RUN = "20260131T120000Z-0123abcd"


def test_a_lock_is_taken_by_force_only_with_an_approval(inventory: Path) -> None:
    result = remedy("unlock", RUN, inventory, "--force")
    assert result.exit_code == 4, result.output
    assert "approval required" in result.output
    assert not (inventory.parent / ".remedy").exists()
    file = inventory.parent / "unlock.json"
    assert remedy("unlock", RUN, inventory, "--force", "-o", file).exit_code == 0
    assert f"unlock {RUN} by force on gpu01" in remedy("show", file).output
    key(inventory.parent, "bob@example.org", PLANNER)
    refused = remedy("unlock", RUN, inventory, "--force", "--plan", file)
    assert (refused.exit_code, "approval" in refused.output) == (4, True), refused.output


def test_what_was_approved_for_something_else_is_no_approval(inventory: Path) -> None:
    file = inventory.parent / "unlock.json"
    assert remedy("unlock", RUN, inventory, "--force", "-o", file).exit_code == 0
    for words in (
        ("unlock", "20260131T120000Z-00000002", inventory, "--force", "--plan", file),
        ("apply", inventory, "--plan", file),
    ):
        result = remedy(*words)
        assert result.exit_code == 2, result.output
        assert f"unlock {RUN} by force" in result.output
    typed = CliRunner().invoke(
        main, ["apply", str(inventory), "--plan", "-"], input=file.read_bytes()
    )
    assert f"standard input is for something else: unlock {RUN}" in typed.output
    result = remedy("apply", inventory, "--plan", file)
    assert f"remedy unlock {RUN} {inventory} --force --plan {file}" in result.output


@pytest.mark.parametrize(
    "data",
    [{"ssh_user": "root"}, {"python": "/tmp/python"}, {"_sudo": False}, {"nested": {"a": [1]}}],
)
def test_the_inventory_is_its_users_and_interpreters_too(data: dict[str, object]) -> None:
    def digest(values: dict[str, object]) -> str:
        return Inventory(Path("i.py"), (Node("gpu01", "10.0.0.1", data=values),)).digest

    assert digest(data) != digest({})
    assert digest({**data, "ssh_password": "x"}) == digest(data)


def test_settings_count_and_how_remedy_works_does_not(tmp_path: Path) -> None:
    def digest(text: str) -> str:
        (tmp_path / "remedy.yaml").write_text(text)
        return load_spec(tmp_path / "remedy.yaml", section_models()).digest

    assert digest("firewall: {mode: leave}\n") != digest("{}\n")
    assert digest("apply: {waves: '1,100%'}\n") == digest("{}\n")


def run_of(run: str, *earlier: str, digest: str = "d" * 64) -> Job:
    return Job(run, "n0nce", "me@here", once=Once(digest, earlier))


@pytest.mark.parametrize("shell", SHELLS)
def test_a_host_remembers_each_plan_and_refuses_it_to_any_other_controller(
    shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "ROOT", str(tmp_path / "var"))
    monkeypatch.setattr(script, "LOG", str(tmp_path / "log"))
    bench = Bench(tmp_path, shell_of(shell))
    file = bench.file("hosts", b"old\n", b"new\n")

    def carried_out(job: Job) -> tuple[str, bytes]:
        file.write_bytes(b"old\n")
        monkeypatch.setattr(host_bench, "JOB", job)
        return bench.apply().refused, file.read_bytes()

    assert carried_out(run_of("r1")) == ("", b"new\n")
    assert carried_out(run_of("r2")) == ("USED r1", b"old\n")
    assert carried_out(run_of("r2", "r0")) == ("USED r1", b"old\n")
    assert carried_out(run_of("r3", "r0", "r1")) == ("", b"new\n")
    assert carried_out(run_of("r4", "r0", "r1")) == ("USED r3", b"old\n")
    assert carried_out(run_of("r5", digest="e" * 64)) == ("", b"new\n")


def test_a_plan_is_for_the_machines_that_it_was_made_for() -> None:
    def read(machine_id: str) -> ProbeResult:
        return ProbeResult(fleet(host_state("gpu01", "10.0.0.1", machine_id=machine_id)), {})

    before = read("a" * 32)
    changes = make_plan(before.fleet, Origin(created="2026-01-01T00:00:00Z", author="me@here"))
    assert changes.hosts == ("gpu01",)
    made = before.marked(changes)
    check_machines(made, before)
    check_machines(made, read(""))  # what cannot be read is compared object by object
    with pytest.raises(StaleError, match="gpu01: a different machine answers") as refusal:
        check_machines(made, read("b" * 32))
    assert refusal.value.next_step.endswith("--limit '*!gpu01'")
