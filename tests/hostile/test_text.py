"""Text of others shows every character of itself wherever it comes out, and a field of one line stays one."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
from rich.console import RenderableType
from rich.progress import Progress

from remedy.audit.export import AuditRow, as_csv
from remedy.audit.story import Story
from remedy.cli import plain
from remedy.cli.terminal import HostStep, StandardOutput, step_table
from remedy.diagnose.diagnosis import Candidate, Diagnosis, Explanation
from remedy.plan import Plan, all_causes
from remedy.report.audit import render_run, run_line
from remedy.report.console import VisibleConsole
from remedy.report.diagnosis import render_diagnosis
from remedy.report.document import run_document
from remedy.report.ladder import render_rung, render_verdict
from remedy.report.look import render_views
from remedy.report.outcome import render_outcome
from remedy.report.pages.fleet import fleet_page
from remedy.report.pages.plan import plan_file_page, plan_page
from remedy.report.pages.run import Circumstances, run_page
from remedy.report.pages.story import story_page
from remedy.report.plan import render_plan
from remedy.report.whole import exact
from remedy.runs.outcome import RunOutcome
from remedy.text import visible
from remedy.verify.look.compare import HostView
from remedy.verify.verdict import Rung, Verdict

from .filled import BIDI, HIDDEN, filled, shows

CODES = [*map(chr, range(0x300)), *BIDI, *HIDDEN]
HARMLESS = "a job"
# What rich writes on a terminal for itself: colours.
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
# A host's words that are several lines, which each say that they are quoted.
QUOTE = " " * 14 + "| "
# A host that means harm: the clipboard, an erased line, a good end that it makes up, a title.
HARM = "job\x1b]52;c;ZXZpbA==\x07\x1b[2K\r\x1b[1Agpu01: ok\nproved       4 of 4 ranks\x1b]0;x\x9c\x9b2J"


def renderables(text: str) -> Iterator[tuple[str, RenderableType]]:
    """Yield all that is shown of runs, plans, verdicts, logs and journals whose every text is ``text``."""
    label = next(iter(all_causes()))  # never a text of a log
    diagnosis = filled(
        Diagnosis, text, label=label, candidates=(filled(Candidate, text, label=label),)
    )
    explanation = filled(Explanation, text, diagnosis=diagnosis)
    verdicts = [filled(Verdict, text, passed=passed) for passed in (True, False)]
    for verdict in verdicts:
        yield "verdict", render_verdict(verdict, None)
        yield (
            "outcome",
            render_outcome(filled(RunOutcome, text, verdict=verdict, explanation=explanation)),
        )
    yield "explained", render_verdict(verdicts[1], explanation)
    yield "diagnosis", render_diagnosis(explanation, everything=True)
    yield "rung", render_rung(filled(Rung, text))
    yield "views", render_views([filled(HostView, text)])
    yield "plan", render_plan(filled(Plan, text))
    story = filled(Story, text, waves=[], red={}, exit_code=1, proved=False)
    yield "run", render_run(story, None, text, {text: text})
    yield "history", run_line(story)
    yield "live table", step_table({text: HostStep(text, 0.0)}, 1.0, 1.0, text)
    yield "plain", text


def printed(renderable: RenderableType, *, terminal: bool) -> str:
    """Return what a command prints."""
    file = io.StringIO()
    options: dict[str, Any] = {"force_terminal": terminal, "width": 100_000}
    StandardOutput(file=file, **options).print(renderable)
    return file.getvalue()


@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "pipe"])
def test_what_is_printed_shows_every_character_and_has_no_more_lines(*, terminal: bool) -> None:
    expected = [printed(shown, terminal=terminal) for _, shown in renderables(HARMLESS)]
    payloads = [HARM, *("".join(CODES[at : at + 64]) for at in range(0, len(CODES), 64))]
    for payload in payloads:
        for (name, renderable), harmless in zip(renderables(payload), expected, strict=True):
            text = printed(renderable, terminal=terminal)
            plain_text = COLOURS.sub("", text) if terminal else text
            assert shows(plain_text), (name, ascii(payload), ascii(text))
            own = [line for line in plain_text.split("\n") if not line.startswith(QUOTE)]
            assert len(own) == harmless.count("\n") + 1, name


def test_no_character_is_left_out() -> None:
    """What is taken out is as misleading as what erases: each character comes as itself or as its escape."""
    for code in CODES:
        text = printed(f"<{code}>", terminal=False)
        inner = text.removeprefix("<").removesuffix(">\n")
        assert inner == code or inner.encode().decode("unicode_escape") == code or code == "\t", (
            ascii(text)
        )


def test_our_own_colours_and_the_live_table_still_work() -> None:
    file = io.StringIO()
    console = VisibleConsole(file=file, force_terminal=True, color_system="standard", width=80)
    console.print("[bold]no markup[/bold] :smile:", style="red")
    with Progress(console=console, transient=True) as progress:
        progress.add_task(HARM, total=2)
    text = file.getvalue()
    assert text.startswith("\x1b[31m[bold]no markup[/bold] :smile:\x1b[0m\n")
    # What rich needs to draw over its own lines, and nothing that a task's name holds.
    assert re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\n", "", text).isprintable()
    assert "\x1b[?25l" in text
    assert "\x1b]" not in text


class _Words(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, _: Any) -> None:
        self.tags.append(tag)


def pages(text: str) -> Iterator[str]:
    """Yield the pages of a plan, a run and a fleet whose every text is ``text``."""
    label = next(iter(all_causes()))
    diagnosis = filled(
        Diagnosis, text, label=label, candidates=(filled(Candidate, text, label=label),)
    )
    explanation = filled(Explanation, text, diagnosis=diagnosis)
    verdict = filled(Verdict, text, passed=False, dead_count=1)
    plan = filled(
        Plan, text.encode(errors="replace").decode()
    )  # one with a lone surrogate has no digest
    outcome = filled(RunOutcome, text, plan=plan, verdict=verdict, explanation=explanation)
    yield plan_page(plan, 1)
    yield plan_file_page(plan)
    yield run_page(outcome, Circumstances(text, text))
    story = filled(Story, text, waves=[], red={}, exit_code=1, proved=False, mode="apply")
    story.results = {text: {text: "done"}}
    yield story_page(story, plan, text, {text: text})
    yield fleet_page([story, story], text, {text: plan})


@pytest.mark.parametrize(
    "payload", [HARM, "".join(CODES), "<script>alert(1)</script>", "'\"><img src=x>", "{{ 7 * 7 }}"]
)
def test_a_page_shows_every_character_and_has_no_markup_of_others(payload: str) -> None:
    for text, harmless in zip(pages(payload), pages(HARMLESS), strict=True):
        assert shows(text), ascii(payload)
        ours, theirs = _Words(), _Words()
        ours.feed(harmless)
        theirs.feed(text)
        # Lines of text are as many spans as they are long.
        assert [tag for tag in theirs.tags if tag != "span"] == [
            tag for tag in ours.tags if tag != "span"
        ]


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\uff1d", "%", "|"])
def test_a_cell_is_one_line_of_visible_text_and_no_formula(sign: str) -> None:
    formula = f"{sign}HYPERLINK(A1)"
    texts = [f"{lead}{formula}" for lead in ("", " ", "\t", "\r", "\n", "\u00a0", "\ufeff", "\0")]
    for payload in (HARM, "".join(CODES), *texts):
        table = as_csv([filled(AuditRow, payload)])
        head, row = csv.reader(io.StringIO(table, newline=""))
        assert len(head) == len(row)
        assert table.count("\n") == table.count("\r\n") == 2
        assert all(shows(cell) and not cell.lstrip().startswith(sign) for cell in row), ascii(
            row[0]
        )


def test_json_holds_every_character_and_sends_none() -> None:
    outcome = filled(RunOutcome, "".join(CODES), explanation=None)
    document = run_document(outcome)
    program = "import json, sys\nfrom remedy.cli.plain import print_json\nprint_json(json.load(sys.stdin))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(document).encode(),
        capture_output=True,
        check=True,
    )
    assert all(32 <= byte < 127 or byte == 10 for byte in done.stdout)
    assert json.loads(done.stdout) == json.loads(json.dumps(document))


PROGRAM = """
import click, sys
from remedy.cli import main as module
from remedy.cli.common import errors_shown
from remedy.errors import UsageError
text = sys.stdin.buffer.read().decode("utf-8", "surrogatepass")

@click.command()
@click.argument("way")
def schema(way):
    with errors_shown(verbose=True):
        if way == "error":
            raise UsageError(text, next_step=text) from ValueError(text)
        if way == "click":
            raise click.UsageError(text)
        raise ValueError(text)

import remedy.cli.schema
remedy.cli.schema.schema = schema
module.main()
"""


@pytest.mark.parametrize(("way", "code"), [("error", 2), ("click", 2), ("bug", 1)])
def test_errors_and_even_bugs_show_every_character(way: str, code: int) -> None:
    payload = f"{HARM}{''.join(CODES)}".encode("utf-8", "surrogatepass")
    for encoding in ("utf-8", "latin-1", "ascii"):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, "schema", way],
            input=payload,
            capture_output=True,
            check=False,
            env={
                "PYTHONIOENCODING": encoding,
                "PATH": "/usr/bin",
                "PYTHONPATH": ":".join(sys.path),
            },
        )
        # click takes UTF-8 where a stream is set to ASCII.
        text = done.stderr.decode(encoding.replace("ascii", "utf-8"))
        assert done.returncode == code, text
        assert shows(text), ascii(text)
        lines = text.splitlines()
        assert not any(line.startswith("proved") for line in lines)
        assert "job\\x1b]52;c;" in text


def test_a_question_shows_every_character(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr("builtins.input", lambda _="": "n")
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _="": "n")
    assert not plain.confirmed(f"High risk: {HARM}{''.join(CODES)}. Go ahead?")
    plain.say(f"{HARM}{''.join(CODES)}", err=True)
    shown = capsys.readouterr()
    assert shows(shown.err + shown.out)
    assert "\\x1b]52" in shown.err


@pytest.mark.parametrize("character", ["\x1b", "\x9b", "\u202e", "\n", "\xff"])
def test_text_that_reads_as_an_escape_is_no_control_in_plans_and_in_json(character: str) -> None:
    lookalike = visible(character) if character != "\xff" else r"\xff"
    assert exact(f"a{character}") != exact(f"a{lookalike}")
    texts = [json.dumps(run_document(filled(RunOutcome, t))) for t in (character, lookalike)]
    assert texts[0] != texts[1]
