"""What stands before the lines of a log changes nothing of what is read from them."""

from __future__ import annotations

import json
from functools import cache

import pytest

from remedy.diagnose.catalogue import Role, catalogue
from remedy.diagnose.logs import diagnose_lines
from remedy.diagnose.scanner.exceptions import EXCEPTION
from remedy.diagnose.scanner.reader import from_text
from remedy.diagnose.scanner.scan import index, scan

TEXT = (
    "Traceback (most recent call last):",
    '  File "/app/train.py", line 12, in main',
    "    raise ValueError(size)",
    "ValueError: batch of 7 does not divide by 2",
)

# {n} is the second in which a line was printed.
FORMS = (
    "",
    "[rank3]: ",
    "[rank3]:",
    "[Rank 3] ",
    "[default3]:",
    "[trainer3]:",
    "[1,3]<stderr>: ",
    "[1,3]<stderr>:",
    "3: ",
    " 3: ",
    "0003: ",
    "gpu-node-3: ",
    "worker-3  | ",
    "[gpu-node-3] ",
    "[pod/job-worker-3/pytorch] ",
    "2026-03-04T05:06:{n}.123456789Z ",
    "2026-03-04T05:06:{n}.123456789Z stderr F ",
    "2026-03-04T05:06:{n}.123456789+00:00 stderr F [rank3]: ",
    "[pod/job-worker-3/pytorch] 2026-03-04T05:06:{n}.1Z ",
    "2026-03-04 05:06:{n},123 - ERROR - ",
    "2026-03-04 05:06:{n},123 ERROR train.py:12 -- ",
    "[2026-03-04 05:06:{n},123] [ERROR] [launch.py:325:sigkill_handler] ",
    "ERROR 03-04 05:06:{n} engine.py:140] ",
    "(EngineCore_0 pid=812) ERROR 03-04 05:06:{n} [core.py:708] ",
    "(VllmWorker rank=3 pid=812) ERROR 03-04 05:06:{n} [multiproc_executor.py:522] ",
    "(train_fn pid=812, ip=10.0.0.3) ",
    "\x1b[36m(RayTrainWorker pid=812, ip=10.0.0.3)\x1b[0m ",
    "(raylet, ip=10.0.0.3) ",
    "E0304 05:06:{n}.123456 812 site-packages/torch/api.py:869] ",
    "Mar  4 05:06:{n} gpu-node-3 train[812]: ",
    "[1772600{n}0.123] ",
    "worker-3: [rank3]: ",
    "gpu-node-3: 2026-03-04 05:06:{n}.5 ",
)


def _exceptions(text: str) -> list[str]:
    result = scan(from_text("train.log", text.encode()), index())
    return [event.text for event in result.events if event.symptom == EXCEPTION]


def _lines(form: str) -> list[str]:
    return [form.replace("{n}", f"{10 + n}") + line for n, line in enumerate(TEXT)]


@pytest.mark.parametrize("form", FORMS)
def test_an_exception_is_read_behind_any_prefix(form: str) -> None:
    assert _exceptions("\n".join(_lines(form))) == [TEXT[-1]]


@pytest.mark.parametrize("form", ["{n}:", "     {n} ", "     {n}\t"], ids=["grep", "less", "cat"])
def test_an_exception_is_read_behind_the_numbers_of_lines(form: str) -> None:
    numbered = _lines(form)
    if form == "{n}:":
        numbered[1:] = [row.replace(":", "-", 1) for row in numbered[1:]]  # of grep's context
    assert _exceptions("\n".join(numbered)) == [TEXT[-1]]


def test_an_exception_is_read_from_the_json_of_docker() -> None:
    kept = [
        json.dumps(
            {"log": line + "\n", "stream": "stderr", "time": f"2026-03-04T05:06:{n}.123456789Z"},
            separators=(",", ":"),
        )
        for n, line in enumerate(TEXT, 10)
    ]
    assert _exceptions("\n".join(kept)) == [TEXT[-1]]


@pytest.mark.parametrize(
    "form", ["[rank3]: ", "3: ", "(train_fn pid=3, ip=10.0.0.1) ", "worker-3  | "]
)
def test_lines_of_another_rank_between_are_not_its_own(form: str) -> None:
    other = form.replace("3", "5") + "KeyError: of another rank"
    own = _lines(form)
    assert _exceptions("\n".join((own[0], other, *own[1:]))) == [TEXT[-1]]


def test_words_before_a_traceback_that_are_no_prefix_stay_out_of_the_way() -> None:
    assert _exceptions("\n".join(("Worker failed: " + TEXT[0], *TEXT[1:]))) == [TEXT[-1]]


# What is about several logs, or ends its own, is no text that a prefix stands before.
ALONE = [
    entry
    for entry in catalogue()
    if entry.role in (Role.CAUSE, Role.APPLICATION, Role.CONSEQUENCE)
    and not (entry.across or entry.last)
]


@cache
def _without_prefix(number: int) -> tuple[str, str]:
    """Return what is told of the example of an entry as it is: several forms stand before the same."""
    plain = diagnose_lines({"log": ALONE[number].examples[0].strip().split("\n")})
    return plain.label, plain.confidence


@pytest.mark.parametrize("form", FORMS)
def test_a_prefix_changes_no_answer(form: str) -> None:
    """Every form stands before examples of the catalogue, a share of them in turn."""
    assert len(FORMS) >= 28
    for number in range(FORMS.index(form) % 4, len(ALONE), 4):
        text = ALONE[number].examples[0].strip().split("\n")
        lines = [form.replace("{n}", f"{10 + n}") + line for n, line in enumerate(text)]
        behind = diagnose_lines({"log": lines})
        assert (behind.label, behind.confidence) == _without_prefix(number), lines
