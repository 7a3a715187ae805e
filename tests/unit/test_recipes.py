"""The recipes of docs/recipes: units, cron's line, pipelines, the policy, each by its own program."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import replace
from pathlib import Path

import pytest

from remedy.audit.approval import NAMESPACE, PLANNER, sign
from remedy.plan import (
    Change,
    CommandAction,
    Finding,
    FindingKind,
    Plan,
    Risk,
    make_plan,
    section_models,
    write_plan,
)
from remedy.plan.shared import LARGE, LARGE_FORMAT
from remedy.spec import load_spec
from remedy.transport.reader import load_inventory
from tests.pipelines import RECIPES, GitHub, GitLab, Runner, StepResult
from tests.unit.build import WHEN, record
from tests.unit.report.first import first_look

BIN = Path(sysconfig.get_path("scripts"))
# Nobody listens there.
INVENTORY = """\
hosts = [
    (f"gpu00{n}", {"ssh_hostname": f"127.0.0.{n}", "ssh_port": 1, "cluster_address": f"10.214.4.{n}"})
    for n in (1, 2)
]
"""


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """A runner with a repository as the recipes have it, a journal, and keys of a planner and an approver."""
    repository = tmp_path / "repository"
    (repository / "policy").mkdir(parents=True)
    (repository / "inventory.py").write_text(INVENTORY)
    for name in ("plan.rego", "judge.py"):
        shutil.copy(RECIPES / name, repository / "policy")
    for name, purpose in (("planner", PLANNER), ("ann", NAMESPACE)):
        key = tmp_path / name
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        with (repository / "allowed_signers").open("a") as file:
            file.write(
                f'{name}@example.org namespaces="{purpose}" {key.with_suffix(".pub").read_text()}'
            )
    (tmp_path / "journal").mkdir(mode=0o700)
    settings = {
        "JOURNAL": str(tmp_path / "journal"),
        "APPROVALS": str(tmp_path / "approvals"),
        "PLANNER_KEY": str(tmp_path / "planner"),
        "HOME": str(tmp_path),
    }
    return Runner(repository, tmp_path / "work", settings)


@pytest.fixture
def plan(runner: Runner) -> Plan:
    """A plan for the inventory of the repository, made from recorded hosts, among the runner's artefacts."""
    inventory = load_inventory(runner.repository / "inventory.py")
    spec = load_spec(None, section_models())
    made = make_plan(replace(first_look(2, spec=spec), inventory=inventory), WHEN)
    assert made.changes
    runner.artefacts.mkdir(parents=True)
    write_plan(made, runner.artefacts / "plan.json")
    return made


def tool(name: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    path = shutil.which(name) or BIN / name
    return subprocess.run([path, *words], capture_output=True, text=True, check=False)


def needs(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(name) is None, reason=f"{name} is not installed")


@pytest.mark.parametrize(
    ("name", "schema", "right", "wrong"),
    [
        ("github.yml", "vendor.github-workflows", "runs-on", "runs_on"),
        ("gitlab-ci.yml", "vendor.gitlab-ci", "when: manual", "when: by-hand"),
    ],
)
def test_a_pipeline_has_the_form_that_its_platform_publishes(
    name: str, schema: str, right: str, wrong: str, tmp_path: Path
) -> None:
    done = tool("check-jsonschema", "--builtin-schema", schema, RECIPES / name)
    assert done.returncode == 0, done.stdout
    text = (RECIPES / name).read_text()
    assert right in text
    (tmp_path / name).write_text(text.replace(right, wrong))
    assert tool("check-jsonschema", "--builtin-schema", schema, tmp_path / name).returncode == 1


@needs("jq")
def test_where_hosts_cannot_be_read_nothing_is_kept_for_the_job_that_applies(
    runner: Runner,
) -> None:
    github = GitHub(runner)
    result = github.run("plan")
    assert result is not None
    assert result.code == 5, result
    assert "unreachable gpu[001-002]" in result.stdout
    assert (github.outputs, runner.artefacts.exists()) == ({}, False)
    # Whatever the checkout is, the journal is the machine's.
    assert '"event":"saved"' in (Path(runner.settings["JOURNAL"]) / "journal.jsonl").read_text()
    assert GitLab(runner).run("plan").code == 5


@needs("jq")
def test_the_steps_of_githubs_plan(runner: Runner, plan: Plan) -> None:
    github = GitHub(runner)
    judged = github.run("plan", only="Policy")
    assert judged is not None
    assert (judged.code, judged.stdout) == (0, ""), judged
    shown = github.run("plan", only="Summary")
    assert shown is not None
    assert shown.code == 0, shown
    assert plan.digest[:12] in github.summary
    assert all(line.startswith("    ") for line in github.summary.splitlines())


def test_a_large_plan_is_judged_as_any_other_though_its_file_has_another_format(
    runner: Runner,
) -> None:
    large = make_plan(first_look(LARGE + 1), WHEN)
    assert large.format_version == LARGE_FORMAT
    runner.artefacts.mkdir(parents=True)
    write_plan(large, runner.artefacts / "plan.json")
    judged = GitHub(runner).run("plan", only="Policy")
    assert judged is not None
    assert (judged.code, judged.stdout) == (1, "65 hosts would be changed, and 8 may be\n"), judged


@needs("jq")
def test_github_applies_the_plan_that_was_approved_and_no_other(runner: Runner, plan: Plan) -> None:
    github = GitHub(runner, {"needs.plan.outputs.changes": "0"})
    assert github.run("apply") is None
    github.outputs = {"needs.plan.outputs.changes": "4", "needs.plan.outputs.digest": "0" * 64}
    other = github.run("apply")
    assert other is not None
    assert (other.code, other.stdout) == (1, "")
    github.outputs["needs.plan.outputs.digest"] = plan.digest
    approved = github.run("apply")
    assert approved is not None
    # As far as it comes without hosts: the plan is of this inventory, and nothing is proved.
    assert approved.code == 3, approved
    assert "unreachable gpu[001-002]" in approved.stdout


def signed(runner: Runner, plan: Plan, *, planner: bool = False) -> StepResult:
    """Put a signature where approvers put theirs, and run the job that applies."""
    folder = Path(runner.settings["APPROVALS"]) / plan.digest
    folder.mkdir(parents=True, exist_ok=True)
    write_plan(plan, folder.parent / "plan.json")
    key = runner.folder.parent / ("planner" if planner else "ann")
    sign(plan, folder.parent / "plan.json", key).rename(folder / f"plan.json.{key.name}.sig")
    return GitLab(runner).run("apply")


@needs("jq")
def test_gitlab_applies_a_plan_that_others_have_signed(runner: Runner, plan: Plan) -> None:
    planned = GitLab(runner).run("plan", but="remedy plan")
    assert planned.code == 0, planned
    assert (runner.artefacts / "plan.json.planner").exists()
    unsigned = GitLab(runner).run("apply")
    assert unsigned.code == 1, unsigned
    assert "plan.json.*.sig" in unsigned.stderr
    own = signed(runner, plan, planner=True)
    assert own.code == 4, own
    assert "1 approval is required" in own.stderr
    approved = signed(runner, plan)
    assert approved.code == 3, approved
    assert "approved by ann@example.org" in approved.stdout


ACTION = CommandAction(observe="a", before="b", after="c", do="d", undo="e")
CHANGE: Change = record(Change, id="01-x", host="gpu01", title="write a line", action=ACTION)


def finding(kind: FindingKind, host: str | None = "gpu01") -> Finding:
    made: Finding = record(Finding, host=host, kind=kind, title="no answer")
    return made


@pytest.mark.parametrize(
    ("changes", "findings", "message"),
    [
        ([], [], ""),
        ([CHANGE], [finding(FindingKind.REPORT), finding(FindingKind.DRIFT)], ""),
        ([CHANGE.model_copy(update={"host": f"gpu0{n}"}) for n in range(1, 9)], [], ""),
        (
            [CHANGE.model_copy(update={"host": f"gpu0{n}"}) for n in range(1, 10)],
            [],
            "9 hosts would be changed, and 8 may be",
        ),
        (
            [CHANGE.model_copy(update={"risk": Risk.HIGH})],
            [],
            "gpu01: write a line: high risk",
        ),
        (
            [CHANGE.model_copy(update={"reversible": False})],
            [],
            "gpu01: write a line: cannot be undone",
        ),
        (
            [CHANGE.model_copy(update={"restarts": "ufw, which stops"})],
            [],
            "gpu01: write a line: ufw, which stops",
        ),
        ([CHANGE.model_copy(update={"restarts": "dockerd, a reload"})], [], ""),
        ([], [finding(FindingKind.UNKNOWN)], "gpu01: no answer: unknown"),
        ([], [finding(FindingKind.UNKNOWN, None)], "the fleet: no answer: unknown"),
    ],
)
def test_what_the_policy_denies(
    changes: list[Change], findings: list[Finding], message: str
) -> None:
    plan: Plan = record(Plan, changes=tuple(changes), findings=tuple(findings))
    done = judged(json.dumps({"plan": plan.model_dump(mode="json")}))
    assert (done.returncode, done.stdout) == (int(bool(message)), message and f"{message}\n"), done


def judged(document: str, policy: Path = RECIPES / "plan.rego") -> subprocess.CompletedProcess[str]:
    """Have a document judged as the recipes do."""
    words = [sys.executable, str(RECIPES / "judge.py"), str(policy)]
    return subprocess.run(words, input=document, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("document", "policy", "code"),
    [
        ("{}", None, 1),
        ('{"plan": {"format_version": 2}}', None, 1),
        ("no document", None, 2),
        ("{}", "package remedy.plan", 2),
        ("{}", "package remedy.plan\nimport rego.v1\ndeny contains", 2),
    ],
    ids=["no-plan", "another-format", "no-json", "no-rule", "no-rego"],
)
def test_what_the_policy_cannot_judge_is_not_let_through(
    document: str, policy: str | None, code: int, tmp_path: Path
) -> None:
    path = RECIPES / "plan.rego"
    if policy is not None:
        path = tmp_path / "own.rego"
        path.write_text(policy)
    done = judged(document, path)
    assert done.returncode == code, done
    assert done.stdout or done.stderr


def run_as_the_recipe_has_it(text: str, runner: Runner) -> StepResult:
    """Run the command of a unit, or of cron's line, on this machine, where its folder is the repository."""
    text = text.replace("/opt/remedy/bin", str(BIN)).replace("/srv/cluster", str(runner.repository))
    return runner.shell(text, runner.repository, {"PATH": f"{BIN}:/usr/bin:/bin"})


@needs("systemd-analyze")
def test_the_units_are_ones_that_systemd_takes(tmp_path: Path, runner: Runner) -> None:
    for name in ("remedy-check.service", "remedy-check.timer"):
        text = (RECIPES / name).read_text().replace("/opt/remedy/bin", str(BIN))
        (tmp_path / name).write_text(text.replace("/srv/cluster", str(runner.repository)))
    units = [tmp_path / "remedy-check.service", tmp_path / "remedy-check.timer"]
    done = tool("systemd-analyze", "verify", "--man=no", *units)
    assert (done.returncode, done.stderr) == (0, "")
    units[0].write_text(units[0].read_text().replace("Type=oneshot", "Typ=oneshot"))
    assert "Typ" in tool("systemd-analyze", "verify", "--man=no", *units).stderr
    calendar = setting("remedy-check.timer", "OnCalendar")
    shown = tool("systemd-analyze", "calendar", "--iterations=2", calendar)
    assert shown.returncode == 0, shown
    assert len(re.findall(r"05:17:00", shown.stdout)) >= 2, shown.stdout


def setting(unit: str, key: str) -> str:
    """Return a setting of a unit."""
    match = re.search(rf"^{key}=(.*)$", (RECIPES / unit).read_text(), re.MULTILINE)
    assert match is not None
    return match[1]


def test_the_unit_fails_where_hosts_cannot_be_read(runner: Runner) -> None:
    result = run_as_the_recipe_has_it(setting("remedy-check.service", "ExecStart"), runner)
    assert result.code == 5, result
    assert "unreachable gpu[001-002]" in result.stdout
    # What it writes is within what it may write.
    writable = setting("remedy-check.service", "ReadWritePaths")
    folder = setting("remedy-check.service", "WorkingDirectory")
    made = {path.name for path in runner.repository.iterdir()} - {"__pycache__"}
    assert made == {"inventory.py", "policy", "allowed_signers", Path(writable).name}
    assert Path(writable).parent == Path(folder)


def test_crons_line_mails_what_is_wrong(runner: Runner) -> None:
    lines = (RECIPES / "cron").read_text().splitlines()
    jobs = [line for line in lines if re.match(r"[\d*]", line)]
    assert len(jobs) == 1
    minute, hour, *days, user, command = jobs[0].split(maxsplit=6)
    assert (0 <= int(minute) <= 59, 0 <= int(hour) <= 23, days) == (True, True, ["*", "*", "*"])
    assert (user, shlex.quote(user)) == ("remedy", "remedy")
    assert "%" not in command  # cron reads a line break there
    variables = dict(line.split("=", 1) for line in lines if re.match(r"[A-Z]+=", line))
    assert variables["PATH"].startswith("/opt/remedy/bin:")
    result = run_as_the_recipe_has_it(command, runner)
    assert result.code == 5
    assert "unreachable gpu[001-002]" in result.stdout
