"""Limits of sessions that end jobs on any host."""

from __future__ import annotations

import pytest

from remedy.deploys.limits import LimitsSpec
from remedy.probe import Limit
from tests.unit.deploys.limits_bench import MAIN, SITE, host, planned


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("root - cpu 1", "gives root only 1 minute of CPU, after which a process is killed"),
        ("* hard cpu 600", "gives * only 600 minutes of CPU, after which a process is killed"),
        ("* - fsize 1048576", "gives * only 1.0 GiB of a file (fsize)"),
        ("trainer - as 1000000", "of memory (as)"),
        ("* soft data 1000", "of memory (data)"),
        ("* - nproc 100", "gives * only 100 processes and threads"),
        ("* soft nofile 64", "gives * only 64 open files"),
        ("* - maxlogins 1", "gives * only 1 of its logins at a time"),
        ("* - stack 64", "of stack (stack)"),
    ],
)
def test_a_line_that_ends_jobs_is_named_on_any_host(line: str, words: str) -> None:
    plan = planned(host({SITE: f"# site\n{line}\n".encode()}), LimitsSpec())
    (found,) = plan.blocked("gpu01")
    assert words in found.title
    assert found.title.startswith(f"{SITE} gives ")
    assert found.evidence[0].startswith(f"{SITE}:2: {line.split()[0]} ")
    assert f"line 2 of {SITE}" in found.fix
    assert found.label == ("nofile-limit" if "nofile" in line else "session-limit")
    assert plan.changes == ()


@pytest.mark.parametrize(
    "line",
    [
        "* - cpu unlimited",
        "root - nproc 100",  # to which the kernel does not hold root
        "%gpu - maxlogins 1",
        "* - nofile 1024",
        "* - core 0",
        "* - fsize unlimited",
        "# * - cpu 1",
    ],
)
def test_usual_lines_are_not_named(line: str) -> None:
    assert planned(host({MAIN: f"{line}\n".encode()}), LimitsSpec()).findings == ()


def test_what_a_session_has_by_no_line_is_named() -> None:
    state = host()
    limits = {"cpu": Limit(60, 60), "nproc": Limit(100, 100), "stack": Limit(8 << 20, -1)}
    plan = planned(state.model_copy(update={"limits": limits}), LimitsSpec())
    (found,) = plan.blocked("gpu01")
    assert (
        found.title
        == "a session over ssh has only 60 seconds of CPU, after which a process is killed"
    )
    users = state.model_copy(update={"limits": limits, "root": False})
    assert len(planned(users, LimitsSpec()).blocked("gpu01")) == 2
