"""What ranks ask of the store is what a store of every torch can answer."""

from __future__ import annotations

import json
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from remedy.verify.worker import rank as worker
from remedy.verify.worker.meet import agree
from remedy.verify.worker.rank import Rank, is_raised, raise_flag

torch = pytest.importorskip("torch")


class OldStore:
    """A store of torch, with no more than it had before 2.3: it cannot be asked for a key (``check``)."""

    def __init__(self) -> None:
        store = torch.distributed.HashStore()
        self.set, self.get, self.add = store.set, store.get, store.add
        self._wait = store.wait

    def wait(self, keys: list[str], timeout: timedelta) -> None:
        self._wait(keys, timeout)


def a_rank(tmp_path: Path, store: Any, world: int = 3) -> Rank:
    one = Rank.__new__(Rank)
    one.rank = one.local_rank = 0
    one.world, one.local_world = world, 1
    one.directory = tmp_path
    one.store, one.line = store, None
    one.config = {
        "backend": "gloo",
        "join_seconds": 1.0,
        "began": time.monotonic(),
        "deadline": 60.0,
    }
    return one


def test_a_flag_is_there_once_it_was_raised_and_asking_raises_none() -> None:
    store = OldStore()
    assert not is_raised(store, "failed")
    assert not is_raised(store, "failed")
    raise_flag(store, "failed")
    raise_flag(store, "failed")
    assert is_raised(store, "failed")
    assert not is_raised(store, "still/0")


def test_who_did_not_come_is_named(tmp_path: Path) -> None:
    store = OldStore()
    store.set("here/1", '{"usable": false, "why": ""}')
    raise_flag(store, "came/1")
    assert agree(a_rank(tmp_path, store), store, False, "")["missing"] == [2]


def test_who_does_not_answer_the_roll_call_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "ROLL_CALL", 0.5)
    store = OldStore()
    one = a_rank(tmp_path, store)
    one.answer()
    raise_flag(store, "still/2")
    one.roll_call()
    assert json.loads((tmp_path / "missing.0.json").read_text()) == {"ranks": [1]}
