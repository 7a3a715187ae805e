"""YAML is read safely, whichever of PyYAML's loaders there is."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
import yaml

from remedy.yaml_text import YamlError, parse_own, parse_yaml

PACKAGE = Path(__file__).parents[2] / "remedy"


@pytest.fixture(params=["libyaml", "pure Python"], autouse=True)
def _loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "pure Python":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    elif not hasattr(yaml, "CSafeLoader"):
        pytest.skip("PyYAML was built without libyaml")


@pytest.mark.parametrize(
    "text", ["a: {b: [1, 2.5, yes, null, ü]}", "a: {b: [1, 2.5, yes, null, ü]}".encode()]
)
def test_plain_values_are_read(text: str | bytes) -> None:
    assert parse_yaml(text) == {"a": {"b": [1, 2.5, True, None, "ü"]}}


@pytest.mark.parametrize(
    ("text", "core", "old"),
    [
        ("true", True, True),
        ("no", "no", False),
        ("On", "On", True),
        ("0755", 755, 0o755),
        ("1:30", "1:30", 90),
        ("1_000", "1_000", 1000),
        ("1e3", 1000.0, "1e3"),
        ("9000-9100", "9000-9100", "9000-9100"),
        ("-5", -5, -5),
        ("'5'", "5", "5"),
        ("~", None, None),
        ("{<<: {a: 1}, b: 2}", {"a": 1, "b": 2}, {"a": 1, "b": 2}),
        ("2026-01-31", "2026-01-31", date(2026, 1, 31)),
    ],
)
def test_plain_words_are_those_of_the_version(text: str, core: object, old: object) -> None:
    assert parse_yaml(text, core=True) == core
    assert parse_yaml(text) == old


@pytest.mark.parametrize(
    "text",
    [
        "a: [",
        "!!python/object/apply:os.system ['true']",
        "!!python/name:os.system",
        "a: *nowhere",
        b"a: \xff\xfe\x00",
        "a: \x00",
        pytest.param("[" * 100_000, id="deep lists"),
        pytest.param("{a: " * 100_000, id="deep mappings"),
    ],
)
def test_anything_else_is_an_error_of_one_line(text: str | bytes) -> None:
    with pytest.raises(YamlError) as caught:
        parse_yaml(text)
    assert "\n" not in str(caught.value)


def test_a_tab_is_named_where_spaces_indent() -> None:
    with pytest.raises(YamlError, match="line 2, column 1: a tab, where YAML indents with spaces"):
        parse_yaml("verify:\n\tdeadline: 3\n")
    with pytest.raises(YamlError) as caught:
        parse_yaml("a: [1,\n")
    assert "tab" not in str(caught.value)


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.yaml")), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_texts_of_the_package_are_sound(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert parse_own(text) == parse_yaml(text) != {}
