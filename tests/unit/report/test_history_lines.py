"""A run in one line of the history, and its proof on the screen of the run."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from remedy.audit.story import Story
from remedy.report.audit import render_run, run_line


@pytest.mark.parametrize(
    ("proved", "exit_code", "words"),
    [
        (True, 0, "proved"),
        (True, None, "proved"),
        # Hosts that could not be reached, or are not right, have no part in the proof.
        (True, 5, "proved in part"),
        (True, 1, "proved in part"),
        (False, 3, "NOT proved"),
        (None, 0, "not verified"),
    ],
)
def test_a_proof_without_some_hosts_is_not_called_one_of_all(
    proved: bool | None, exit_code: int | None, words: str
) -> None:
    story = Story(
        "r1", "apply", "2026-01-31", by="ann@ops", exit_code=exit_code, proved=proved, reason="why"
    )
    line = run_line(story)
    assert f"{words:<16}ann@ops" in line
    text = io.StringIO()
    Console(file=text, width=200).print(render_run(story, None, ""))
    reason = f"  {words}: why\n" if proved is not None else f"  {words}\n"
    assert reason in text.getvalue()
