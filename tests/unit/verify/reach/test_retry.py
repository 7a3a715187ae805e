"""Links that fail while all hosts call each other are tried again before they are called dead."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

import pytest

from remedy.errors import RemedyError, UnreachableError
from remedy.transport import Output, Script
from remedy.verify.onhost.knock import MARK
from remedy.verify.reach.plan import ANSWER, ReachPlan
from remedy.verify.reach.result import Reach
from remedy.verify.reach.retry import FLIGHT, MOST_PATIENCE, NEAR, SAMPLE, SKEW
from remedy.verify.reach.run import try_links
from tests.unit.verify.reach.reach_bench import PORTS, UNCUT, make_plan

# How a call ends, by the number of the run (1: all hosts call), source, target and port; "": it is answered.
Ending = Callable[[int, int, int, int], str]


class PaperFleet:
    """A transport under which calls end as a test says.

    Args:
        ending: of each call.
        silent: hosts that report nothing in a run, by its number, with the error.
        slowest: seconds of the slowest good call in the pass of all.
        busy: ports that something else holds, with their host.
        garbled: a report that is no answer to what was asked, in every run but the first.
    """

    def __init__(
        self,
        ending: Ending,
        silent: Mapping[tuple[int, int], RemedyError] | None = None,
        slowest: float = 0.1,
        *,
        busy: Collection[tuple[int, int]] = (),
        garbled: bool = False,
    ) -> None:
        self.ending = ending
        self.silent = silent or {}
        self.slowest = slowest
        self.busy = busy
        self.garbled = garbled
        self.runs: list[dict[int, dict[str, Any]]] = []

    def run(self, scripts: Mapping[str, Script]) -> dict[str, Output]:
        configs = {name: _config(script.text) for name, script in scripts.items()}
        self.runs.append({config["me"]: config for config in configs.values()})
        return {name: self._output(name, config) for name, config in configs.items()}

    def _output(self, name: str, config: dict[str, Any]) -> Output:
        number, me = len(self.runs), config["me"]
        if error := self.silent.get((number, me)):
            return Output(name, error=error)
        ends = {
            (target, port): self.ending(number, me, target, port)
            for target, _, ports in config["calls"]
            for port in ports
        }
        good = [call for call, ending in ends.items() if not ending]
        report = {
            "good": len(good) + (self.garbled and number > 1),
            "bad": [[*call, ending, "5.0 s"] for call, ending in ends.items() if ending],
            "times": [[*call, 0.25] for call in good] if config["timed"] else [],
            "slowest": self.slowest,
            "listening": [port for port in config["ports"] if (me, port) not in self.busy],
            "busy": [[port, "EADDRINUSE"] for port in config["ports"] if (me, port) in self.busy],
            "ended": "answered",
            "mtu": UNCUT,
            "seconds": 1.0,
        }
        return Output(name, stdout=f"{MARK} {config['nonce']} {json.dumps(report)}\n")

    def calls(self, number: int) -> set[tuple[int, int, int]]:
        """What was called in a run."""
        return {
            (me, target, port)
            for me, config in self.runs[number - 1].items()
            for target, _, ports in config["calls"]
            for port in ports
        }


def _config(text: str) -> dict[str, Any]:
    match = re.search(r"(?m)^config = json\.loads\((.*)\)$", text)
    assert match
    config: dict[str, Any] = json.loads(ast.literal_eval(match[1]))
    return config


def tried(fleet: PaperFleet, plan: ReachPlan) -> Reach:
    (reach,) = try_links([plan], fleet.run)
    return reach


def test_a_good_fleet_costs_one_round_trip() -> None:
    fleet = PaperFleet(lambda *_: "")
    reach = tried(fleet, make_plan(6))
    assert reach.passed
    assert (len(fleet.runs), reach.late, reach.slow) == (1, (), "")


def test_late_links_cost_a_second_round_trip_and_are_slow_not_dead() -> None:
    late = {(1, 4), (3, 0)}
    fleet = PaperFleet(lambda number, s, t, _: "mute" if number == 1 and (s, t) in late else "")
    reach = tried(fleet, make_plan(6))
    assert reach.passed
    assert reach.dead_ends == ()
    assert len(fleet.runs) == 2
    assert fleet.calls(2) == {(*pair, port) for pair in late for port in PORTS}
    assert set(fleet.runs[1]) == {0, 1, 3, 4}, "nobody else takes part"
    assert {(link.source, link.target) for link in reach.late} == {
        ("gpu1", "gpu4"),
        ("gpu3", "gpu0"),
    }
    words = "gpu1 -> gpu4 (no answer: 5.0 s; then 0.25 s)"
    assert "2 links are slow, not dead" in reach.rung.message
    assert words in reach.rung.message
    assert reach.rung.passed


def test_a_dead_link_is_named_as_before_after_one_more_round_trip() -> None:
    fleet = PaperFleet(lambda _, s, t, __: "dropped" if (s, t) == (1, 4) else "")
    reach = tried(fleet, make_plan(6))
    assert [end.message(5) for end in reach.dead_ends] == [
        "gpu1 -> gpu4 on ports 29500, 33000, 55000: no answer (dropped on the way)"
    ]
    assert [culprit.name for culprit in reach.culprits] == ["gpu1 -> gpu4"]
    assert reach.dead[0].detail == "5.0 s, tried again"
    assert (len(fleet.runs), reach.late) == (2, ())


def test_a_host_that_nobody_reaches_is_confirmed_by_some() -> None:
    fleet = PaperFleet(lambda _, __, t, ___: "dropped" if t == 7 else "")
    reach = tried(fleet, make_plan(40))
    assert [end.message(39) for end in reach.dead_ends] == [
        "gpu7: no answer on ports 29500, 33000, 55000 from any of the other 39 hosts (dropped on the way)"
    ]
    assert len(fleet.runs) == 2
    assert len(fleet.runs[1]) == SAMPLE + 1
    assert len(fleet.calls(2)) == SAMPLE * len(PORTS)


def test_a_host_that_is_late_for_most_is_tried_with_all_of_them() -> None:
    def ending(number: int, source: int, target: int, _: int) -> str:
        return "stalled" if number == 1 and 7 in (source, target) else ""

    fleet = PaperFleet(ending)
    reach = tried(fleet, make_plan(20))
    assert reach.passed
    assert len(fleet.runs) == 3
    whole = {
        (s, t, p) for s in range(20) for t in range(20) if 7 in (s, t) and s != t for p in PORTS
    }
    assert fleet.calls(2) | fleet.calls(3) == whole
    assert not fleet.calls(2) & fleet.calls(3)
    assert len(reach.late) == 2 * 19
    assert "gpu7 is an end of 38 of them" in reach.slow


def test_late_and_dead_are_told_apart() -> None:
    def ending(number: int, source: int, target: int, port: int) -> str:
        if target == 3 or (source, target, port) == (5, 6, PORTS[1]):
            return "dropped"
        return "mute" if number == 1 and (target == 9 or (source, target) == (5, 6)) else ""

    fleet = PaperFleet(ending)
    reach = tried(fleet, make_plan(12))
    assert {end.name for end in reach.dead_ends} == {"gpu3", "gpu5 -> gpu6"}
    assert {link.target for link in reach.late} == {"gpu9"}
    assert {(d.target, d.port) for d in reach.dead if d.source == "gpu5"} == {
        *(("gpu3", port) for port in PORTS),
        ("gpu6", PORTS[1]),
    }
    assert len(fleet.runs) == 3


@pytest.mark.parametrize("ending", ["rejected", "foreign"])
def test_what_is_certain_is_not_tried_again(ending: str) -> None:
    fleet = PaperFleet(lambda _, s, t, __: ending if (s, t) == (1, 2) else "")
    reach = tried(fleet, make_plan(4))
    assert [[e.outcome for e in end.endings] for end in reach.dead_ends] == [[ending]]
    assert len(fleet.runs) == 1


def test_a_host_whose_script_came_too_late_is_tried_with_all() -> None:
    silent = {(1, 2): RemedyError("gpu2: the script printed nothing, or ran out of time")}
    fleet = PaperFleet(lambda number, _, t, __: "refused" if number == 1 and t == 2 else "", silent)
    reach = tried(fleet, make_plan(8))
    assert reach.passed, reach.dead
    assert (len(fleet.runs), reach.failures) == (3, {})


def test_a_host_without_a_connection_is_not_tried_again() -> None:
    silent = {(1, 2): UnreachableError("gpu2: no connection")}
    fleet = PaperFleet(lambda _, __, t, ___: "refused" if t == 2 else "", silent)
    reach = tried(fleet, make_plan(8))
    assert [end.name for end in reach.dead_ends] == ["gpu2"]
    assert len(fleet.runs) == 1


def test_a_second_try_that_shows_nothing_leaves_what_was_seen_first() -> None:
    fleet = PaperFleet(lambda _, s, t, __: "mute" if (s, t) == (1, 2) else "", garbled=True)
    reach = tried(fleet, make_plan(4))
    assert [(end.name, *(e.outcome for e in end.endings)) for end in reach.dead_ends] == [
        ("gpu1 -> gpu2", "mute")
    ]
    assert reach.dead[0].detail == "5.0 s"


def test_a_port_that_something_on_the_host_holds_is_tried_by_another() -> None:
    busy = {(2, PORTS[0])}
    fleet = PaperFleet(lambda _, __, t, p: "refused" if (t, p) in busy else "", busy=busy)
    reach = tried(fleet, make_plan(6))
    assert reach.passed, reach.dead
    assert reach.late == (), "it is not slow"
    (port,) = {port for *_, port in fleet.calls(2)}
    assert 0 < abs(port - PORTS[0]) <= NEAR
    assert port not in PORTS
    assert (fleet.runs[1][2]["ports"], fleet.runs[1][2]["visits"]) == ([port], {str(port): SAMPLE})


def test_a_firewall_is_seen_over_another_port_and_the_launchers_has_none() -> None:
    busy = {(2, PORTS[0]), (3, PORTS[-1])}
    fleet = PaperFleet(lambda _, __, t, ___: "refused" if t in (2, 3) else "", busy=busy)
    reach = tried(fleet, make_plan(6))
    assert {end.host for end in reach.dead_ends} == {"gpu2", "gpu3"}
    assert (2, PORTS[0]) not in {call[1:] for call in fleet.calls(2)}
    assert (3, PORTS[-1]) in {call[1:] for call in fleet.calls(2)}


def test_a_busy_fleet_gets_more_time_and_not_without_end() -> None:
    def seconds(slowest: float) -> float:
        fleet = PaperFleet(
            lambda _, s, t, __: "dropped" if (s, t) == (0, 1) else "", slowest=slowest
        )
        tried(fleet, make_plan(4))
        second = fleet.runs[1][0]
        assert second["flight"] == FLIGHT
        return float(second["seconds"])

    assert seconds(0.1) == SKEW + ANSWER
    assert seconds(4.9) == (SKEW + ANSWER) * MOST_PATIENCE


def test_very_many_links_that_are_late_are_all_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than are kept one by one: hosts are found by counting then."""
    monkeypatch.setattr("remedy.verify.reach.answers.MOST_DEAD", 30)
    fleet = PaperFleet(lambda number, s, _, __: "mute" if number == 1 and s in (2, 3) else "")
    reach = tried(fleet, make_plan(20))
    assert reach.passed
    assert reach.count == 0
    assert len(reach.late) == 2 * 19
