"""The property tests can fail: remedies that are wrong on purpose, and the sentence each gets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from remedy.errors import UsageError
from remedy.plan import Remedy, remedy_of
from remedy.plan.registry import also
from tests.unit.deploys.example import load
from tests.unit.deploys.promises import sweep

SOUND = '''
"""Pages: a remedy for tests.

It switches one kernel setting off where the settings ask for it, and says so in a text that is long enough.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from remedy.plan import Change, CommandAction, Workbench, remedy
from remedy.probe import HostState, Sysctls
from remedy.spec import SpecSection

KEY = "kernel.numa_balancing"


def word(text: str) -> str:
    if text != "please":
        raise ValueError("say please")
    return text


class PagesSpec(SpecSection):
    """``off``: whether it is switched off."""

    off: bool = False


@remedy("Pages", PagesSpec, cures=("wrong-interface",))
def pages(bench: Workbench[PagesSpec]) -> None:
    live = bench.need(bench.host.sysctls, "the kernel's settings").live
    if bench.settings.off and live.get(KEY, "0") != "0":
        bench.run(
            "set it",
            because=bench.drift("it is on", live[KEY]),
            observe=f"sysctl -n {KEY}",
            before=live[KEY],
            after="0",
            do=f"sysctl -w {KEY}=0",
            undo=f"sysctl -w {KEY}={live[KEY]}",
        )


@pages.promises
def promise(state: HostState, change: Change) -> HostState:
    assert isinstance(state.sysctls, Sysctls)
    assert isinstance(change.action, CommandAction)
    live = {**state.sysctls.live, KEY: change.action.after}
    return state.model_copy(update={"sysctls": state.sysctls.model_copy(update={"live": live})})


@pages.observes
def observation(state: HostState, change: Change) -> str:
    assert isinstance(state.sysctls, Sysctls)
    return state.sysctls.live[KEY]


@pages.breaks
def broken(state: HostState) -> HostState:
    assert isinstance(state.sysctls, Sysctls)
    live = {**state.sysctls.live, KEY: "1"}
    return state.model_copy(update={"sysctls": state.sysctls.model_copy(update={"live": live})})
'''
Replacement = tuple[str, str]
BROKEN: dict[str, tuple[tuple[Replacement, ...], str]] = {
    "changes of a remedy that cures nothing": (
        (('cures=("wrong-interface",)', 'finds=("wrong-interface",)'),),
        "the remedy pages cures nothing, and plans a change: 'set it'",
    ),
    "a kernel setting that not every host has": (
        (('live.get(KEY, "0")', "live[KEY]"),),
        "pages expects 'kernel.numa_balancing' of every host, and this one lacks it",
    ),
    "a setting that nobody reads": (
        (("off: bool = False", "off: bool = False\n    speed: int = 3"),),
        r"PagesSpec.speed altered no plan and no finding: say with @pages.breaks on which host it does",
    ),
    "a before that is nonsense where two settings are on": (
        (
            ("off: bool = False", "off: bool = False\n    quick: bool = False"),
            ("before=live[KEY],", 'before="nonsense" if bench.settings.quick else live[KEY],'),
        ),
        "`before` is not what is there now: '1'",
    ),
    "a report that reports nothing": (
        (
            ('cures=("wrong-interface",)', 'finds=("wrong-interface",)'),
            ("if bench.settings.off and", "if not bench.settings and"),
        ),
        "pages never found anything in any of these cases",
    ),
    "settings that no value switches on": (
        (("off: bool = False", "off: Annotated[str, AfterValidator(word)] | None = None"),),
        r"PagesSpec.off: its type tells no value that can be set; give some in the model",
    ),
    "nothing that it cures on any host": (
        (('KEY: "1"}', 'KEY: "0"}'),),
        "pages never planned a change in any of these cases",
    ),
    "a promise that changes nothing": (
        (("KEY: change.action.after}", "KEY: live_now(state)}"),),
        "`after` is not what is promised",
    ),
    "a promise of another value": (
        (("KEY: change.action.after}", 'KEY: "2"}'),),
        "`after` is not what is promised: '2'",
    ),
    "a nonsense before": (
        (("before=live[KEY],", 'before="nonsense",'),),
        "`before` is not what is there now: '1'",
    ),
    "a nonsense after": (
        (('after="0",', 'after="off",'),),
        "`after` is not what is promised|planned again",
    ),
    "a command that nobody observes": (
        (("@pages.observes\n", "\n"),),
        "pages: 'set it' runs a command: say with @pages.observes what its `observe` prints",
    ),
    "a way back that does not lead back": (
        (("KEY: change.action.after}", 'KEY: "0"}'),),
        "sysctls is not what it was, taken back",
    ),
}


def pages(folder: Path, replacements: tuple[Replacement, ...]) -> Remedy[Any]:
    """Return the remedy with pieces of its text replaced."""
    text = SOUND.lstrip()
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    text += "\n\ndef live_now(state: HostState) -> str:\n    return state.sysctls.live[KEY]\n"
    path = folder / "pages.py"
    path.write_text(text, encoding="utf-8")
    return remedy_of(load(path))


def test_a_sound_remedy_passes(tmp_path: Path) -> None:
    remedy = pages(tmp_path, ())
    with also(remedy):
        sweep(remedy)


def test_a_setting_that_says_why_it_cannot_be_tried_passes(tmp_path: Path) -> None:
    speed = 'speed: int = Field(3, json_schema_extra={"untried": "needs hosts of two makers"})'
    remedy = pages(
        tmp_path,
        (
            ("import AfterValidator", "import AfterValidator, Field"),
            ("off: bool = False", f"off: bool = False\n    {speed}"),
        ),
    )
    with also(remedy):
        sweep(remedy)


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_remedy_is_caught_in_a_sentence(fault: str, tmp_path: Path) -> None:
    replacements, sentence = BROKEN[fault]
    remedy = pages(tmp_path, replacements)
    with also(remedy), pytest.raises((AssertionError, UsageError), match=sentence):
        sweep(remedy)
