"""Which block is expected in hosts files: of large fleets alone, and what was seen before besides."""

from __future__ import annotations

import re
from pathlib import Path

from remedy.plan import Fleet
from remedy.probe import File, ProbeRequest, parse_probe, render_probe
from remedy.runs.hosts_blocks import FEWEST, NAME, expected_blocks, keep_block
from tests.unit.growth import fleet, swarm_of

MANY = 240


def of(count: int, broken: float = 0.0) -> Fleet:
    return fleet(count, broken)


def unread(count: int) -> Fleet:
    known = of(count)
    return Fleet(known.inventory, {}, known.spec)


def with_long_names(known: Fleet) -> Fleet:
    """Return the fleet with names in the hosts' own files that the inventory does not have."""
    states = {}
    for name, state in known.states.items():
        file = state.file("/etc/hosts")
        assert isinstance(file, File)
        content = re.sub(rb"(gpu[0-9]+)", rb"\1.example \1", file.content)
        file = file.model_copy(update={"content": content})
        states[name] = state.model_copy(update={"files": {**state.files, "/etc/hosts": file}})
    return Fleet(known.inventory, states, known.spec)


def test_the_block_that_follows_from_the_inventory_is_what_hosts_have(tmp_path: Path) -> None:
    block = swarm_of(MANY, 0.0).block.encode()
    assert expected_blocks(tmp_path, unread(MANY)) == (block,)
    assert expected_blocks(tmp_path, of(MANY)) == (block,)


def test_of_small_fleets_none_is_expected_and_none_is_kept(tmp_path: Path) -> None:
    assert expected_blocks(tmp_path, unread(FEWEST - 1)) == ()
    keep_block(tmp_path, of(FEWEST - 1))
    assert list(tmp_path.iterdir()) == []


def test_a_block_that_was_seen_is_expected_too(tmp_path: Path) -> None:
    home = tmp_path / ".remedy"
    seen = with_long_names(of(MANY))
    keep_block(home, seen)
    plain, longer = expected_blocks(home, unread(MANY))
    assert plain == swarm_of(MANY, 0.0).block.encode()
    assert longer == (home / NAME).read_bytes()
    assert b"\tgpu00007.example gpu00007\n" in longer
    # With the hosts' own files the two are one.
    assert expected_blocks(home, seen) == (longer,)


def test_hosts_without_a_block_leave_what_was_kept(tmp_path: Path) -> None:
    keep_block(tmp_path, of(MANY))
    kept = (tmp_path / NAME).read_bytes()
    keep_block(tmp_path, of(MANY, 1.0))
    assert (tmp_path / NAME).read_bytes() == kept


def test_what_is_no_block_is_not_expected(tmp_path: Path) -> None:
    (plain,) = expected_blocks(tmp_path, unread(MANY))
    for content in (b"", b"\xff\n" * 9000, plain[:-1], plain.replace(b"# END", b"# end"), b"x"):
        (tmp_path / NAME).write_bytes(content)
        assert expected_blocks(tmp_path, unread(MANY)) == (plain,)


def test_where_it_cannot_be_kept_nothing_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    keep_block(tmp_path / "file" / "home", of(MANY))
    assert (tmp_path / "file").read_text() == ""


def test_a_host_that_has_the_block_answers_as_briefly_in_a_fleet_of_any_size() -> None:
    lengths = {}
    for count in (MANY, 8 * MANY):
        swarm = swarm_of(count, 0.0)
        names = tuple(swarm.name(number) for number in range(count))
        request = ProbeRequest(names=names, blocks=(swarm.block.encode(),))
        answer = swarm.answer(7, render_probe(request))
        state = parse_probe(names[7], answer, request)
        file = state.file("/etc/hosts")
        assert isinstance(file, File)
        assert swarm.block.encode() in file.content
        lengths[count] = len(answer)
    assert abs(lengths[MANY] - lengths[8 * MANY]) < 100
