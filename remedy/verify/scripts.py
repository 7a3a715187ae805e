"""How verification runs scripts on hosts: through one function, which it is given."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Protocol

from remedy.answers import silence
from remedy.sentences import without_host
from remedy.transport import Output, Script

# Where torch is often found when the user's own ``python3`` has none; the first that has it is taken.
INTERPRETERS = (
    "python3",
    "python",
    '"$VIRTUAL_ENV/bin/python"',
    '"$CONDA_PREFIX/bin/python"',
    "/opt/conda/bin/python3",
    "/opt/miniconda3/bin/python3",
    "/opt/venv/bin/python3",
    "/usr/local/bin/python3",
    '"$HOME/miniconda3/bin/python3"',
    '"$HOME/anaconda3/bin/python3"',
    '"$HOME/.venv/bin/python3"',
)


class Run(Protocol):
    """Starts the script of each host at about the same time, and returns when all have ended."""

    def __call__(self, scripts: Mapping[str, Script], /) -> Mapping[str, Output]:
        """Run scripts by host name, as ``Transport.run`` does."""


def run_texts(run: Run, texts: Mapping[str, tuple[str, float]]) -> Mapping[str, Output]:
    """Run POSIX sh texts.

    Args:
        run: runs scripts on hosts.
        texts: by host name, each with the seconds after which the host ends it.
    """
    if not texts:
        return {}
    return run({host: Script(text, seconds) for host, (text, seconds) in texts.items()})


def why_silent(output: Output | None) -> str:
    """Say why a host gave no answer, without its name and address in front."""
    if output is None:
        return "nothing came back"
    if output.error:
        return without_host(output.host, output.error.message)
    return silence(output.stderr)


NO_ANSWER = "gave no answer in"
"""What is said of an interpreter that did not start in time."""

# What keeps each interpreter from being taken is collected in `why`, without a character that JSON or a shell
# reads as more than a letter. By the shell alone: a host on which Python is broken may lack more.
_INTERPRETERS = """\
found= bare= why= nl='
'
limit=
! command -v timeout >/dev/null 2>&1 || limit='timeout {seconds}'
for python in {choices}; do
  place=$(command -v "$python" 2>/dev/null) || place=
  if [ -z "$place" ]; then
    [ ! -e "$python" ] || why="$why$python may not be executed by ${{USER:-this user}}; "
    continue
  fi
  said=$($limit "$python" {options} -c {test} </dev/null 2>&1)
  status=$?
  last=${{said##*"$nl"}}
  case $status$last in
    0{word}) found=$python; break ;;
    0bare) bare=${{bare:-$python}} why="$why$place has no {word}; " ;;
    124*) why="$why$place {no_answer} {seconds} s; " ;;
    *) why="$why$place ended with $status: $last; " ;;
  esac
done
why=$(
  LC_ALL=C clean=
  why=${{why:-none is installed}}
  while [ "$why" ] && [ ${{#clean}} -lt 300 ]; do
    rest=${{why#?}}
    letter=${{why%"$rest"}} why=$rest
    case $letter in [!A-Za-z0-9\\ ./_:\\;,=+-]) letter=' ' ;; esac
    clean=$clean$letter
  done
  printf %s "$clean"
)
"""


def interpreter_text(
    choices: str, test: str, word: str, options: str = "", seconds: int = 20
) -> str:
    """Render the shell text that looks for an interpreter.

    It sets ``found``, or ``bare`` to one that runs and says so, and ``why`` to what is wrong with the others.

    Args:
        choices: shell words, the first that does is taken.
        test: Python text that prints ``word``, or "bare".
        word: what a good one prints.
        options: for the interpreter.
        seconds: after which one that has said nothing is given up.
    """
    return _INTERPRETERS.format(
        choices=choices,
        test=shlex.quote(test),
        word=word,
        options=options,
        seconds=seconds,
        no_answer=NO_ANSWER,
    )


def interpreter_word(python: str) -> str:
    """Quote a named interpreter as a shell word; ``~/`` is the home folder, as in an interactive shell."""
    if python.startswith("~/"):
        return f'"$HOME"/{shlex.quote(python[2:])}'
    return shlex.quote(python)
