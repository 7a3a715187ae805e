"""The remedies there are: those of the house, and those of others that cannot be used."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

import pytest

from remedy.errors import UsageError
from remedy.plan import registry
from remedy.plan.registry import Remedy, files_read, find_remedy, remedies, remedy_of
from remedy.plan.workbench import Workbench
from remedy.spec import SpecSection


def test_remedies_are_in_the_order_in_which_they_act() -> None:
    found = remedies()
    assert len(found) > 20
    assert [(r.order, r.name) for r in found] == sorted((r.order, r.name) for r in found)
    assert all(isinstance(r, Remedy) for r in found)


def test_the_files_that_remedies_read_are_known_without_importing_them() -> None:
    read = {path for remedy in remedies() for path in remedy.reads}
    assert len(read) > 10
    known = files_read()
    missing, extra = sorted(read - set(known)), sorted(set(known) - read)
    assert not missing, f"write into remedy/plan/reads.txt, a line each: {' '.join(missing)}"
    assert not extra, f"no remedy reads, take out of remedy/plan/reads.txt: {' '.join(extra)}"
    assert len(set(known)) == len(known)


def test_what_a_remedy_of_others_reads_is_read_too() -> None:
    def theirs(_: Workbench[SpecSection]) -> None:
        """Decide nothing."""

    extra = registry.remedy("theirs", SpecSection, finds=("x",), reads=("/etc/theirs",))(theirs)
    with registry.also(extra):
        assert files_read()[-1] == "/etc/theirs"
    assert "/etc/theirs" not in files_read()


def test_a_remedy_is_found_by_its_name_and_another_name_is_refused_with_all_there_are() -> None:
    assert find_remedy("limits").name == "limits"
    with pytest.raises(UsageError, match="'limit'") as caught:
        find_remedy("limit")
    for name in ("limits", "hostname", "sysv_ipc"):
        assert name in caught.value.next_step


@pytest.mark.parametrize(
    ("name", "there"),
    [("limits", True), ("nothing", False), ("_cloud", False), ("../limits", False), ("", False)],
)
def test_a_remedy_of_the_house_is_found_without_loading_the_others(name: str, there: bool) -> None:
    found = registry.built_in(name)
    assert (found is not None) is there
    assert found is None or found.name == name


def test_a_module_holds_a_remedy_of_its_own_name_or_none() -> None:
    module = ModuleType("theirs.mine")
    with pytest.raises(TypeError, match=r"mine\(\)"):
        remedy_of(module)
    module.mine = find_remedy("limits")  # type: ignore[attr-defined]
    assert remedy_of(module).name == "limits"


def third_party(value: str, taken: set[str]) -> Remedy[Any]:
    return registry._third_party(EntryPoint("theirs", value, "remedy.deploys"), taken)


def test_a_remedy_of_others_is_refused_by_name_when_it_cannot_be_used() -> None:
    assert third_party("remedy.deploys.limits", set()).name == "limits"
    assert third_party("remedy.deploys.limits:limits", set()).name == "limits"
    for value in ("nowhere.at.all", "remedy.deploys.limits:absent", "remedy.text"):
        with pytest.raises(UsageError, match="cannot be loaded") as caught:
            third_party(value, set())
        assert value in caught.value.message
        assert "uninstall" in caught.value.next_step
    with pytest.raises(UsageError, match="'limits'") as caught:
        third_party("remedy.deploys.limits", {"limits"})
    assert "remedy.deploys.limits" in caught.value.message
