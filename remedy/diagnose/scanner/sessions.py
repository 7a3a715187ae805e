"""What a terminal shows beside output: prompts, the commands that were typed there, and how they ended."""

from __future__ import annotations

import re
from collections.abc import Sequence

from remedy.text import is_number

# Behind the host that a loop puts there, a number sign and a word in capitals is what nccl-tests prints.
_PLACE = (
    r"(?:\([\w.-]{1,40}\) ?){0,3}"
    r"(?:\[[\w.-]{1,64}@[\w.-]{1,64} [^\]\n]{1,120}\][#$%]|[\w.-]{1,64}@[\w.-]{1,64}:[^\s#$%]{0,160}[#$%]"
    r"|\[(?=[\d.]{0,64}[^\W\d])[\w.-]{1,64}\](?: ?\$|#| #(?= ?$| [a-z][a-z\d_./-]{0,40}(?: |$))))"
)
# Behind a number sign that may begin a comment, too: neither is output.
_COMMAND = (
    r"(?:ssh|sudo|grep|zgrep|journalctl|dmesg|sacct|squeue|scontrol|sinfo|kubectl|nvidia-smi|rocm-smi|npu-smi"
    r"|docker|systemctl|ip|ss|ls|df|ipcs|ethtool|ibstat|rdma|cat|tail|head|for|mpirun|srun|torchrun)"
)
_PROMPT = re.compile(rf"(?:{_PLACE}|\$) ?$")
# A name and a dollar is how people shorten it (node0$ torchrun ...); a number sign alone begins a comment.
_TYPED = re.compile(rf"(?:{_PLACE}|[\w.-]{{0,64}}\$|In \[\d{{1,4}}\]:) (?=\S)|# {_COMMAND} \S")
_MAY_BE_TYPED = re.compile(rb"[$#%:] \S")
_STATUS = re.compile(r"echo [\"']?(?:\w+ )?\$\?[\"']?\s*$")


def is_typed(line: str) -> bool:
    """Return whether a line is a command behind a prompt: what it names is no output.

    Args:
        line: of a log.
    """
    return bool(_TYPED.match(line))


def is_prompt(line: str) -> bool:
    """Return whether a line is a prompt at which nothing was typed: the command before it has ended.

    Args:
        line: of a log.
    """
    return bool(_PROMPT.match(line))


def asks_for_status(line: str) -> bool:
    """Return whether a line is the command that asks how the one before it ended.

    Args:
        line: of a log.
    """
    return bool(_STATUS.search(line))


def exit_status(lines: Sequence[str]) -> int | None:
    """Return how the last command of a session ended, where somebody asked for it last of all.

    Args:
        lines: the last ones of a log, without empty ones.

    Returns:
        None where nobody asked, or something followed.
    """
    rest = [line.strip() for line in lines if not is_prompt(line)][-2:]
    if len(rest) < 2 or not asks_for_status(rest[0]) or not is_number(rest[1]):
        return None
    return int(rest[1])


def commands_of(ending: bytes, first: int) -> tuple[int, ...]:
    """Return the numbers of the lines near the end of a log at which a command was typed.

    Args:
        ending: the last lines of the log.
        first: the number of the first of them.
    """
    if not _MAY_BE_TYPED.search(ending):
        return ()
    rows = ending.decode("utf-8", "replace").split("\n")
    return tuple(number for number, row in enumerate(rows, first) if is_typed(row))
