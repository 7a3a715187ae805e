"""The step that gives the running kernel other settings."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

from remedy.plan import CommandAction
from remedy.plan.kernel import after_live, keys_of, live_command
from remedy.probe import Sysctls

DOTTED = "net.ipv6.conf.eth0/100.disable_ipv6"
"""The interface eth0.100, as sysctl(8) writes it."""


def live_action(
    before: Mapping[str, str], after: Mapping[str, str], undo: str = ""
) -> CommandAction:
    return CommandAction(**live_command(before, after, undo))


def test_the_step_writes_in_the_order_given_and_looks_in_the_order_of_names() -> None:
    action = live_action({"b.x": "1", "a.y": "2"}, {"b.x": "3", "a.y": "4"}, undo="sync")
    assert (action.before, action.after) == ("2\n1", "4\n3")
    assert action.do == "echo 3 >/proc/sys/b/x && echo 4 >/proc/sys/a/y"
    assert action.undo == "echo 1 >/proc/sys/b/x && echo 2 >/proc/sys/a/y && sync"
    assert keys_of(action) == ("a.y", "b.x")
    assert live_action({"a.y": "2"}, {"a.y": "4"}).undo == "echo 2 >/proc/sys/a/y"


def test_the_step_reaches_the_file_of_an_interface_with_a_dot() -> None:
    action = live_action({DOTTED: "0"}, {DOTTED: "1"})
    assert action.do == "echo 1 >/proc/sys/net/ipv6/conf/eth0.100/disable_ipv6"
    assert keys_of(action) == (DOTTED,)


def test_values_are_quoted() -> None:
    action = live_action({"a.b": "1 2"}, {"a.b": "$(reboot)"})
    assert shlex.split(action.do)[1] == "$(reboot)"
    assert shlex.split(action.undo)[1] == "1 2"


def test_what_the_step_looks_at_is_what_it_expects(tmp_path: Path) -> None:
    action = live_action({"a.x": "1\t2", "b.y": "7"}, {"a.x": "3 4", "b.y": "8"})
    for name, content in {"a/x": "3\t 4\n", "b/y": "8\n"}.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(content)
    look = action.observe.replace("/proc/sys", str(tmp_path))
    done = subprocess.run(["sh", "-c", look], capture_output=True, text=True, check=True)
    assert done.stdout.rstrip("\n") == action.after


def test_an_empty_value_is_known_after_the_step_as_well() -> None:
    action = live_action({"a.x": "1", "b.y": "7"}, {"a.x": "3", "b.y": ""})
    assert action.after == "3"
    assert live_action({"a.x": "", "b.y": ""}, {"a.x": "", "b.y": "1"}).after == "\n1"
    assert live_action({"a.x": "", "b.y": "7"}, {"a.x": "1", "b.y": ""}).before == "\n7"
    before = Sysctls(live={"a.x": "1", "b.y": "7", "c.z": "9"}, persisted=(), unread=())
    assert after_live(before, action).live == {"a.x": "3", "b.y": "", "c.z": "9"}
