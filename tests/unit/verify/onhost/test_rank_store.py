"""What ranks ask of the store is what a store of every torch can answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from remedy.verify.onhost.engines.torch_rank import rank as worker
from remedy.verify.onhost.engines.torch_rank.meet import agree
from remedy.verify.onhost.engines.torch_rank.rank import is_raised, raise_flag
from tests.unit.build import first_rank

torch = pytest.importorskip("torch")


class OldStore:
    """A store of torch, with no more than it had before 2.3: it cannot be asked for a key (``check``)."""

    def __init__(self) -> None:
        store = torch.distributed.HashStore()
        self.set, self.get, self.add, self.wait = store.set, store.get, store.add, store.wait


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
    assert agree(first_rank(tmp_path, store), store, False, "")["missing"] == [2]


def test_who_does_not_answer_the_roll_call_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "ROLL_CALL", 0.5)
    store = OldStore()
    one = first_rank(tmp_path, store)
    one.answer()
    raise_flag(store, "still/2")
    one.roll_call()
    assert json.loads((tmp_path / "missing.0.json").read_text()) == {"ranks": [1]}
