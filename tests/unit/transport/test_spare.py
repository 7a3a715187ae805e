"""Work that is done while hosts are waited for."""

from __future__ import annotations

import gevent
import pytest

from remedy.transport.spare import SpareTime


def test_it_is_done_in_its_order_while_the_block_waits() -> None:
    spare, done = SpareTime(), list[int]()
    spare.add(lambda at=at: done.append(at) for at in range(3))  # type: ignore[misc]
    with spare.used():
        while len(done) < 3:
            gevent.sleep(0.01)
    assert done == [0, 1, 2]


def test_what_comes_from_hosts_is_taken_between_two_pieces() -> None:
    spare, seen = SpareTime(), list[str]()

    def piece() -> None:
        seen.append("piece")
        gevent.spawn(seen.append, "answer")

    spare.add([piece, piece])
    with spare.used():
        while len(seen) < 4:
            gevent.sleep(0.01)
    assert seen == ["piece", "answer"] * 2


def test_nobody_waits_for_what_is_left_and_it_is_dropped() -> None:
    spare, done = SpareTime(), list[int]()
    spare.add([lambda: done.append(1)])
    with spare.used():
        pass
    with spare.used():
        gevent.sleep(0.01)
    assert done == []


def test_what_a_piece_raises_is_left_to_whoever_needs_it(capfd: pytest.CaptureFixture[str]) -> None:
    spare, done = SpareTime(), list[int]()

    def broken() -> None:
        raise ImportError("no such module")

    spare.add([broken, lambda: done.append(1)])
    with spare.used():
        while not done:
            gevent.sleep(0.01)
    assert capfd.readouterr() == ("", "")
