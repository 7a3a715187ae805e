"""Splices: they make exactly the new content, and hold nothing that does not change."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.plan import Change, FileAction, inverse, sha256
from remedy.plan.splice import LARGEST, cuts, join, placed, spliced, whole

LINES = st.lists(
    st.sampled_from([b"a\n", b"b\n", b"\n", b"long line\r\n", b"\xff\n", b"c"]), max_size=12
)


def change(
    before: bytes, after: bytes, path: str = "/etc/hosts"
) -> tuple[Change, dict[str, bytes]]:
    action = FileAction(path=path, real_path=path, before=sha256(before), after=sha256(after))
    whole = Change(id="01-x", host="h", remedy="x", title="t", reason="r", label="l", action=action)
    (lean,), blobs = spliced([whole], {sha256(b): b for b in (before, after)})
    return lean, blobs


@given(LINES, LINES, st.booleans())
def test_splices_make_exactly_the_new_content(
    old: list[bytes], new: list[bytes], packed: bool
) -> None:
    before, after = b"".join(old), b"".join(new)
    lean, blobs = change(before, after, "/etc/x.json" if packed else "/etc/hosts")
    assert isinstance(lean.action, FileAction)
    assert lean.action.splices is not None
    assert join(before, lean.action.splices, blobs) == after
    for one in lean.action.splices:
        assert blobs.get(one.before or "", b"") == before[one.offset : one.offset + one.length]


@given(LINES, LINES)
def test_of_a_file_that_was_read_the_whole_new_content_is_known(
    old: list[bytes], new: list[bytes]
) -> None:
    before, after = b"".join(old), b"".join(new)
    lean, blobs = change(before, after)
    expected = {sha256(after): after} if before != after else {}
    assert whole([lean], {"/etc/hosts": before}.get, blobs) == expected


BEFORE, AFTER = b"a\nold\nb\n", b"a\nnew\nb\n"


@pytest.mark.parametrize(
    "forged",
    [
        {"line": 3},
        {"before": sha256(b"something harmless\n")},
        {"before": None},
        {"offset": 0, "line": 1},
        {"after": sha256(b"b\n")},
        {"after": sha256(b"in no plan")},
    ],
)
def test_what_readers_of_the_plan_were_not_shown_is_left_to_its_host(
    forged: dict[str, Any],
) -> None:
    lean, blobs = change(BEFORE, AFTER)
    assert isinstance(lean.action, FileAction)
    assert lean.action.splices is not None
    (splice,) = lean.action.splices
    action = lean.action.model_copy(update={"splices": (splice.model_copy(update=forged),)})
    blobs[sha256(b"b\n")] = b"b\n"
    false = lean.model_copy(update={"action": action})
    assert whole([lean], lambda _: BEFORE, blobs) == {sha256(AFTER): AFTER}
    assert whole([false], lambda _: BEFORE, blobs) == {}


@pytest.mark.parametrize("known", [None, b"", BEFORE + b"more\n"])
def test_of_a_file_that_is_not_known_or_another_there_is_no_whole_content(
    known: bytes | None,
) -> None:
    lean, blobs = change(BEFORE, AFTER)
    assert whole([lean], lambda _: known, blobs) == {}


def test_a_long_file_is_put_together_by_its_host() -> None:
    before = b"x" * LARGEST + b"\n"
    lean, blobs = change(before, before + b"a\n")
    assert whole([lean], lambda _: before, blobs) == {}


def test_lines_that_stay_are_not_in_the_plan() -> None:
    foreign = b"".join(b"10.0.0.%d canary%d\n" % (n, n) for n in range(50))
    lean, blobs = change(foreign + b"127.0.1.1 gpu01\n" + foreign, foreign + foreign + b"# block\n")
    assert sorted(blobs.values()) == [b"# block\n", b"127.0.1.1 gpu01\n"]
    assert "canary" not in lean.model_dump_json()


def test_of_a_line_that_holds_much_only_what_changes_is_in_the_plan() -> None:
    before = b'{"proxies": {"http": "http://user:canary@proxy"}, "default-shm-size": "64m"}\n'
    lean, blobs = change(before, before.replace(b"64m", b"10g"), "/etc/docker/daemon.json")
    assert sorted(blobs.values()) == [b"10g", b"64m"]
    assert isinstance(lean.action, FileAction)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (b"a\nb\n", b"a\nb\n", []),
        (b"", b"a\n", [(0, b"", b"a\n")]),
        (b"a\n", b"", [(0, b"a\n", b"")]),
        (b"a\nb\nc\n", b"a\nX\nc\nd\n", [(2, b"b\n", b"X\n"), (6, b"", b"d\n")]),
    ],
)
def test_cuts(before: bytes, after: bytes, expected: list[tuple[int, bytes, bytes]]) -> None:
    assert cuts(before, after) == expected


def test_the_inverse_names_the_same_places_the_other_way_round() -> None:
    lean, _ = change(b"a\nb\n", b"a\nc\n")
    (back,) = inverse([lean])
    (again,) = inverse([back])
    assert again == lean
    assert isinstance(lean.action, FileAction)
    assert isinstance(back.action, FileAction)
    assert lean.action.splices is not None
    assert back.action.splices is not None
    assert back.action.splices[0].before == lean.action.splices[0].after
    assert (back.id, back.title) == ("undo-01-x", "take back: t")


@given(LINES, LINES, st.booleans())
def test_what_goes_back_is_placed_in_the_file_as_it_is_then(
    old: list[bytes], new: list[bytes], packed: bool
) -> None:
    before, after = b"".join(old), b"".join(new)
    path = "/etc/x.json" if packed else "/etc/hosts"
    lean, blobs = change(before, after, path)
    (back,) = (placed(step, blobs) for step in inverse([lean]))
    assert isinstance(back.action, FileAction)
    assert join(after, back.action.splices or (), blobs) == before
    contents = whole([back], {path: after}.get, blobs)  # their lines are right as well
    assert contents == ({sha256(before): before} if before != after else {})


def test_a_new_file_and_one_that_goes_are_whole() -> None:
    common: dict[str, Any] = {"id": "01-x", "host": "h", "remedy": "x", "title": "t"}
    common |= {"reason": "r", "label": "l"}
    new = FileAction(path="/a", real_path="/a", before=None, after=sha256(b"x"))
    gone = FileAction(path="/b", real_path="/b", before=sha256(b"y"), after=None)
    changes = [Change(action=action, **common) for action in (new, gone)]
    lean, blobs = spliced(changes, {sha256(b): b for b in (b"x", b"y")})
    assert lean == tuple(changes)
    assert blobs == {sha256(b"x"): b"x"}
