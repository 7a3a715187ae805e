"""Answers of hosts that mean harm: no traceback, no hang, no more memory than is said, and the others go on."""

from __future__ import annotations

import io
import json
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from remedy.apply import heads, receipts
from remedy.apply.job import Job
from remedy.apply.report import (
    parse_confirmation,
    parse_report,
    parse_settled,
    parse_unlocked,
)
from remedy.bounds import TooMuchError, work
from remedy.cli.terminal import StandardOutput
from remedy.diagnose import lines
from remedy.errors import ProbeError
from remedy.probe import fingerprint, parse_probe
from remedy.report.plan import render_plan
from remedy.transport import Output
from remedy.verify.allreduce.answers import EndReport, LauncherReport, RankReport, read_report
from remedy.verify.look import reading
from remedy.verify.onhost.agent import MARK as REPORT_MARK
from remedy.verify.onhost.knock import MARK as REACH_MARK
from remedy.verify.reach.answers import judge_links
from remedy.verify.reach.plan import ReachHost, ReachPlan
from remedy.verify.reach.report import ReachAnswer
from tests.unit.plans import plan_of
from tests.unit.probe_data import REQUEST

from .answers import BOMBS, fleet_with, json_line, line_answer, probe_answer
from .filled import filled, shows

NONCE = "a1b2c3d4e5f60718"
JOB = Job("r1", NONCE, "me@here")
MOST_MIB = 64
# Far above what any answer here takes, and below where somebody gives up.
SECONDS = 60.0


def output(stdout: str) -> Output:
    return Output("gpu01", stdout, "", 0, 1.0, None, 0)


def read_probe(rng: random.Random) -> None:
    """Read an answer of the probe, and now and then decide and show what would be done about it."""
    try:
        state = parse_probe("gpu01", probe_answer(rng), REQUEST)
    except ProbeError:
        return
    fingerprint(state)
    if rng.random() < 0.1:
        plan = plan_of(fleet_with(state))
        json.dumps(plan.model_dump(mode="json")).encode()
        shown = io.StringIO()
        StandardOutput(file=shown, force_terminal=False, width=100).print(render_plan(plan))
        assert shows(shown.getvalue())


LINES = [
    "- begun",
    "01-hosts done",
    "02-sysctl failed bm8gc3VjaCBmaWxl",
    "- armed",
    "- finished",
    "- refused bm8=",
    "- confirmed",
]
RECEIPT = '{"time":"2026-01-01T00:00:00Z","change":"01-hosts","state":"done"}'


def read_changes(rng: random.Random) -> None:
    """Read what is said of changes, locks and guards."""
    text = line_answer(LINES, NONCE, rng)
    report = parse_report(JOB, [], text)
    json.dumps(report.record()).encode()
    parse_unlocked(JOB, text)
    parse_settled(JOB, text)
    parse_confirmation(JOB, text)


def read_receipts(rng: random.Random) -> None:
    """Read receipts and heads."""
    lines = [RECEIPT, json_line(json.loads(RECEIPT), rng), RECEIPT]
    for mark, parse in ((receipts.MARK, receipts.parse), (heads.MARK, heads.parse)):
        body = "\n".join(lines)
        text = line_answer([f"begin\n{body}"], NONCE, rng, mark) + f"\n{mark} {NONCE} end\n"
        found = parse(text, NONCE)
        if isinstance(found, receipts.Receipts):
            found.summary.encode()


def _documents() -> list[object]:
    kinds = (
        filled(RankReport, "w", kind="rank"),
        filled(LauncherReport, "w", kind="launcher"),
        filled(EndReport, "w", kind="end"),
    )
    return [json.loads(kind.model_dump_json()) for kind in kinds]


DOCUMENTS = _documents()


def read_ranks(rng: random.Random) -> None:
    """Read what ranks and launchers report."""
    lines = [json_line(document, rng) for document in DOCUMENTS]
    report = read_report("gpu01", NONCE, output(line_answer(lines, NONCE, rng, REPORT_MARK)))
    report.model_dump_json()


REACH = ReachPlan(
    nonce=NONCE,
    hosts=tuple(
        ReachHost(name=f"gpu0{n}", address=f"10.0.0.{n}", ports=(1, 2)) for n in range(1, 4)
    ),
    seconds=1.0,
    launcher=0,
)
LINKS = {
    "good": 2,
    "bad": [[1, 1, "dropped", "no answer"], [2, 2, "refused", ""]],
    "times": [],
    "slowest": 0.1,
    "listening": [1, 2],
    "busy": [],
    "ended": "answered",
    "mtu": {"narrow": [], "mute": [], "reason": ""},
    "seconds": 1.0,
}


def read_links(rng: random.Random) -> None:
    """Read what hosts say of the links between them."""
    outputs = {
        host.name: output(line_answer([json_line(LINKS, rng)], NONCE, rng, REACH_MARK))
        for host in REACH.hosts
    }
    judge_links(REACH, outputs).model_dump_json()


LOOK = [
    "count rx 12",
    "nft table inet x {",
    "iptables [1:2] -A INPUT -j DROP",
    "queue qdisc x",
    "end .",
]


def read_look(rng: random.Random) -> None:
    """Read a close look."""
    look = reading.read("gpu01", NONCE, output(line_answer(LOOK, NONCE, rng)))
    assert all(isinstance(count, int) for count in look.counts.values())


READERS = (read_probe, read_changes, read_receipts, read_ranks, read_links, read_look)


@pytest.mark.parametrize("read", READERS, ids=lambda reader: reader.__name__)
def test_no_answer_ends_in_a_traceback_or_takes_long(
    read: Callable[[random.Random], None], request: pytest.FixtureRequest
) -> None:
    """300 answers for each reader, 10,000 with --full; the number of a bad one is in the message."""
    count = 10_000 if request.config.getoption("--full") else 300
    for number in range(count):
        began = time.monotonic()
        try:
            with work(SECONDS):
                read(random.Random(number))  # noqa: S311 (no secret)
        except Exception as error:
            raise AssertionError(f"answer {number}: {type(error).__name__}: {error}") from error
        assert time.monotonic() - began < SECONDS, number


@pytest.mark.parametrize("number", [4944])
def test_answers_of_the_probe_that_ended_in_a_traceback(number: int) -> None:
    """Answers that only --full comes to: a user's number of 5,000 digits."""
    read_probe(random.Random(number))  # noqa: S311 (no secret)


def test_the_real_answers_are_read() -> None:
    """What is mutated is right before it is: a reader that takes nothing would pass every test."""
    assert ReachAnswer.model_validate_json(json.dumps(LINKS))
    assert parse_report(JOB, [], "\n".join(f"{NONCE} {line}" for line in LINES)).finished
    lines = "\n".join(f"{REPORT_MARK} {NONCE} {json.dumps(document)}" for document in DOCUMENTS)
    report = read_report("gpu01", NONCE, output(lines))
    assert (report.failure, len(report.ranks)) == ("", 1)


# In a process of its own: how much more memory it has at most than before, and the seconds.
BOMB = """
import sys, time
from pathlib import Path
from tests.hostile.answers import BOMBS, fleet_with
from tests.unit.plans import plan_of
from tests.unit.probe_data import REQUEST, state
from remedy.bounds import TooMuchError, work
from remedy.diagnose import lines
from remedy.errors import ProbeError
from remedy.probe import parse_probe

def kib(name):
    return next(int(line.split()[1]) for line in Path("/proc/self/status").open() if line.startswith(name))

plan_of(fleet_with(state("lab-busy")))
text = BOMBS[sys.argv[1]]()
Path("/proc/self/clear_refs").write_text("5")
before, began = kib("VmRSS"), time.monotonic()
try:
    with work(20):
        plan_of(fleet_with(parse_probe("gpu01", text, REQUEST)))
except (ProbeError, TooMuchError):
    pass
print(max(0, kib("VmHWM") - before) >> 10, time.monotonic() - began, len(text) >> 10)
"""


# What is packed, what is deep, what is many and what is no text; each starts a process.
USUAL = ("zeros", "a ball of zip", "deep rules", "many rules", "no text")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in USUAL else pytest.mark.full) for n in BOMBS]
)
def test_a_bomb_takes_64_mib_and_seconds(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BOMB, name], capture_output=True, text=True, check=True, timeout=300
    )
    mib, seconds, _ = map(float, done.stdout.split())
    assert mib <= MOST_MIB
    assert seconds < SECONDS


def test_a_name_before_a_line_of_a_log_is_not_looked_for_without_end() -> None:
    """Users of hosts write logs, too: one line of letters took 15 seconds."""
    began = time.monotonic()
    assert lines.split("a" * 4000).text == "a" * 4000
    assert time.monotonic() - began < 5


def test_work_without_end_is_ended_and_what_goes_on_after_it_too() -> None:
    ended: list[str] = []

    def read_on() -> None:
        while len(ended) < 3:
            try:
                re.match("(a*)*b", "a" * 60)
            except TooMuchError as error:
                ended.append(str(error))

    with work(0.2):
        read_on()
    assert ended == ["it takes more than 0.2 s to read"] * 3
