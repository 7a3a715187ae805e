"""The tree of errors: what its page shows is what it is, and each has its exit code and its next step."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from remedy import errors
from remedy.errors import PlanFileError, RemedyError


def tree(of: type[RemedyError], depth: int = 0) -> Iterator[tuple[int, type[RemedyError]]]:
    yield depth, of
    for child in of.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from tree(child, depth + 1)


def drawn() -> Iterator[tuple[int, str, int | None]]:
    """Yield each line of the drawing in the module's docstring: depth, name and exit code."""
    for line in (errors.__doc__ or "").split("\n"):
        if match := re.match(r"^    ([│├└─ ]*)(\w+Error)\b.*?(?:exit (\d))?$", line):
            yield len(match[1]) // 4, match[2], int(match[3]) if match[3] else None


def test_the_drawing_is_the_tree() -> None:
    known = [(depth, error.__name__) for depth, error in tree(RemedyError)]
    assert len(known) > 10
    assert sorted((depth, name) for depth, name, _ in drawn()) == sorted(known)


def test_the_exit_codes_are_those_of_the_drawing() -> None:
    codes = {name: code for _, name, code in drawn() if code is not None}
    own = {e.__name__: e.exit_code for _, e in tree(RemedyError) if "exit_code" in vars(e)}
    assert codes == own


@pytest.mark.parametrize(
    ("next_step", "text"), [("", "it is so"), ("Do that.", "it is so\nDo that.")]
)
def test_an_error_reads_as_its_message_with_the_next_step_below(next_step: str, text: str) -> None:
    error = PlanFileError("it is so", next_step=next_step, inventory="inventory.py")
    assert str(error) == text
    assert (error.message, error.next_step) == ("it is so", next_step)
    assert error.inventory == "inventory.py"
    assert error.exit_code == 2
