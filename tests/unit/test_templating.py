"""Templates: files for hosts are exact, pages show every character, and what is missing is an error."""

from __future__ import annotations

import jinja2
import pytest
from jinja2 import DictLoader

from remedy import templating


@pytest.fixture
def templates(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return templates that both kinds of text are made of instead of remedy's."""
    texts: dict[str, str] = {}
    for kind in (templating._files(), templating._pages()):
        monkeypatch.setattr(kind, "loader", DictLoader(texts))
        monkeypatch.setattr(kind, "cache", None)
    return texts


@pytest.mark.parametrize("value", ["<b> & 'x' \"y\"", "a\nb", "{{ 1 }}", "\u202e"])
def test_a_file_for_a_host_has_a_value_as_it_is(templates: dict[str, str], value: str) -> None:
    templates["t"] = "a {{ value }} z\n"
    assert templating.render("t", value=value) == f"a {value} z\n"


@pytest.mark.parametrize("value", ["x' + \"y", "a\nb", {"k": ["v"]}, None])
def test_a_value_becomes_a_literal_of_python(templates: dict[str, str], value: object) -> None:
    templates["t"] = "{{ value | pyliteral }}"
    assert eval(templating.render("t", value=value)) == value  # noqa: S307 - made here


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("<script>", "&lt;script&gt;"),
        ("a&b", "a&amp;b"),
        ("\x1b[31m", r"\x1b[31m"),
        ("\u202e", r"\u202e"),
    ],
)
def test_a_page_shows_every_character_and_takes_none_for_markup(
    templates: dict[str, str], value: str, shown: str
) -> None:
    templates["t"] = "<p>{{ value }}</p>"
    assert templating.render_page("t", value=value) == f"<p>{shown}</p>"


@pytest.mark.parametrize("render", [templating.render, templating.render_page])
def test_a_value_that_is_missing_is_an_error(templates: dict[str, str], render: object) -> None:
    templates["t"] = "{{ nobody_gave_it }}"
    assert callable(render)
    with pytest.raises(jinja2.UndefinedError):
        render("t")
