"""One line that sets a variable, in each syntax."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.edit.variables import Syntax, variables

X = (("X", "eth9"),)


@pytest.mark.parametrize(
    ("syntax", "line", "pairs"),
    [
        (Syntax.SHELL, "export X=eth9", X),
        (Syntax.SHELL, "X=eth9 program", ()),
        (Syntax.CSH, "setenv X eth9", X),
        (Syntax.CSH, "  setenv X 'eth9'; setenv Y b", (("X", "eth9"), ("Y", "b"))),
        (Syntax.CSH, "setenv X $OTHER", ()),
        (Syntax.FISH, "set -gx X eth9", X),
        (Syntax.FISH, "set -g X eth9", ()),
        (Syntax.MODULE, "setenv X eth9", X),
        (Syntax.MODULE, 'setenv("X", "eth9")', X),
        (Syntax.MODULE, '-- setenv("X", "eth9")', ()),
        (Syntax.PLAIN, "X=eth9", X),
        (Syntax.PLAIN, 'X="eth9"  ', X),
        (Syntax.PLAIN, "X=", (("X", ""),)),
        (Syntax.PLAIN, "; X=eth9", ()),
        (Syntax.UNIT, "DefaultEnvironment=A=1 X=eth9", (("A", "1"), ("X", "eth9"))),
        (Syntax.UNIT, "Environment=\"X=eth9\" 'B=c d'", (*X, ("B", "c d"))),
        (Syntax.UNIT, "ManagerEnvironment = X=eth9", X),
        (Syntax.UNIT, "ExecStart=/bin/x X=eth9", ()),
        (Syntax.PAM_ENV, "X\tDEFAULT=eth9", X),
        (Syntax.PAM_ENV, 'X DEFAULT=eth0 OVERRIDE="eth9"', X),
        (Syntax.PAM_ENV, "X DEFAULT=@{HOME}/x", ()),
        (Syntax.PAM_ENV, "X=eth9", ()),
        (Syntax.PROLOG, 'echo "export X=eth9"', X),
        (Syntax.LIST, 'env = ["A=b", "X=eth9"]', (("A", "b"), *X)),
        (Syntax.JSON, '{"env_vars": {"X": "eth9"}}', X),
        (Syntax.YAML, "  - X=eth9", X),
        (Syntax.KEYS, 'environment="X=eth9",no-pty ssh-ed25519 AAAA me', X),
        (Syntax.INI, 'environment=A="1",X="eth9"', (("A", "1"), *X)),
        (Syntax.SHELL, "# export X=eth9", ()),
        (Syntax.UNIT, "#Environment=X=eth9", ()),
    ],
)
def test_what_a_line_sets(syntax: Syntax, line: str, pairs: tuple[tuple[str, str], ...]) -> None:
    assert variables(line, syntax) == pairs


@given(st.sampled_from(list(Syntax)), st.text(max_size=80))
def test_any_text_is_read_without_harm(syntax: Syntax, line: str) -> None:
    for name, value in variables(line, syntax):
        assert name.isidentifier()
        assert value in line
        assert not set(value) & set("$`\\")
