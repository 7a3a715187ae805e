"""remedy.yaml: what is wrong is told with its path and the nearest key that exists."""

from __future__ import annotations

from pathlib import Path

import pytest

from remedy.errors import SpecError
from remedy.plan import section_models
from remedy.spec import SpecSection, load_spec


def load(tmp_path: Path, text: str) -> object:
    path = tmp_path / "remedy.yaml"
    path.write_text(text)
    return load_spec(path, section_models())


def test_no_file_means_all_defaults() -> None:
    assert load_spec(None, section_models()).cluster.subnet is None


def test_an_empty_file_means_all_defaults(tmp_path: Path) -> None:
    assert load(tmp_path, "# nothing\n")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("hostnme: {}", ["'hostnme'", "did you mean 'hostname'"]),
        ("hostname: {mange: true}", ["hostname.mange", "did you mean 'manage'"]),
        ("hostname: {manage: perhaps}", ["hostname.manage"]),
        ("cluster: {subnet: 10.0.0.0/99}", ["cluster.subnet"]),
        ("cluster: {subnet: 'fd00::/8'}", ["cluster.subnet", "IPv4"]),
        ("- a list", ["needs sections"]),
        ("a: [", ["not YAML"]),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, text: str, parts: list[str]) -> None:
    with pytest.raises(SpecError) as caught:
        load(tmp_path, text)
    assert caught.value.next_step
    for part in parts:
        assert part in caught.value.message


def test_two_ways_to_write_the_same_have_one_digest(tmp_path: Path) -> None:
    one = load(tmp_path, "cluster: {subnet: 10.1.2.3/16}")
    two = load(tmp_path, "cluster:\n  subnet: 10.1.0.0/16\nhostname:\n")
    assert one.digest == two.digest  # type: ignore[attr-defined]


def test_sections_that_a_file_does_not_have_are_asked_for_once_and_only_when_all_are_wanted(
    tmp_path: Path,
) -> None:
    path = tmp_path / "remedy.yaml"
    path.write_text("hostname: {manage: false}\ncluster: {subnet: 10.0.0.0/24}\n")
    whole = section_models()
    asked: list[int] = []

    def rest() -> dict[str, type[SpecSection]]:
        asked.append(1)
        return whole

    models = {name: whole[name] for name in ("hostname", "cluster", "apply")}
    spec = load_spec(path, models, all_models=rest)
    spec.override("apply", max_failures=3)
    assert spec.cluster.subnet == "10.0.0.0/24"
    assert spec.section("limits", whole["limits"]) == whole["limits"]()
    assert asked == []
    expected = load_spec(path, whole)
    expected.override("apply", max_failures=3)
    assert spec.digest == expected.digest
    assert spec.sections == expected.sections
    assert asked == [1]
