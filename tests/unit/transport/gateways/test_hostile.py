"""Gateways that mean harm: none runs anything here, speaks for others' hosts, or holds another up."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import ClusterShell
import pytest

from tests.unit.transport.gateways import fake_ssh
from tests.unit.transport.gateways.fake_ssh import HOSTILE
from tests.unit.transport.gateways.relay_bench import Heard, Relay, request

SILENT = "silent"
NOT_ASKED = "hosts that were not asked for"
# By what a gateway does: what is said of it. Its host is lost either way, and nothing of it is believed.
AFTER = {
    "code": "more than plain values",
    "code-as-error": "more than plain values",
    "code-for-all": "nothing that was asked",
    "code-as-command": "CTL",
    "code-as-topology": "CFG",
    "text": "str, no bytes",
    "no-payload": "the pickle is broken",
    "stranger": NOT_ASKED,
    "end-of-stranger": NOT_ASKED,
    "range": NOT_ASKED,
    "groups": NOT_ASKED,
    "other-request": "nothing that was asked",
    "no-number": "invalid literal",
    "unknown": "Unknown message type XYZ",
    "long-line": "a line of more than 1 MiB",
    "long-message": "a message of more than 24 MiB",
    "many-messages": "more messages than its hosts can have",
    "quits": "its ClusterShell ended (0)",
    "dies": "its ClusterShell ended (1): out of memory",
}
BEFORE = {
    "chatters": "Welcome to the cluster",
    "doctype": "a document type",
    "early": "before it was asked",
    "old": f"it has ClusterShell 1.9.1, and here is {ClusterShell.__version__}",
    "gives-up": "it gave up: no room [31mhere",
    SILENT: "it was not ready within 2 s",
}
KINDS = [*AFTER, *BEFORE, "twice"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture(scope="module")
def heard(folder: Path) -> Heard:
    """What comes of a fleet with one host behind each, and one behind a gateway that is well."""
    words = f"{folder} {ClusterShell.__version__}"
    for kind in KINDS:
        fake_ssh.put(folder, kind, f"exec {sys.executable} {HOSTILE} {kind} {words}")
    text = "echo it is $HERE\nsleep 3\nexit 3\n"

    def relay(kinds: Iterable[str], setup: float) -> Relay:
        routes = {kind: f"h-{kind}" for kind in kinds}
        return Relay(folder, routes, routes, [request(1, routes.values(), text)], setup)

    # The one that is given up for its silence has no others beside it, which need time on a busy machine.
    alone = relay([SILENT], setup=2)
    heard = relay([kind for kind in (*KINDS, "good") if kind != SILENT], setup=120).hear()
    heard.events += alone.hear().events
    return heard


@pytest.mark.parametrize("kind", AFTER)
def test_a_gateway_that_was_ready_is_given_up_and_its_host_told_as_lost(
    heard: Heard, kind: str
) -> None:
    assert AFTER[kind] in heard.faults[kind], heard.faults[kind]
    assert heard.lost[f"h-{kind}"] == kind
    assert not heard.codes(f"h-{kind}")


@pytest.mark.parametrize("kind", BEFORE)
def test_a_gateway_that_was_not_ready_is_given_up_before_it_is_asked(
    heard: Heard, kind: str
) -> None:
    assert BEFORE[kind] in heard.faults[kind], heard.faults[kind]
    assert heard.lost[f"h-{kind}"] == ""


def test_nothing_ran_here(heard: Heard, folder: Path) -> None:
    assert heard.faults
    assert not (folder / "called").exists()


def test_only_what_a_host_said_itself_counts_for_it(heard: Heard) -> None:
    assert heard.output("h-good") == b"it is h-good\n"
    assert heard.codes("h-good") == [3]
    assert "good" not in heard.faults


def test_an_end_that_comes_twice_counts_once(heard: Heard) -> None:
    assert heard.codes("h-twice") == [9]
