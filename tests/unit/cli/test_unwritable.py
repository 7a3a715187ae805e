"""Standard streams that are full, or were closed: a sentence and a code, and no traceback."""

from __future__ import annotations

import subprocess
import sys

import pytest

COMMAND = "import sys; sys.argv[0] = 'remedy'; from remedy.cli.main import main; main()"


def ended(*words: str, streams: str) -> subprocess.CompletedProcess[str]:
    """Run remedy by a shell that redirects its streams."""
    line = ["sh", "-c", f'exec "$@" {streams}', "sh", sys.executable, "-c", COMMAND, *words]
    return subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    "words",
    [
        ("explain",),
        *(
            pytest.param(words, marks=pytest.mark.full)
            for words in (("--help",), ("schema", "run"))
        ),
    ],
)
def test_a_full_output_is_an_error_in_words(words: tuple[str, ...]) -> None:
    done = ended(*words, streams=">/dev/full")
    assert done.returncode == 1
    assert "cannot be written: No space left on device\n  Make room there" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize(
    "streams",
    ["<&- >&- 2>&-", *(pytest.param(s, marks=pytest.mark.full) for s in ("2>/dev/full", "2>&-"))],
)
def test_a_wrong_command_line_keeps_its_code_where_nobody_can_be_told(streams: str) -> None:
    assert ended("check", streams=streams).returncode == 2
    assert ended("check", "/nowhere.py", streams=streams).returncode == 2


@pytest.mark.parametrize(
    "streams", ["<&- >&-", *(pytest.param(s, marks=pytest.mark.full) for s in (">&-", "<&-"))]
)
def test_closed_streams_are_no_reason_to_fail(streams: str) -> None:
    done = ended("explain", streams=streams)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_pyinfra_asks_of_its_streams_is_answered() -> None:
    done = ended("check", "/dev/null", streams=">&-")
    assert "Traceback" not in done.stderr
    assert done.returncode == 2
