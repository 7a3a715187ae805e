"""The pipelines of docs/recipes as runners run them: each job in a fresh checkout, its steps by bash.

What a runner does besides, the checkout and the artefacts between jobs, is done here with folders. Expressions
are evaluated as far as the recipes use them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

RECIPES = Path(__file__).parents[1] / "docs" / "recipes"
_EXPRESSION = re.compile(r"\$\{\{\s*([a-z_.]+)\s*\}\}")
_CONDITION = re.compile(r"([a-z_.]+) != '([^']*)'")


@dataclass(frozen=True)
class StepResult:
    """How a step, or a script of a job, ended."""

    code: int
    stdout: str
    stderr: str


@dataclass
class Runner:
    """A machine with remedy on its PATH, on which jobs run.

    Args:
        repository: the files of each checkout.
        folder: where checkouts and artefacts go.
        settings: in place of the variables of the recipe, such as ``JOURNAL``.
        seconds: for each step.
    """

    repository: Path
    folder: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 300

    @property
    def artefacts(self) -> Path:
        """The folder of what jobs keep for later ones."""
        return self.folder / "artefacts"

    def checkout(self, name: str) -> Path:
        """Make a fresh checkout for a job."""
        place = self.folder / name
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self.repository, place, ignore=shutil.ignore_patterns(".remedy"))
        return place

    def shell(self, text: str, place: Path, variables: Mapping[str, str]) -> StepResult:
        """Run the text of a step in a checkout, by the options with which both runners call bash."""
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "COLUMNS": "200", **variables, **self.settings}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text],
            cwd=place,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=self.seconds,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return StepResult(done.returncode, done.stdout, done.stderr)

    def keep(self, place: Path, *names: str) -> None:
        """Keep files of a checkout as artefacts; one that is not there is an error."""
        self.artefacts.mkdir(exist_ok=True)
        for name in names:
            shutil.copy2(place / name, self.artefacts / name)

    def bring(self, place: Path) -> None:
        """Put what earlier jobs kept into a checkout."""
        for path in self.artefacts.iterdir():
            shutil.copy2(path, place / path.name)


@dataclass
class GitHub:
    """The workflow of docs/recipes/github.yml on a runner."""

    runner: Runner
    outputs: dict[str, str] = field(default_factory=dict)
    summary: str = ""

    def run(self, job: str, *, only: str | None = None) -> StepResult | None:
        """Run the steps of a job until one fails; return the last, or None where its condition does not hold.

        Args:
            only: the name of the one step that is to run, in a checkout with the artefacts.
        """
        workflow = load("github.yml")
        body = workflow["jobs"][job]
        if "if" in body and not self._holds(body["if"]):
            return None
        place = self.runner.checkout(job)
        if only is not None:
            self.runner.bring(place)
        result = None
        for step in body["steps"]:
            name = step.get("uses", "").partition("@")[0]
            if "run" in step and only in (None, step["name"]):
                result = self._step(step, place, workflow["env"])
                if result.code != 0:
                    return result
            elif only is None and name == "actions/upload-artifact":
                self.runner.keep(place, step["with"]["path"])
            elif only is None and name == "actions/download-artifact":
                self.runner.bring(place)
        for key, value in body.get("outputs", {}).items() if only is None else ():
            self.outputs[f"needs.{job}.outputs.{key}"] = self._value(value)
        return result

    def _step(self, step: dict[str, Any], place: Path, env: Mapping[str, str]) -> StepResult:
        assert "${{" not in step["run"], "a value in the text of a step is run by the shell"
        # Each step has files of its own.
        files = {name: place.parent / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for file in files.values():
            file.write_bytes(b"")
        own = {key: self._value(value) for key, value in step.get("env", {}).items()}
        paths = {name: str(file) for name, file in files.items()}
        result = self.runner.shell(step["run"], place, {**env, **own, **paths})
        for line in files["GITHUB_OUTPUT"].read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition("=")
            self.outputs[f"steps.{step['id']}.outputs.{key}"] = value
        self.summary += files["GITHUB_STEP_SUMMARY"].read_text(encoding="utf-8")
        return result

    def _value(self, text: str) -> str:
        return _EXPRESSION.sub(lambda match: self.outputs[match[1]], text)

    def _holds(self, condition: str) -> bool:
        match = _CONDITION.fullmatch(condition)
        assert match is not None, condition
        return self.outputs[match[1]] != match[2]


@dataclass
class GitLab:
    """The pipeline of docs/recipes/gitlab-ci.yml on a runner."""

    runner: Runner

    def run(self, job: str, *, but: str = "") -> StepResult:
        """Run the scripts of a job until a line fails, and keep its artefacts.

        Args:
            but: the beginning of lines that are left out; the checkout has the artefacts then.
        """
        pipeline = load("gitlab-ci.yml")
        body = pipeline[job]
        place = self.runner.checkout(job)
        if but or "needs" in body:
            self.runner.bring(place)
        lines = [*pipeline["default"]["before_script"], *body["script"]]
        kept = [line for line in lines if not but or not line.startswith(but)]
        result = self.runner.shell("\n".join(kept), place, pipeline["variables"])
        if result.code == 0:
            self.runner.keep(place, *body.get("artifacts", {}).get("paths", ()))
        return result


def load(name: str) -> dict[str, Any]:
    """Return a recipe in YAML; what YAML 1.1 reads as a boolean (``on``) is a key all the same."""
    document: dict[str, Any] = yaml.safe_load((RECIPES / name).read_text(encoding="utf-8"))
    return document
