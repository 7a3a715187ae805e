"""The watch over hosts: a stage ends at its deadline, by the seconds in which an answer could be seen."""

from __future__ import annotations

import gevent
import pytest

from remedy.spec import SshSpec
from remedy.transport.stages import Stage, Stuck
from remedy.transport.watch import LONGEST_TICK, QUIET, SLOW, AwakeClock, Overdue, Watch, Watchman

SPEC = SshSpec(login=20, silence=30)


class Hand:
    """A clock's hand that a test moves."""

    def __init__(self) -> None:
        self.at = 100.0
        self.clock = AwakeClock(lambda: self.at)

    def move(self, seconds: float) -> None:
        """Let time pass, in ticks."""
        for _ in range(int(seconds * 2)):
            self.at += 0.5
            self.clock.tick()


class Way(Watch):
    """A watch that keeps what it would raise."""

    raised: Stuck | None = None
    slow = 0

    def fail(self, reason: BaseException) -> None:
        assert isinstance(reason, Overdue)
        self.stage = None
        self.raised = reason.stuck

    def seen(self) -> Stuck | None:
        """Look once, and return what is raised."""

        def on_slow(_: Watch) -> None:
            self.slow += 1

        self.look(on_slow)
        return self.raised


@pytest.fixture
def hand() -> Hand:
    return Hand()


def test_a_stage_ends_at_its_deadline_and_not_before(hand: Hand) -> None:
    way = Way("gpu01", SPEC, hand.clock)
    way.via = "a jump host"
    way.enter(Stage.LOGIN)
    hand.move(20)
    assert way.seen() is None
    hand.move(1)
    assert way.seen() == Stuck(Stage.LOGIN, 20, via="a jump host")


def test_each_stage_has_its_own_time(hand: Hand) -> None:
    way = Way("gpu01", SPEC, hand.clock)
    for _ in range(3):
        way.enter(Stage.LOGIN)
        hand.move(15)
        assert way.seen() is None


def test_time_in_which_this_process_was_stopped_is_nobodys_delay(hand: Hand) -> None:
    way = Way("gpu01", SPEC, hand.clock)
    way.enter(Stage.LOGIN)
    hand.at += 3600
    hand.clock.tick()
    assert hand.clock.seconds == LONGEST_TICK
    assert way.seen() is None


def test_a_slow_host_is_told_once_and_gives_its_place_to_others(hand: Hand) -> None:
    from gevent.lock import BoundedSemaphore

    slots = BoundedSemaphore(1)
    way = Way("gpu01", SPEC, hand.clock)
    way.take_slot(slots)
    way.enter(Stage.LOGIN)
    assert slots.locked()
    hand.move(SLOW + 1)
    assert (way.seen(), way.seen(), way.slow) == (None, None, 1)
    assert not slots.locked()
    way.give_slot()  # again, at its end: no place too many
    assert slots.counter == 1


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Record the questions for a sign of life, and leave them unanswered."""
    questions: list[object] = []
    monkeypatch.setattr(
        "remedy.transport.watch.gevent.spawn", lambda job, *_: questions.append(job)
    )
    return questions


def test_a_host_that_prints_is_not_asked_for_a_sign_of_life(
    hand: Hand, asked: list[object]
) -> None:
    way = Way("gpu01", SPEC, hand.clock)
    way.alive = lambda: None
    way.enter(Stage.OUTPUT, 1000)
    for _ in range(30):
        hand.move(QUIET - 1)
        way.heard()
        assert way.seen() is None
    assert asked == []


def test_a_host_without_a_sign_of_life_is_lost_before_its_script_is_overdue(
    hand: Hand, asked: list[object]
) -> None:
    way = Way("gpu01", SPEC, hand.clock)
    way.alive = lambda: None
    way.enter(Stage.OUTPUT, 1000)
    hand.move(QUIET + 1)
    assert way.seen() is None
    assert len(asked) == 1
    hand.move(SPEC.silence)
    assert way.seen() is None
    assert len(asked) == 1
    hand.move(1)
    stuck = way.seen()
    assert stuck is not None
    assert stuck.silent
    assert stuck.seconds >= QUIET + SPEC.silence


def test_a_sign_of_life_is_enough_for_a_long_script(hand: Hand, asked: list[object]) -> None:
    way = Way("gpu01", SPEC, hand.clock)
    way.alive = lambda: None
    way.enter(Stage.OUTPUT, 10_000)
    for number in range(1, 20):
        hand.move(QUIET + 1)
        assert way.seen() is None
        assert len(asked) == number
        way.heard()


def test_the_watch_raises_where_the_host_is_waited_for_and_nowhere_else() -> None:
    """Real greenlets: two are stuck, one of them in the stage without a deadline here, one goes its way."""
    watchman = Watchman(SshSpec(login=1), lambda _: None)
    ends: dict[str, str] = {}

    def go(host: str, stage: Stage, seconds: float) -> None:
        try:
            with watchman.over(host) as watch:
                watch.enter(stage)
                gevent.sleep(seconds)
                ends[host] = "answered"
        except Overdue as overdue:
            ends[host] = overdue.stuck.stage.value

    jobs = [
        gevent.spawn(go, "gpu01", Stage.LOGIN, 600),
        gevent.spawn(go, "gpu02", Stage.CHANNEL, 2.5),
        gevent.spawn(go, "gpu03", Stage.LOGIN, 0.1),
    ]
    gevent.joinall(jobs, raise_error=True)
    assert ends == {"gpu01": "login", "gpu02": "answered", "gpu03": "answered"}
