"""Looking for the culprits of a fleet that failed: which groups are run, for how long, and what is reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.simulated import SimulatedFleet
from remedy.spec import VerifySpec
from remedy.verify.allreduce.engines import ENGINES
from remedy.verify.allreduce.plan import RankPlan, part, plan_ranks
from remedy.verify.allreduce.run import GroupRun
from remedy.verify.hosts import Participant
from remedy.verify.isolate import search as module
from remedy.verify.isolate.model import Fault, Purpose, Test
from remedy.verify.isolate.planner import COMES_AND_GOES
from remedy.verify.isolate.search import BASE, MORE, MOST, PER_HOST, REST, STARTS, Search, patience
from remedy.verify.reach.plan import ReachHost, ReachPlan
from remedy.verify.reach.result import Reach
from remedy.verify.verdict import DeadLink, Verdict

HOSTS = tuple("abcdefgh")


def plan(hosts: Sequence[str] = HOSTS, **settings: Any) -> RankPlan:
    participants = [Participant(name=h, address=f"10.0.0.{n}") for n, h in enumerate(hosts, 1)]
    return plan_ranks(participants, VerifySpec(**{"sizes": (8, 64), **settings}))


class Play:
    """Plays the hosts of a search: groups fail that hold a fault, and links are dead that one closes.

    Args:
        faults: what is broken.
        knocks: whether a dead link refuses connections too, and not only the all-reduce.
        slow: seconds that a host needs to start, where it is not ready at once.
    """

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        *faults: Fault,
        knocks: bool = True,
        slow: Mapping[str, float] | None = None,
    ) -> None:
        self.fleet = SimulatedFleet(HOSTS, faults)
        self.knocks = knocks
        self.slow = slow or {}
        self.launched: list[RankPlan] = []
        self.tried: list[str] = []
        monkeypatch.setattr(module, "launch", self.launch)
        monkeypatch.setattr(module, "try_links", self.try_links)

    def run(self, scripts: Mapping[str, Any]) -> dict[str, Any]:
        raise AssertionError(f"the search itself runs nothing: {list(scripts)}")

    def fails(self, hosts: Sequence[str], purpose: Purpose) -> Any:
        return self.fleet.run(Test(tuple(hosts), purpose))

    def launch(self, plans: Sequence[RankPlan], run: object) -> list[GroupRun]:
        assert run == self.run
        self.launched += plans
        answers = []
        for group in plans:
            names = [host.name for host in group.hosts]
            late = frozenset(name for name in names if self.slow.get(name, 0.0) > group.deadline)
            passed = self.fails(names, "half").passed and not late
            reason = "" if passed else f"no sum from {len(names)} hosts"
            answers.append(GroupRun(Verdict(passed=passed, reason=reason), late=late))
        return answers

    def try_links(self, plans: Sequence[ReachPlan], run: object) -> list[Reach]:
        assert run == self.run
        return [self.links(planned) for planned in plans]

    def links(self, planned: ReachPlan) -> Reach:
        names = tuple(host.name for host in planned.hosts)
        self.tried += names
        links = self.fails(names, "links").unanswered if self.knocks else ()
        dead = tuple(
            DeadLink(source=s, target=t, port=29500, outcome="refused") for s, t in sorted(links)
        )
        return Reach(hosts=names, attempts=2, dead=dead, count=len(dead))

    def search(self, budget: float = 600.0) -> Search:
        hosts = {name: ReachHost(name=name, address="10.0.0.9", ports=(1, 2)) for name in HOSTS}
        return Search(self.run, plan(), hosts, budget)


def failed(**reported: Any) -> GroupRun:
    return GroupRun(Verdict(passed=False, reason="the whole fleet failed"), **reported)


def outcomes(verdict: Verdict) -> dict[str, str]:
    return {one.host: one.outcome for one in verdict.outcomes}


# --- how long a group may take ----------------------------------------------------------------------------


def test_a_larger_group_may_take_longer_up_to_a_limit() -> None:
    assert patience(["a", "b"], {}) == BASE + 2 * PER_HOST
    assert patience([f"h{n}" for n in range(100)], {}) == BASE + 100 * PER_HOST
    assert patience([f"h{n}" for n in range(2000)], {}) == MOST
    assert [patience([f"h{n}" for n in range(size)], {}) for size in (2, 100, 2000)] == [
        25.4,
        45,
        90,
    ]


def test_a_host_that_was_seen_to_start_slowly_is_given_the_time_it_needs() -> None:
    ready = {"a": 10.0, "b": 200.0, "c": 30.0}
    assert patience(["a", "b"], ready) == pytest.approx(STARTS * 200 + REST + 2 * PER_HOST)
    assert patience(["a"], {"a": 1.0}) == BASE + PER_HOST
    assert patience(["b"], ready) == pytest.approx(415.2)
    # One of which nothing is known is taken to be like most.
    assert patience(["x"], ready) == pytest.approx(STARTS * 30 + REST + PER_HOST)
    assert patience([f"h{n}" for n in range(2000)], {"x": 100.0}) == pytest.approx(
        STARTS * 100 + MOST
    )


def test_a_part_of_the_fleet_is_a_run_of_its_own() -> None:
    whole = plan(sizes=None)
    group = part(whole, ["c", "a"], 20.0)
    assert [host.name for host in group.hosts] == ["a", "c"]
    assert group.nonce != whole.nonce
    assert len(group.nonce) == 16
    assert group.deadline == 20.0 + ENGINES["torch"].patience
    assert part(whole, ["a", "b"], 1e6).deadline == whole.deadline
    assert (group.sizes, group.unjudged) == ((65_536,), "")


def test_slowness_is_looked_for_with_the_sizes_of_the_fleet() -> None:
    whole = plan(sizes=None)
    asked = whole.model_copy(update={"min_busbw": 5.0, "unjudged": "no links known"})
    assert part(asked, ["a", "b"], 20.0).sizes is None
    assert part(asked, ["a", "b"], 20.0).unjudged == ""
    assert part(plan(sizes=(8, 64)), ["a", "b"], 20.0).sizes == (8, 64)


# --- what is found ----------------------------------------------------------------------------------------


def test_a_broken_host_is_named_with_the_reason_of_its_smallest_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    play = Play(monkeypatch, Fault(("c",)))
    search = play.search()
    verdict = search.explain(failed())
    (culprit,) = verdict.culprits
    assert (culprit.name, culprit.hosts) == ("c", ("c",))
    assert culprit.reason.startswith("c ")
    assert culprit.reason.endswith("no sum from 2 hosts")
    assert verdict.reason == culprit.reason
    assert outcomes(verdict) == {h: "fail" if h == "c" else "pass" for h in HOSTS}
    assert {one.host: one.reason for one in verdict.outcomes}["c"] == culprit.reason
    rung = search.rung(verdict)
    assert (rung.name, rung.passed) == ("isolation", True)
    assert rung.message.startswith("c, by ")
    assert rung.message.endswith("rounds")
    assert (
        f"{len(verdict.tests)} tests in {max(t.round for t in verdict.tests)} rounds"
        in rung.message
    )


@pytest.mark.parametrize(
    ("fault", "what"),
    [(Fault(("c", "f"), "one-way"), "c -> f"), (Fault(("c", "f"), "both"), "c <-> f")],
)
def test_a_dead_link_is_told_apart_by_its_directions(
    monkeypatch: pytest.MonkeyPatch, fault: Fault, what: str
) -> None:
    play = Play(monkeypatch, fault)
    verdict = play.search().explain(failed())
    (culprit,) = verdict.culprits
    assert culprit.name == what
    assert "29500" in culprit.reason
    assert outcomes(verdict) == {h: "fail" if h in "cf" else "pass" for h in HOSTS}
    assert {"c", "f"} <= set(play.tried)
    # Where connections are dead already, the pair is not run as well.
    assert ["c", "f"] not in [[host.name for host in group.hosts] for group in play.launched]
    links = [test for test in verdict.tests if test.purpose == "links"]
    assert [set(test.hosts) for test in links if not test.passed] == [{"c", "f"}]


def test_a_pair_whose_connections_are_good_is_tried_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    play = Play(monkeypatch, Fault(("c", "f"), "both"), knocks=False)
    verdict = play.search().explain(failed())
    (culprit,) = verdict.culprits
    assert set(culprit.hosts) == {"c", "f"}
    assert culprit.reason.endswith("no sum from 2 hosts")
    assert ["c", "f"] in [[host.name for host in group.hosts] for group in play.launched]


def test_what_the_fleet_said_of_itself_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    silent, telling = Play(monkeypatch, Fault(("c",))), Play(monkeypatch, Fault(("c",)))
    Play(monkeypatch, Fault(("c",)))
    for play, missing in ((silent, frozenset[str]()), (telling, frozenset("c"))):
        monkeypatch.setattr(module, "launch", play.launch)
        monkeypatch.setattr(module, "try_links", play.try_links)
        assert [c.name for c in play.search().explain(failed(missing=missing)).culprits] == ["c"]
    assert len(telling.launched) < len(silent.launched)


def test_groups_get_the_time_that_their_hosts_were_seen_to_need(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    play = Play(monkeypatch, Fault(("c",)))
    play.search().explain(failed(ready=dict.fromkeys(HOSTS, 30.0)))
    patient = ENGINES["torch"].patience
    assert len(play.launched) > 1
    for group in play.launched:
        names = [host.name for host in group.hosts]
        seconds = patience(names, dict.fromkeys(HOSTS, 30.0))
        assert group.deadline == min(seconds + patient, plan().deadline)


def test_every_test_is_kept_with_its_round(monkeypatch: pytest.MonkeyPatch) -> None:
    play = Play(monkeypatch, Fault(("c",)), Fault(("e", "h"), "both"))
    search = play.search()
    verdict = search.explain(failed())
    assert sorted(c.name for c in verdict.culprits) == ["c", "e <-> h"]
    rounds = [test.round for test in verdict.tests]
    assert rounds == sorted(rounds)
    assert (min(rounds), max(rounds)) == (1, search.isolations[0].rounds - 1)
    assert all(test.seconds >= 0 for test in verdict.tests)
    assert verdict.tests == tuple(search.tests)
    seconds = {test.round: test.seconds for test in verdict.tests}
    assert search.rung(verdict).seconds == round(sum(seconds.values()), 3)


# --- hosts that only start slowly --------------------------------------------------------------------------


@pytest.mark.parametrize("seen", [frozenset[str](), frozenset("b")])
def test_a_slow_host_beside_a_broken_one_is_not_accused(
    monkeypatch: pytest.MonkeyPatch, seen: frozenset[str]
) -> None:
    """Whether or not it was already late in the run of the fleet."""
    play = Play(monkeypatch, Fault(("d",)), slow={"b": 40.0})
    search = play.search()
    verdict = search.explain(failed(missing=frozenset("d"), late=seen))
    assert [culprit.name for culprit in verdict.culprits] == ["d"]
    assert outcomes(verdict) == {h: "fail" if h == "d" else "pass" for h in HOSTS}
    assert "; b started slowly and got more time" in search.rung(verdict).message
    with_b = [group.deadline for group in play.launched if "b" in {h.name for h in group.hosts}]
    assert max(with_b) > 40.0
    # One second chance a host: afterwards it has the time at once.
    assert len([deadline for deadline in with_b if deadline < 40.0]) == (0 if seen else 1)


def test_a_second_chance_may_be_longer_than_the_fleet_had(monkeypatch: pytest.MonkeyPatch) -> None:
    play = Play(monkeypatch, Fault(("d",)), slow={"b": 35.0})
    search = play.search()
    search.plan = plan(deadline=20.0)
    verdict = search.explain(failed(missing=frozenset("d")))
    assert [culprit.name for culprit in verdict.culprits] == ["d"]
    assert {group.deadline for group in play.launched} == {20.0, MORE * 20.0}


def test_a_host_that_does_not_start_in_more_time_either_is_accused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    play = Play(monkeypatch, slow={"b": 1e6})
    search = play.search()
    verdict = search.explain(failed(late=frozenset("b")))
    assert [culprit.name for culprit in verdict.culprits] == ["b"]
    assert "slowly" not in search.rung(verdict).message


def test_many_culprits_are_folded_in_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    play = Play(monkeypatch, *(Fault((host,)) for host in "bdfh"))
    verdict = play.search().explain(failed())
    assert len(verdict.culprits) == 4
    assert verdict.reason.startswith("b,d,f,h: work with none of the hosts they were tested with: ")


def test_without_time_nobody_is_accused_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    play = Play(monkeypatch, Fault(("c",)))
    search = play.search(budget=0.0)
    verdict = search.explain(failed())
    assert (verdict.culprits, verdict.outcomes, verdict.reason) == (
        (),
        (),
        "the whole fleet failed",
    )
    assert play.launched == []
    rung = search.rung(verdict)
    assert rung.passed is False
    assert "0 s" in rung.message
    assert "no culprit found" in rung.message


def test_where_nothing_works_no_host_is_called_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    play = Play(monkeypatch, *(Fault((host,)) for host in HOSTS))
    search = play.search()
    verdict = search.explain(failed())
    assert outcomes(verdict) == dict.fromkeys(HOSTS, "fail")
    assert search.isolations[0].unexplained == ""


def test_a_fleet_that_fails_only_as_a_whole_is_not_explained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    play = Play(monkeypatch)
    search = play.search()
    verdict = search.explain(failed())
    assert search.isolations[0].unexplained == COMES_AND_GOES
    assert (verdict.culprits, verdict.reason) == ((), "the whole fleet failed")
    rung = search.rung(verdict)
    assert rung.passed is False
    assert rung.message.endswith(f"; {COMES_AND_GOES}")
    assert play.launched


@pytest.mark.parametrize("budget", [0.0, 600.0])
def test_what_the_tests_contradict_is_said_also_where_no_time_is_left(
    monkeypatch: pytest.MonkeyPatch, budget: float
) -> None:
    play = Play(monkeypatch, Fault(("c",)))
    search = play.search(budget)
    search.isolations[0].unexplained = "groups fail now and work then"
    verdict = search.explain(failed())
    assert play.launched == []
    rung = search.rung(verdict)
    assert rung.passed is False
    assert rung.message.endswith("; groups fail now and work then")


def test_culprits_that_are_known_when_the_time_is_over_are_said_to_be_perhaps_not_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A clock that goes on by a second whenever somebody looks, and more and more time."""
    ends = set()
    for budget in range(1, 40):
        play = Play(monkeypatch, Fault(("b",)), Fault(("c", "f"), "both"))
        seconds = map(float, range(1000))
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=seconds.__next__))
        search = play.search(float(budget))
        verdict = search.explain(failed())
        rung = search.rung(verdict)
        known = [culprit.name for culprit in verdict.culprits]
        ends.add((len(known), rung.passed))
        assert (f"; the time for it, {budget} s" in rung.message) is not rung.passed
        assert (", ".join(known) or "no culprit found") in rung.message
        assert (verdict.outcomes == ()) is (known == [])
        assert rung.seconds == pytest.approx(search.isolations[0].rounds - 1)
    assert {(0, False), (1, False), (2, True)} <= ends
    assert not {(0, True), (1, True)} & ends


@pytest.mark.parametrize("name", ["launch", "try_links"])
def test_a_test_without_a_result_is_an_error_and_not_a_host_that_works(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    play = Play(monkeypatch, Fault(("c", "f"), "both"))
    answers = getattr(play, name)
    monkeypatch.setattr(module, name, lambda plans, run: answers(plans, run)[1:])
    with pytest.raises(ValueError, match="shorter"):
        play.search().explain(failed())
