"""Dumps of a flight recorder: read without calling anything, and the rank that is missing is named."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.diagnose.logs import diagnose_paths
from remedy.diagnose.states.recorder import collectives
from remedy.errors import UsageError

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(), inner, max_size=4)
        | st.tuples(inner, inner)
    ),
    max_leaves=20,
)


class _Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("called",)


def _dump(number: int, operation: str, state: str, ranks: int = 4) -> dict[str, Any]:
    """What gloo's recorder of torch 2.13 holds, as far as it is read."""
    done = {"collective_seq_id": 1, "profiling_name": "gloo:all_reduce", "state": "completed"}
    last = {"collective_seq_id": number, "profiling_name": f"gloo:{operation}", "state": state}
    common = {"process_group": ("0", "default_pg"), "is_p2p": False}
    return {
        "version": "2.10",
        "pg_config": {"": {"name": "", "desc": "", "ranks": str(list(range(ranks)))}},
        "pg_status": {"0": {"last_enqueued_collective": number}},
        "entries": [{**done, **common}, {**last, **common}, {"is_p2p": True}],
    }


def _entry_of(**values: Any) -> dict[str, Any]:
    return {**_dump(6, "all_reduce", "started")["entries"][1], **values}


WAITS, DONE = (6, "all_reduce", "scheduled"), (5, "all_reduce", "completed")


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("bad", [0, 2, 3])
@pytest.mark.parametrize(
    ("odd", "said"),
    [
        (None, "rank {bad} did not say so"),
        (DONE, "rank {bad} stands at collective 5 all_reduce"),
        ((6, "broadcast", "scheduled"), "rank {bad} stands at collective 6 broadcast"),
    ],
)
def test_the_rank_that_holds_the_others_up_is_named(
    tmp_path: Path, odd: tuple[int, str, str] | None, bad: int, said: str, as_json: bool
) -> None:
    for rank in range(4):
        last = odd if rank == bad else WAITS
        if last is None:
            continue
        dump = _dump(*last)
        data = json.dumps(dump).encode() if as_json else pickle.dumps(dump, 2)
        (tmp_path / f"nccl_trace_rank_{rank}").write_bytes(data)
    found = diagnose_paths([tmp_path])
    differs = odd is not None and odd[0] == WAITS[0] and odd[1] != WAITS[1]
    assert found.label == ("application-error" if differs else "peer-died-timeout")
    assert any(said.format(bad=bad) in note for note in found.notes), found.notes


def test_a_dump_of_a_job_that_goes_on_is_no_failure(tmp_path: Path) -> None:
    for rank in range(4):
        (tmp_path / f"trace_rank_{rank}").write_bytes(pickle.dumps(_dump(*DONE), 2))
    assert diagnose_paths([tmp_path]).label == "unknown"


def test_a_dump_that_is_none_is_said(tmp_path: Path) -> None:
    (tmp_path / "trace_rank_0").write_bytes(pickle.dumps(_Evil(), 2))
    found = diagnose_paths([tmp_path])
    assert found.label == "unknown"
    assert any("more than plain values" in note for note in found.notes)


@pytest.mark.parametrize("before", ["", "\n  ", "\ufeff"])
def test_a_long_dump_whose_groups_come_last_is_one(tmp_path: Path, before: str) -> None:
    """torch sorts the keys of its JSON."""
    for rank in range(4):
        last = DONE if rank == 2 else WAITS
        dump = _dump(*last)
        done = {**dump["entries"][0], "frames": [{"name": "x" * 400}]}
        dump["entries"] = [done] * 400 + dump["entries"]
        text = json.dumps(dump, sort_keys=True)
        assert text.index("pg_config") > 1 << 17
        (tmp_path / f"fr_rank_{rank}.json").write_text(before + text)
    notes = diagnose_paths([tmp_path]).notes
    assert any("rank 2 stands at collective 5" in note for note in notes), notes


def _doubled(times: int) -> Any:
    value: Any = []
    for _ in range(times):
        value = [value, value]
    return value


def _pickle_of_deep_key(times: int) -> bytes:
    """A pickle whose key takes years to hash: tuples within tuples, each twice in the next."""
    return b"\x80\x02}(" + b")" + b"q\x00h\x00\x86" * times + b"K\x01u."


BOMBS = {
    "sizes": pickle.dumps({"entries": [_entry_of(input_sizes=_doubled(60))]}, 2),
    "name": pickle.dumps({"entries": [_entry_of(profiling_name=_doubled(60))]}, 2),
    "group": pickle.dumps({"entries": [_entry_of(process_group=_doubled(60))]}, 2),
    "number": pickle.dumps({"entries": [_entry_of(collective_seq_id=10**9000)]}, 2),
    "pg_id": pickle.dumps({"entries": [_entry_of(pg_id=10**9000)]}, 2),
    "key": _pickle_of_deep_key(60),
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_a_dump_that_is_a_bomb_is_read_at_once_and_loses_no_other(
    tmp_path: Path, bomb: bytes
) -> None:
    (tmp_path / "trace_rank_0").write_bytes(bomb)
    warning = "gpu2:812:850 [0] NCCL WARN Connect to 10.0.0.2<45321> failed : No route to host\n"
    (tmp_path / "rank_1.log").write_text(warning)
    assert diagnose_paths([tmp_path]).label == "firewall-ports"


def test_the_rank_of_a_dump_that_breaks_off_is_not_the_one_to_blame(tmp_path: Path) -> None:
    for rank in range(4):
        dump = pickle.dumps(_dump(*(DONE if rank == 2 else WAITS)), 2)
        (tmp_path / f"trace_rank_{rank}").write_bytes(dump[:-20] if rank == 1 else dump)
    notes = diagnose_paths([tmp_path]).notes
    assert any("rank 2 stands at collective 5" in note for note in notes), notes
    assert not any("rank 1 did not say so" in note for note in notes), notes


@given(PLAIN)
def test_dumps_of_any_shape_are_read_or_refused(value: Any) -> None:
    for entries in (value, [value], [{"process_group": value, "collective_seq_id": value}]):
        try:
            collectives(pickle.dumps({"entries": entries, "pg_config": {"0": value}}, 2))
        except UsageError:
            continue


def _entry(number: int, operation: str, state: str, **more: object) -> dict[str, Any]:
    name = f"nccl:{operation}"
    common = {"process_group": ("0", "default_pg"), "is_p2p": False, "input_sizes": [[1024]]}
    return {**common, "collective_seq_id": number, "profiling_name": name, "state": state, **more}


def _written(
    folder: Path, dumps: Mapping[int, list[dict[str, Any]]], name: str = "trace_{}"
) -> Path:
    groups = {
        "0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"},
        "2": {"name": "2", "desc": "tp_1", "ranks": "[2, 3]"},
    }
    for rank, entries in dumps.items():
        dump = {"version": "2.5", "pg_config": groups, "pg_status": {}, "entries": entries}
        (folder / name.format(rank)).write_bytes(pickle.dumps(dump, 2))
    return folder


def test_torch_before_2_4_numbers_its_collectives_otherwise(tmp_path: Path) -> None:
    def old(number: int, state: str) -> dict[str, Any]:
        entry = _entry(number, "all_reduce", state)
        return {**{k: v for k, v in entry.items() if k != "collective_seq_id"}, "seq_id": number}

    dumps = {rank: [old(6, "scheduled")] for rank in (0, 1, 3)} | {2: [old(5, "completed")]}
    found = diagnose_paths([_written(tmp_path, dumps)])
    assert any("rank 2 stands at collective 5" in note for note in found.notes)


@pytest.mark.parametrize("name", ["nccl_trace_rank_{}", "fr_{}", "dump_{}.pickle"])
def test_the_rank_is_the_last_number_of_a_dump_s_name(tmp_path: Path, name: str) -> None:
    dumps = {rank: [_entry(6, "all_reduce", "scheduled")] for rank in (0, 1, 3)}
    found = diagnose_paths(
        [_written(tmp_path, {**dumps, 2: [_entry(5, "all_reduce", "completed")]}, name)]
    )
    assert any("rank 2 stands at collective 5" in note for note in found.notes)


def test_who_waits_in_another_group_is_not_who_is_awaited(tmp_path: Path) -> None:
    waits = [_entry(6, "all_reduce", "scheduled")]
    behind = _entry(5, "all_reduce", "completed")
    tensor = _entry(1, "all_gather", "scheduled", process_group=("2", "tp_1"))
    found = diagnose_paths(
        [_written(tmp_path, {0: waits, 1: waits, 2: [behind, tensor], 3: [behind]})]
    )
    assert any(note.startswith("rank 3 stands at collective 5") for note in found.notes), (
        found.notes
    )


def test_a_message_that_nobody_sends_names_who_should(tmp_path: Path) -> None:
    done = _entry(3, "all_reduce", "completed")
    waits = _entry(3, "recv 1<-0", "scheduled", is_p2p=True, p2p_seq_id=1)
    found = diagnose_paths(
        [_written(tmp_path, {0: [done], 1: [done, waits], 2: [done], 3: [done]})]
    )
    assert found.label == "peer-died-timeout"
    assert any("rank 1 waits for rank 0" in note for note in found.notes)


def test_ranks_that_all_wait_in_the_same_leave_what_is_between_them(tmp_path: Path) -> None:
    waits = [_entry(6, "all_reduce", "started")]
    found = diagnose_paths([_written(tmp_path, dict.fromkeys(range(4), waits))])
    assert any("every rank waits in the same collective" in note for note in found.notes)
    assert "network-unreachable" in [candidate.label for candidate in found.candidates]
    # Of four, one that has not written a dump can be the one.
    fewer = tmp_path / "fewer"
    fewer.mkdir()
    missing = diagnose_paths([_written(fewer, dict.fromkeys(range(3), waits))])
    assert any("rank 3 did not say so" in note for note in missing.notes)


def test_dumps_with_other_sizes_name_the_rank_and_show_each_kind_once(tmp_path: Path) -> None:
    sizes = {0: 1024, 1: 1024, 2: 512, 3: 1024}
    found = diagnose_paths(
        [
            _written(
                tmp_path,
                {
                    rank: [_entry(6, "all_reduce", "started", input_sizes=[[size]])]
                    for rank, size in sizes.items()
                },
            )
        ]
    )
    assert found.label == "application-error"
    assert any("rank 2: [[512]], ranks 0, 1, 3: [[1024]]" in note for note in found.notes)
    assert found.lead is not None
    assert found.lead.rank == 2
    assert [(line.rank, line.copies) for line in found.candidates[0].evidence] == [(2, 0), (0, 2)]


def test_ranks_that_wait_alike_are_shown_as_one_line(tmp_path: Path) -> None:
    dumps = {rank: [_entry(5 + (rank != 2), "all_reduce", "started")] for rank in range(3)}
    dumps[2] = [_entry(5, "all_reduce", "completed")]
    found = diagnose_paths([_written(tmp_path, dumps)])
    assert [(line.rank, line.copies) for line in found.candidates[0].evidence] == [(0, 1), (2, 0)]
    assert "completed collective 5 all_reduce of default_pg" in found.candidates[0].evidence[1].text
