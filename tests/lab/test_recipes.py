"""The recipes of docs/recipes on real hosts: pipelines from a plan to a proof, cron's line, jq's lines."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from remedy.audit.approval import NAMESPACE, PLANNER
from tests import stub
from tests.lab.conftest import clusters
from tests.lab.site import Site
from tests.pipelines import RECIPES, GitHub, GitLab, Runner, StepResult

pytestmark = [
    pytest.mark.lab,
    pytest.mark.full,
    pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed"),
]
TEAMS = (RECIPES.parent / "teams.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def site(_no_leftovers: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Two hosts, and a repository for them beside whose inventory the policy is."""
    folder = tmp_path_factory.mktemp("recipes")
    with clusters(folder) as make:
        site = Site(make(count=2))
        site.run_on_stub()
        (site.folder / "remedy.yaml").write_text("verify: {sizes: [8]}\n", encoding="utf-8")
        (site.folder / "policy").mkdir()
        for name in ("plan.rego", "judge.py"):
            shutil.copy(RECIPES / name, site.folder / "policy")
        yield site


@pytest.fixture
def runner(site: Site, tmp_path: Path) -> Runner:
    """A runner for the repository, and one host that is not as it has to be."""
    site.cluster.reset()
    for name in site.cluster.hosts:
        stub.install(site.cluster.host(name))
    site.cluster.fault("gpu02", "loopback-name")
    settings = {
        "JOURNAL": str(tmp_path / "journal"),
        "APPROVALS": str(tmp_path / "approvals"),
        "PLANNER_KEY": str(tmp_path / "planner"),
    }
    (tmp_path / "journal").mkdir(mode=0o700)
    return Runner(site.folder, tmp_path / "work", settings)


def test_github_plans_waits_and_applies(site: Site, runner: Runner) -> None:
    github = GitHub(runner)
    planned = github.run("plan")
    assert planned is not None
    assert planned.code == 0, planned
    assert int(github.outputs["needs.plan.outputs.changes"]) > 0
    assert "127.0.1.1" in github.summary
    applied = github.run("apply")
    assert applied is not None
    assert applied.code == 0, applied
    assert "zero drift" in applied.stdout
    assert re.search(r"^proved +2 ranks on 2 hosts", applied.stdout, re.M), applied.stdout
    site.assert_right()
    again = github.run("plan")
    assert again is not None
    assert (again.code, github.outputs["needs.plan.outputs.changes"]) == (0, "0")
    assert github.run("apply") is None
    # One journal has all of it, though each job had a checkout of its own.
    history = run_in(runner, "ln -sfn $JOURNAL .remedy; remedy history inventory.py").stdout
    assert [line.split()[1] for line in history.splitlines()] == ["plan", "apply", "plan"], history


# What an approver types in a folder with the artefact of the first job.
APPROVE = """\
remedy approve plan.json --key "$KEY"
folder="$APPROVALS/$(jq -r .digest plan.json)"
mkdir -p "$folder"
mv plan.json.*.sig "$folder"
"""


def test_gitlab_applies_what_was_signed_and_leaves_alone_what_changed_since(
    site: Site, runner: Runner, tmp_path: Path
) -> None:
    with (site.folder / "allowed_signers").open("w", encoding="utf-8") as file:
        for name, purpose in (("planner", PLANNER), ("ann", NAMESPACE)):
            words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)]
            subprocess.run(words, check=True)
            public = (tmp_path / f"{name}.pub").read_text(encoding="utf-8")
            file.write(f'{name}@example.org namespaces="{purpose}" {public}')
    gitlab = GitLab(runner)
    for code in (4, 0):
        planned = gitlab.run("plan")
        assert planned.code == 0, planned
        signed = runner.shell(APPROVE, runner.artefacts, {"KEY": str(tmp_path / "ann")})
        assert signed.code == 0, signed
        if code:
            site.cluster.host("gpu02").must("echo 192.0.2.1 added >>/etc/hosts")
        applied = gitlab.run("apply")
        assert applied.code == code, applied
        assert "approved by ann@example.org" in applied.stdout
    site.assert_right()


def run_in(runner: Runner, text: str) -> StepResult:
    """Run a text by the shell in a fresh checkout."""
    return runner.shell(text, runner.checkout("own"), {})


def test_crons_line_prints_what_is_pending_and_nothing_where_all_is_well(
    site: Site, runner: Runner
) -> None:
    line = (RECIPES / "cron").read_text(encoding="utf-8").splitlines()[-1]
    command = line.split(maxsplit=6)[6].replace("/srv/cluster", str(site.folder))
    pending = run_in(runner, command)
    assert pending.code == 10, pending
    assert "pending     gpu[01-02]" in pending.stdout
    assert site.remedy("apply", "--yes").code == 0
    fine = run_in(runner, command)
    assert (fine.code, fine.stdout, fine.stderr) == (0, "", "")


def test_the_lines_of_jq_as_they_stand(site: Site, runner: Runner) -> None:
    block = TEAMS.partition("## jq\n")[2].partition("```sh\n")[2].partition("```")[0]
    (site.folder / "train.log").write_text("nothing is wrong\n", encoding="utf-8")
    lines = [line for line in block.splitlines() if not line.startswith("#")]
    assert len(lines) > 8
    for line in lines:
        done = runner.shell(f"set +o pipefail\n{line}", site.folder, {})
        assert done.code == 0, (line, done)
        assert "jq: " not in done.stderr
