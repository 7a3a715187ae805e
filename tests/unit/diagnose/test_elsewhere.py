"""A path that one rank lacks and another uses is of a file system that is not mounted everywhere."""

from __future__ import annotations

import pytest

from remedy.diagnose.logs import diagnose_lines

PATH = "/srv/sets/train.csv"
LACKS = "{0}FileNotFoundError: [Errno 2] No such file or directory: '" + PATH + "'"


def label_of(*lines: str) -> str:
    return diagnose_lines({"log": lines}).label


def lacking(prefix: str) -> tuple[str, ...]:
    return (
        f"{prefix}Traceback (most recent call last):",
        f'{prefix}  File "/app/train.py", line 12, in main',
        f"{prefix}    rows = open(path)",
        LACKS.format(prefix),
    )


@pytest.mark.parametrize(
    ("used", "label"),
    [
        (f"[n1] 223414 rows from {PATH}", "storage-fault"),
        (f"[n1] 223414 rows from {PATH}.old", "storage-fault"),
        ("[n1] 223414 rows from /srv/sets/other.csv", "application-error"),
        # The rank itself says what it is about to open, or nobody knows who does.
        (f"[n3] reading {PATH}", "application-error"),
        (f"reading {PATH}", "application-error"),
        (f"[n1] cannot open {PATH}", "application-error"),
    ],
)
def test_another_host_uses_what_this_one_lacks(used: str, label: str) -> None:
    assert label_of(used, *lacking("[n3] ")) == label


def test_what_every_rank_lacks_is_the_programs_own() -> None:
    used = f"[n1] reading {PATH}"
    assert label_of(used, *lacking("[n1] "), *lacking("[n3] ")) == "application-error"


def test_another_rank_of_one_host_uses_it() -> None:
    assert label_of(f"[rank0]: rows of {PATH}", *lacking("[rank3]: ")) == "storage-fault"


def test_the_logs_of_two_hosts() -> None:
    found = diagnose_lines({"n1.log": [f"rows of {PATH}"], "n3.log": lacking("")})
    assert found.label == "storage-fault"
    assert found.lead is not None
    assert found.lead.file == "n3.log"
