"""Plans, keys and folders that cannot be used: each has its own message, and nothing is changed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from remedy.audit import Journal, verify_chain
from remedy.audit.approval import NAMESPACE, sign
from remedy.audit.journal import FILE_NAME, HEAD_NAME
from remedy.cli.main import main
from remedy.inventory import data
from remedy.plan import Change, CommandAction, Plan, section_models, write_plan
from remedy.spec import load_spec
from remedy.transport.reader import load_inventory

HOST = '("{}", {{"ssh_hostname": "127.0.0.1", "ssh_port": {}}})'


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    return write_inventory(tmp_path / "inventory.py", "gpu01", "gpu02")


def write_inventory(path: Path, *names: str) -> Path:
    hosts = ", ".join(HOST.format(name, number) for number, name in enumerate(names, 1))
    path.write_text(f"hosts = [{hosts}]\n")
    return path


@pytest.fixture
def plan(inventory: Path) -> Path:
    """A plan that would change both hosts; it ends with a message before any host is asked."""
    folder = inventory.parent
    changes = tuple(
        Change(
            id="01-x",
            host=host,
            remedy="x",
            title="t",
            reason="r",
            label="l",
            action=CommandAction(observe="true", before="", after="x", do="false", undo=""),
        )
        for host in ("gpu01", "gpu02")
    )
    made = Plan(
        tool_version="test",
        created="2026-01-01T00:00:00+00:00",
        author="ann@ops",
        inventory="inventory.py",
        # pyinfra compiles an inventory once a process, so the file that is edited later is not read here.
        inventory_digest=load_inventory(
            write_inventory(folder / "copy.py", "gpu01", "gpu02")
        ).digest,
        spec_digest=load_spec(None, section_models()).digest,
        changes=changes,
    )
    path = folder / "plan.json"
    write_plan(made, path)
    return path


def remedy(*words: str | Path) -> Result:
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    return result


def assert_refused(result: Result, code: int, *parts: str) -> None:
    assert result.exit_code == code, result.output
    for part in parts:
        assert part in result.output, result.output
    assert "\n  " in result.output.partition("error: ")[2], "no next step"


def edited(change: Callable[[dict[str, object]], object]) -> Callable[[Path], None]:
    def edit(path: Path) -> None:
        document = json.loads(path.read_text())
        change(document["plan"])
        path.write_text(json.dumps(document))

    return edit


@pytest.mark.parametrize(
    ("damage", "code", "parts"),
    [
        (lambda p: p.write_bytes(p.read_bytes()[:-200]), 2, ["is not a whole plan file"]),
        (lambda p: p.write_bytes(b""), 2, ["is not a whole plan file"]),
        (lambda p: p.write_bytes(b"\xff\xfe\x00"), 2, ["is not a whole plan file"]),
        (lambda p: p.write_text("[" * 100_000), 2, ["is not a whole plan file"]),
        (lambda p: p.unlink(), 2, ["No such file"]),
        (edited(lambda d: d.update(format_version=3)), 2, ["is of format 3", "Use the remedy"]),
        (edited(lambda d: d.update(author="eve@ops")), 2, ["was changed after it was made"]),
        (edited(lambda d: d.pop("author")), 2, ["author"]),
    ],
)
def test_a_plan_file_that_cannot_be_used(
    inventory: Path, plan: Path, damage: Callable[[Path], None], code: int, parts: list[str]
) -> None:
    damage(plan)
    assert_refused(remedy("apply", inventory, "--plan", plan, "--yes"), code, "plan.json", *parts)
    assert not (inventory.parent / ".remedy").exists()


def test_a_plan_of_another_inventory(inventory: Path, plan: Path) -> None:
    write_inventory(inventory, "gpu01", "gpu02", "gpu03")
    done = remedy("apply", inventory, "--plan", plan, "--yes")
    assert_refused(done, 4, "made for a different inventory", "Make it again")
    assert not (inventory.parent / ".remedy").exists()


def test_a_plan_that_names_a_host_that_left(inventory: Path, plan: Path) -> None:
    write_inventory(inventory, "gpu01")
    done = remedy("apply", inventory, "--plan", plan, "--yes")
    assert_refused(done, 4, "it changes gpu02, which is no longer in the inventory")


def test_a_plan_that_was_used(inventory: Path, plan: Path) -> None:
    from remedy.plan import read_plan

    journal = Journal(inventory.parent / ".remedy", run="r1", mode="apply")
    journal.write("planned", digest=read_plan(plan).digest, changes={"gpu01": ["t"]}, waves=1)
    journal.write("began", hosts=["gpu01"])
    done = remedy("apply", inventory, "--plan", plan, "--yes")
    assert_refused(done, 4, "carried out before on gpu01", "--resume r1")


@pytest.mark.parametrize(("passed", "event"), [(None, "changed"), (False, "wave")])
def test_a_plan_whose_run_has_nothing_left_is_not_to_be_resumed(
    inventory: Path, plan: Path, passed: bool | None, event: str
) -> None:
    from remedy.plan import read_plan

    digest = read_plan(plan).digest
    hosts = {
        name: {"results": [{"id": "t", "status": "done"}], "refused": ""}
        for name in ("gpu01", "gpu02")
    }
    changes = {name: ["t"] for name in hosts}
    for number, name in enumerate(hosts):  # the second run resumed the first
        journal = Journal(inventory.parent / ".remedy", run=f"r{number}", mode="apply")
        journal.write("planned", digest=digest, changes=changes, waves=2)
        journal.write("began", hosts=[name])
        if event == "changed":
            journal.write(event, hosts={name: hosts[name]})
    if event == "wave":
        journal.write(event, wave=1, passed=passed)
    done = remedy("apply", inventory, "--plan", plan, "--yes")
    assert_refused(done, 4, "carried out before on gpu", "Make a new one: remedy plan")
    assert "--resume" not in done.output


def test_of_several_runs_of_a_plan_the_last_that_stopped_is_resumed(
    inventory: Path, plan: Path
) -> None:
    from remedy.plan import read_plan

    digest = read_plan(plan).digest
    settled = {"results": [{"id": "t", "status": "done"}], "refused": ""}
    for run, names in (("r0", ("gpu01", "gpu02")), ("r1", ("gpu01",))):
        journal = Journal(inventory.parent / ".remedy", run=run, mode="apply")
        journal.write("planned", digest=digest, changes={n: ["t"] for n in names}, waves=1)
        journal.write("began", hosts=["gpu01"])
    journal.write("changed", hosts={"gpu01": settled})
    done = remedy("apply", inventory, "--plan", plan, "--yes")
    assert_refused(done, 4, "--resume r0")


def test_a_run_that_cannot_be_gone_on_with(inventory: Path, plan: Path) -> None:
    assert_refused(remedy("apply", inventory, "--resume", "r9", "--yes"), 2, "no run 'r9'")
    both = remedy("apply", inventory, "--resume", "r9", "--plan", plan)
    assert_refused(both, 2, "exclude each other")
    journal = Journal(inventory.parent / ".remedy", run="r1", mode="rollback")
    journal.write("planned", digest="d", changes={"gpu01": ["t"]}, waves=1)
    assert_refused(remedy("apply", inventory, "--resume", "r1"), 2, "r1 is a rollback")


def test_a_plan_that_was_exchanged_after_its_run(inventory: Path, plan: Path) -> None:
    home = inventory.parent / ".remedy"
    journal = Journal(home, run="r1", mode="apply")
    journal.write("planned", digest="another", changes={"gpu01": ["t"]}, waves=1)
    (home / "runs" / "r1").mkdir(parents=True)
    (home / "runs" / "r1" / "plan.json").write_bytes(plan.read_bytes())
    resume: list[str | Path] = ["apply", inventory, "--resume", "r1"]
    for words in (resume, ["rollback", "r1", inventory]):
        assert_refused(remedy(*words, "--yes"), 4, "is not the plan that the journal names")


def test_a_key_that_cannot_be_read(plan: Path) -> None:
    nowhere = plan.parent / "nowhere"
    done = remedy("approve", plan, "--key", nowhere)
    assert_refused(done, 2, "nowhere", "cannot sign", "that you can read")
    assert not list(plan.parent.glob("*.sig"))


def test_a_key_that_others_can_read(plan: Path) -> None:
    path = key(plan.parent, "bob")
    path.chmod(0o644)
    done = remedy("approve", plan, "--key", path)
    assert_refused(done, 2, "bob", "cannot sign", "others can read it")
    assert not list(plan.parent.glob("*.sig"))


def test_signers_and_signatures_that_are_no_files_of_text(inventory: Path, plan: Path) -> None:
    words = ("apply", inventory, "--plan", plan, "--yes", "--require-approval")
    signers = inventory.parent / "allowed_signers"
    signers.write_bytes(b"\xff\xfe")
    assert_refused(remedy(*words), 2, "allowed_signers: it is no text")
    signers.write_text("bob ssh-ed25519 AAAA\n")
    (inventory.parent / "plan.json.bob.sig").mkdir()
    assert_refused(remedy(*words), 4, "plan.json.bob.sig: cannot be read: Is a directory")


@pytest.mark.parametrize("text", ["", "# nobody yet\n\n"])
def test_an_empty_list_of_signers(inventory: Path, plan: Path, text: str) -> None:
    (inventory.parent / "allowed_signers").write_text(text)
    words = ("apply", inventory, "--plan", plan, "--yes", "--require-approval")
    assert_refused(remedy(*words), 2, "nobody may approve", "Add lines such as")
    (inventory.parent / "allowed_signers").unlink()
    assert_refused(remedy(*words), 2, "allowed_signers: No such file")


def key(folder: Path, who: str, options: str = f'namespaces="{NAMESPACE}"') -> Path:
    path = folder / who
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)], check=True
    )
    signers = folder / "allowed_signers"
    before = signers.read_text() if signers.exists() else ""
    signers.write_text(f"{before}{who} {options} {path.with_suffix('.pub').read_text()}")
    return path


def test_approvals_that_do_not_count_are_refused_in_words(inventory: Path, plan: Path) -> None:
    from remedy.plan import read_plan

    words = ("apply", inventory, "--plan", plan, "--yes", "--require-approval=2")
    sign(read_plan(plan), plan, key(inventory.parent, "bob"))
    assert_refused(remedy(*words), 4, "2 approvals are required, and valid ones are from bob")
    expired = f'namespaces="{NAMESPACE}",valid-before="20200101"'
    sign(read_plan(plan), plan, key(inventory.parent, "cleo", expired))
    assert_refused(remedy(*words), 4, "valid ones are from bob")


def blocked_by_a_file(home: Path) -> None:
    home.write_text("")


def full(home: Path) -> None:
    home.mkdir()
    (home / FILE_NAME).symlink_to("/dev/full")


@pytest.mark.parametrize(
    ("obstacle", "said"), [(blocked_by_a_file, "cannot be written"), (full, "No space left")]
)
def test_a_journal_that_cannot_be_written(
    inventory: Path, obstacle: Callable[[Path], None], said: str
) -> None:
    obstacle(inventory.parent / ".remedy")
    done = remedy("apply", inventory, "--yes", "--no-verify")
    assert_refused(done, 1, said, "Nothing is changed without a record of it")


@pytest.fixture(params=["full", "read-only"])
def disk(request: pytest.FixtureRequest, inventory: Path) -> Iterator[str]:
    """A .remedy on a disk of its own, which takes nothing more."""
    home = inventory.parent / ".remedy"
    home.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4k,mode=700", "tmpfs", str(home)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a disk needs root")
    try:
        if request.param == "full":
            (home / "fill").write_bytes(b"x" * 4096)
        else:
            subprocess.run(["mount", "-o", "remount,ro", str(home)], check=True)
        yield str(request.param)
    finally:
        subprocess.run(["umount", str(home)], check=True)


def test_a_disk_that_takes_nothing_stops_what_changes_hosts(
    inventory: Path, plan: Path, disk: str
) -> None:
    said = {"full": "No space left on device", "read-only": "Read-only file system"}[disk]
    for words in (("--yes", "--no-verify"), ("--plan", plan, "--yes", "--no-verify")):
        done = remedy("apply", inventory, *words)
        assert_refused(done, 1, "journal", said, "Nothing is changed without a record of it")
    assert remedy("history", inventory).output.startswith("no run is on record in ")


def test_a_disk_that_takes_nothing_stops_no_look(inventory: Path, plan: Path, disk: str) -> None:
    said = {"full": "No space left on device", "read-only": "Read-only file system"}[disk]
    out = inventory.parent / "new.json"
    for words, code in (
        (("check", inventory), 5),
        (("plan", inventory, "-o", out), 5),
        (("apply", inventory, "--plan", plan, "--rehearse"), 5),
        (("verify", inventory), 3),
    ):
        done = remedy(*words)
        assert done.exit_code == code, done.output
        assert f"cannot be written: {said}" in done.output
        assert "gpu[01-02] (gpu01: 127.0.0.1:1): no connection" in done.output
    assert out.exists()


def test_a_plan_that_is_saved_is_on_record(inventory: Path) -> None:
    out = inventory.parent / "new.json"
    assert remedy("plan", inventory, "-o", out).exit_code == 5  # nobody answers
    digest = json.loads(out.read_text())["digest"]
    (line,) = (inventory.parent / ".remedy" / FILE_NAME).read_text().splitlines()
    record = json.loads(line)
    assert (record["mode"], record["event"], record["data"]["digest"]) == ("plan", "saved", digest)
    assert "saved" in remedy("history", inventory).output


def test_a_plan_is_made_also_where_that_cannot_be_recorded(inventory: Path) -> None:
    (inventory.parent / ".remedy").write_text("")
    out = inventory.parent / "new.json"
    done = remedy("plan", inventory, "-o", out)
    assert (done.exit_code, out.exists()) == (5, True)
    assert "not recorded: the journal" in done.output


def test_a_journal_with_a_torn_last_line(inventory: Path) -> None:
    home = inventory.parent / ".remedy"
    journal = Journal(home, run="r1", mode="apply")
    journal.write("planned", by="ann@ops", changes={"gpu01": ["t"]})
    head = (home / HEAD_NAME).read_bytes()
    journal.write("ended", exit_code=0)
    (home / HEAD_NAME).write_bytes(head)
    journal.path.write_bytes(journal.path.read_bytes()[:-7])
    torn = remedy("audit", "verify", inventory)
    assert (torn.exit_code, "record 1 is torn" in torn.output) == (1, True)
    assert "not ended" in remedy("history", inventory).output
    # The next run sets the torn line aside and goes on.
    assert remedy("apply", inventory, "--yes", "--no-verify").exit_code == 5
    assert verify_chain(journal.path)[1] == ""
    assert remedy("audit", "verify", inventory).exit_code == 0


def test_data_of_a_host_that_pyinfra_cannot_use_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "wrong_type.py"
    path.write_text('hosts = [("gpu01", {"ssh_hostname": "127.0.0.1", "ssh_user": None})]\n')
    assert_refused(remedy("check", path), 2, "gpu01: ssh_user is None, needs text", "wrong_type.py")
    monkeypatch.setattr(data, "_KINDS", {})  # as for a key that a newer pyinfra has
    assert_refused(remedy("check", path), 2, "pyinfra cannot use a host's data", "wrong_type.py")


@pytest.mark.parametrize(
    ("content", "place"),
    [("hosts = []\n", "plan.json"), ("{", "x.json"), ("", "x.json"), (" \n{}", "x.json")],
)
def test_no_new_plan_is_to_replace_a_file_of_another_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.json").write_text(content)
    for command in ("show", "approve"):
        assert_refused(remedy(command, "x.json"), 2, f"remedy plan INVENTORY -o {place}\n")


def test_a_plan_and_a_page_replace_their_own_kind(inventory: Path, tmp_path: Path) -> None:
    plan, page = tmp_path / "new.json", tmp_path / "new.html"
    for file in (plan, page):
        file.write_text("")  # as mktemp leaves it
    for _ in range(2):
        done = remedy("plan", inventory, "-o", plan, "--html", page)
        assert done.exit_code == 5, done.output
        assert f"page        {page}" in done.output
    assert plan.read_text().startswith("{")
    assert page.read_text().startswith("<!doctype html>")
