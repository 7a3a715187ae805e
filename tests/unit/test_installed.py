"""The entry points of what is installed."""

from __future__ import annotations

from importlib.metadata import entry_points

from remedy.installed import points


def test_they_are_those_that_python_itself_finds() -> None:
    for group in ("console_scripts", "pyinfra.connectors"):
        found = points(group=group)
        assert len(found) > 1
        assert set(found) == set(entry_points(group=group))
    assert points(group="nobody.has.this") == ()
