"""What no plan may hold, whoever made it: each fault in words, and what is just allowed beside it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remedy.errors import PlanFileError
from remedy.plan import (
    Change,
    CommandAction,
    FileAction,
    Finding,
    FindingKind,
    Plan,
    inverse,
    reading,
    sha256,
    write_plan,
)
from remedy.plan.change import Splice
from remedy.plan.reading import (
    MOST_CHANGES,
    MOST_COMMAND,
    MOST_OFFSET,
    MOST_TEXT,
    faults,
    is_normal,
    read_plan,
)
from remedy.plan.splice import placed

OLD, NEW, PART = b"old\n", b"new\n", b"part"
BLOBS = {sha256(content): content for content in (OLD, NEW)}
COMMAND = CommandAction(
    observe="uname -n", before="a", after="b", do="hostname b", undo="hostname a"
)
FILE = FileAction(path="/etc/x", real_path="/usr/etc/x", before=sha256(b"whole"), after=sha256(NEW))
SPLICE = Splice(offset=5, line=2, length=len(OLD), before=sha256(OLD), after=sha256(NEW))
SPLICED = FILE.model_copy(update={"splices": (SPLICE,)})


def change(action: Any = COMMAND, **fields: Any) -> Change:
    usual: dict[str, Any] = {
        "id": "01-x",
        "host": "gpu01",
        "remedy": "x",
        "title": "t",
        "reason": "r",
        "label": "l",
    }
    return Change(**{**usual, **fields}, action=action)


def plan(*changes: Change, **fields: Any) -> Plan:
    """Return a plan with these changes, and with the bytes that they need."""
    used = {digest: BLOBS[digest] for digest in reading._used(changes) if digest in BLOBS}
    usual: dict[str, Any] = {
        "tool_version": "1", "created": "2026", "author": "ann", "inventory": "i", "inventory_digest": "d",
        "spec_digest": "s", "changes": changes, "blobs": used,
    }  # fmt: skip
    return Plan(**{**usual, **fields})


def of(action: Any = COMMAND, /, **fields: Any) -> list[str]:
    return list(faults(plan(change(action, **fields))))


def edited(action: Any, **fields: Any) -> Any:
    return action.model_copy(update=fields)


def finding(**fields: Any) -> Finding:
    usual: dict[str, Any] = {
        "host": "gpu01",
        "remedy": "x",
        "kind": FindingKind.REPORT,
        "label": "l",
        "title": "t",
    }
    return Finding(**{**usual, **fields})


@pytest.mark.parametrize("action", [COMMAND, FILE, SPLICED])
def test_a_plan_of_a_command_or_a_file_has_none(action: Any) -> None:
    assert of(action) == []


ONE_LINE = "who made it, when and for what is not text of one line"
TEXTS = (
    "purpose",
    "tool_version",
    "created",
    "author",
    "inventory",
    "sealed_by",
    "inventory_digest",
    "spec_digest",
)


@pytest.mark.parametrize("name", TEXTS)
def test_who_made_it_when_and_for_what_is_one_line(name: str) -> None:
    for bad in ("x" * (MOST_TEXT + 1), *(f"a{c}b" for c in "\0\n\x1b\x1f\x7f\x9f\u2028\u2029")):
        assert list(faults(plan(**{name: bad}))) == [ONE_LINE]
    assert list(faults(plan(**{name: "x" * MOST_TEXT}))) == []


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"observed": {"gpu01": "f" * 64}}, []),
        ({"secrets": {"gpu01 NAME": "0" * 64}}, []),
        ({"machines": {"gpu01": "0" * 32}}, []),
        ({"observed": {"gpu01": "f" * 63}}, ["a digest is not 64 hexadecimal digits"]),
        ({"observed": {"gpu01": "f" * 64 + "\n"}}, ["a digest is not 64 hexadecimal digits"]),
        ({"secrets": {"gpu01 NAME": "F" * 64}}, ["a digest is not 64 hexadecimal digits"]),
        ({"machines": {"gpu01": "0" * 31 + "g"}}, ["what stands for a machine is not 32 hexadecimal digits"]),
        ({"machines": {"gpu01": "0" * 33}}, ["what stands for a machine is not 32 hexadecimal digits"]),
        ({"blobs": {"0" * 64: OLD}}, [
            f"the content {'0' * 12} has a different digest", f"no change uses the content {'0' * 12}",
        ]),
        ({"blobs": {sha256(OLD): OLD}}, [f"no change uses the content {sha256(OLD):.12}"]),
        ({"observed": {"b": "f" * 64}}, ["it knows a state or a secret of 'b', which it does not change"]),
        ({"machines": {"c": "0" * 32, "b": "0" * 32}}, [
            "it knows a state or a secret of 'b', which it does not change",
        ]),
        ({"secrets": {"b gpu01": "0" * 64}}, ["it knows a state or a secret of 'b', which it does not change"]),
        ({"findings": (finding(), finding(host=None))}, []),
        ({"findings": (finding(host="b c"),)}, ["a finding is about 'b c', which is no host name"]),
        ({"findings": (finding(remedy="x y"),)}, ["a finding is of no remedy, or its cause is no label"]),
        ({"findings": (finding(label="X"),)}, ["a finding is of no remedy, or its cause is no label"]),
        *(({"findings": (finding(**{name: "x" * MOST_TEXT}),)}, []) for name in ("title", "fix")),
        *(({"findings": (finding(**{name: "x" * (MOST_TEXT + 1)}),)}, ["a finding is too long"])
          for name in ("title", "fix")),
        ({"findings": (finding(evidence=("x", "x" * (MOST_TEXT + 1))),)}, ["a finding is too long"]),
    ],
)  # fmt: skip
def test_what_a_plan_knows_is_of_its_form_and_of_its_hosts(
    fields: dict[str, Any], expected: list[str]
) -> None:
    assert list(faults(plan(change(), **fields))) == expected


@pytest.mark.parametrize(
    "name", ["g", "gpu01", "a-b", "a.b", "9", "A" * 64, "a--b", "node.example.org"]
)
def test_names_of_hosts(name: str) -> None:
    assert of(host=name) == []


@pytest.mark.parametrize(
    "name", ["", "-a", "a-", "a_b", "a b", "A" * 65, "a..b", ".a", "a/b", "a\n", "ä"]
)
def test_what_is_no_name_of_a_host(name: str) -> None:
    assert of(host=name) == [f"{name!r:.80} is no host name"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"id": "01-A_z9"}, ""),
        ({"id": f"01-{'x' * 64}"}, ""),
        ({"id": f"01-{'x' * 65}"}, f"'01-{'x' * 65}' is no id of a change"),
        ({"id": "1-x"}, "'1-x' is no id of a change"),
        ({"id": "0001-x"}, "'0001-x' is no id of a change"),
        ({"id": "01-"}, "'01-' is no id of a change"),
        ({"id": "01-../x"}, "'01-../x' is no id of a change"),
        ({"id": "undo-01-x"}, "'undo-01-x' is no id of a change"),
        ({"id": "02-x"}, "02-x is change number 1 there"),
        ({"remedy": ""}, ""),
        ({"remedy": "x" * 64}, ""),
        ({"remedy": "x" * 65}, "'01-x' is no id of a change"),
        ({"remedy": "x-y"}, "'01-x' is no id of a change"),
    ],
)
def test_an_id_is_a_number_in_order_and_a_remedy(fields: dict[str, str], expected: str) -> None:
    assert of(**fields) == ([f"gpu01: {expected}"] if expected else [])


def test_ids_are_different_and_not_too_many() -> None:
    twice = plan(change(id="01-x"), change(id="01-x"))
    assert list(faults(twice)) == [
        "gpu01: 01-x is change number 2 there",
        "gpu01: two changes have one id",
    ]
    apart = plan(change(id="01-x"), change(id="01-x", host="gpu02"), change(id="02-x"))
    assert list(faults(apart)) == []
    many = [change(id=f"{number:02d}-x") for number in range(1, MOST_CHANGES + 1)]
    assert list(faults(plan(*many))) == []
    more = plan(*many, change(id="1000-x"))
    assert "gpu01: more than 999 changes" in list(faults(more))


def test_a_plan_that_a_run_kept_may_be_a_part_of_it_backwards() -> None:
    back = [change(id="undo-02-x"), change(id="undo-01-x")]
    assert list(faults(plan(*back), of_journal=True)) == []
    assert list(faults(plan(*back, purpose="rollback r1"))) == []
    assert len(list(faults(plan(*back)))) == 2
    spare = {"blobs": {sha256(OLD): OLD}, "observed": {"b": "f" * 64}}
    assert list(faults(plan(change(), **spare), of_journal=True)) == []
    assert len(list(faults(plan(change(), **spare)))) == 2
    without = plan(change(FILE), blobs={})
    assert list(faults(without, of_journal=True)) == []
    assert list(faults(without)) == ["gpu01: 01-x: its new content is not in the plan"]


TITLE = "its title, its reason or its note is missing or too long"
SHORT = "its path is not absolute, or not in its shortest form"
DIGEST = "what is in the file before or after is not a digest"
LONG = "its command is too long, or holds a zero byte"
PARTS = "it has parts of a file, and no file that they are of"
ORDER = "its parts overlap, or are not in order"
OF_COMMAND = ("observe", "before", "after", "do", "undo")
SAME = "the file is the same before and after"


@pytest.mark.parametrize(
    ("action", "fields", "expected"),
    [
        *((COMMAND, {name: "x" * MOST_TEXT}, []) for name in ("title", "reason", "disrupts")),
        *((COMMAND, {name: "x" * (MOST_TEXT + 1)}, [TITLE]) for name in ("title", "reason", "disrupts")),
        (COMMAND, {"title": " "}, [TITLE]),
        (COMMAND, {"reason": "", "disrupts": ""}, []),
        (COMMAND, {"label": "a-9" + "x" * 61}, []),
        (COMMAND, {"label": "x" * 65}, ["its cause is no label"]),
        (COMMAND, {"label": "a_b"}, ["its cause is no label"]),
        *((edited(COMMAND, **{part: "x" * MOST_COMMAND}), {}, []) for part in OF_COMMAND),
        *((edited(COMMAND, **{part: "x" * (MOST_COMMAND + 1)}), {}, [LONG]) for part in OF_COMMAND),
        *((edited(COMMAND, **{part: "a\0b"}), {}, [LONG]) for part in OF_COMMAND),
        (edited(COMMAND, undo=""), {}, []),
        (edited(COMMAND, do=" "), {}, ["a command is missing"]),
        (edited(COMMAND, observe="\n"), {}, ["a command is missing"]),
        (edited(COMMAND, after="a"), {}, ["its command changes nothing that could be observed"]),
        (edited(FILE, path="etc/x"), {}, [SHORT]),
        (edited(FILE, real_path="/etc/../x"), {}, [SHORT]),
        (edited(FILE, mode=0), {}, []),
        (edited(FILE, mode=0o777), {}, []),
        (edited(FILE, mode=0o1000), {}, ["1000 is no mode of a file"]),
        (edited(FILE, mode=-1), {}, ["-1 is no mode of a file"]),
        (edited(FILE, before=None), {}, []),
        (edited(FILE, after=None), {}, []),
        (edited(FILE, before="0"), {}, [DIGEST]),
        (edited(FILE, before=None, after=None), {}, [DIGEST, SAME]),
        (edited(FILE, before=sha256(NEW)), {}, [SAME]),
        (edited(FILE, after="x" * 64), {}, [DIGEST, "its new content is not in the plan"]),
        (edited(SPLICED, splices=()), {}, [PARTS]),
        (edited(SPLICED, before=None), {}, [PARTS]),
    ],
)  # fmt: skip
def test_a_change_is_whole(action: Any, fields: dict[str, str], expected: list[str]) -> None:
    assert of(action, **fields) == [f"gpu01: 01-x: {fault}" for fault in expected]


def splices(*changed: dict[str, Any]) -> Any:
    return edited(SPLICED, splices=tuple(SPLICE.model_copy(update=fields) for fields in changed))


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (splices({"before": None, "length": 0}), []),
        (splices({"after": None}), []),
        (splices({"offset": 0, "line": 1}), []),
        (splices({"offset": 0, "line": 0}), [ORDER]),
        (splices({"offset": -1, "line": 1}), [ORDER]),
        (splices({"offset": 1, "line": 2}), []),
        (splices({"offset": 1, "line": 3}), [ORDER]),
        (splices({"offset": MOST_OFFSET}), []),
        (splices({"offset": MOST_OFFSET + 1}), [ORDER]),
        (splices({}, {"offset": 9, "line": 3}), []),
        (splices({}, {"offset": 8, "line": 3}), [ORDER]),
        (splices({"line": 4}, {"offset": 9, "line": 3}), [ORDER]),
        (splices({}, {"offset": 9, "line": 2}), []),
        (splices({"length": 3}), ["removes 3 bytes at 5, and the plan shows 4"]),
        (splices({"before": None}), ["removes 4 bytes at 5, and the plan shows 0"]),
        (splices({"before": sha256(NEW)}), ["a part of the file is the same before and after"]),
        (splices({"before": "0" * 64}), ["its bytes are not in the plan"]),
        (splices({"after": "0" * 64}, {"offset": 9, "length": 3}), [
            "its bytes are not in the plan", "removes 3 bytes at 9, and the plan shows 4",
        ]),
    ],
)  # fmt: skip
def test_parts_of_a_file_are_in_order_and_have_their_bytes(
    action: Any, expected: list[str]
) -> None:
    assert of(action) == [f"gpu01: 01-x: {fault}" for fault in expected]


def test_parts_that_go_back_have_their_places_in_the_file_as_it_is_then() -> None:
    forward = change(splices({}), id="01-x")
    (back,) = inverse([forward])
    assert list(faults(plan(placed(back, BLOBS), blobs=BLOBS), of_journal=True)) == []
    blobs = {**BLOBS, sha256(OLD + b"x"): OLD + b"x"}
    longer = change(splices({"before": sha256(OLD + b"x"), "length": 5}), id="01-x")
    (back,) = inverse([longer])
    assert list(faults(plan(back, blobs=blobs), of_journal=True)) == [
        "gpu01: undo-01-x: removes 5 bytes at 5, and the plan shows 4"
    ]
    assert list(faults(plan(placed(back, blobs), blobs=blobs), of_journal=True)) == []


@pytest.mark.parametrize(
    ("path", "normal"),
    [
        ("/x", True), ("/etc/x.d/y", True), ("/etc/...", True), ("/etc/.x", True), ("/" + "x" * 4094, True),
        ("/" + "x" * 4095, False), ("", False), ("x", False), ("/", False), ("//x", False), ("/x/", False),
        ("/x//y", False), ("/./x", False), ("/x/.", False), ("/../x", False), ("/x/../y", False),
        ("/x/..", False), ("/a\nb", False), ("/a\x7fb", False),
    ],
)  # fmt: skip
def test_a_path_has_one_form(path: str, normal: bool) -> None:
    assert is_normal(path) is normal


# ---- files


def kept_as(
    path: Path, edit: Callable[[dict[str, Any]], Any], made: Plan | None = None
) -> PlanFileError:
    """Return how a plan file is refused that somebody edited."""
    write_plan(made or plan(change(SPLICED)), path)
    document = json.loads(path.read_text())
    text = edit(document)
    path.write_text(text if isinstance(text, str) else json.dumps(document))
    with pytest.raises(PlanFileError) as caught:
        read_plan(path)
    return caught.value


CHANGED = " was changed after it was made: its digest does not match"
TYPE = ": changes.0.title: Input should be a valid string"


@pytest.mark.parametrize(
    ("edit", "words", "step"),
    [
        (lambda d: d["plan"].update(author="eve"), CHANGED, ""),
        (lambda d: d.update(digest="0"), CHANGED, ""),
        (lambda d: d["plan"].update(contents={}), ": contents: only where it was made is that known", ""),
        (lambda d: d["plan"].update(addresses={}), ": addresses: only where it was made is that known", ""),
        (lambda d: d["plan"].update(format_version=7), " is of format 7; this remedy reads formats 1 and 2",
         "Use the remedy that made it, or make a new plan with this one."),
        (lambda d: d["plan"]["changes"][0].update(title=1), TYPE, ""),
        (lambda d: json.dumps({"plan": d["plan"]}), " is not a whole plan file", ""),
        (lambda d: json.dumps(d).replace('"author"', '"digest": 1, "digest": 2, "author"'),
         " is not a whole plan file", ""),
        (lambda d: json.dumps(d).replace('"ann"', "NaN"), " is not a whole plan file", ""),
        (lambda _: "[" * 100_000, " is not a whole plan file",
         "Make a new one: remedy plan INVENTORY -o plan.json"),
    ],
)  # fmt: skip
def test_a_file_that_is_refused_is_named_with_what_to_do(
    tmp_path: Path, edit: Callable[[dict[str, Any]], Any], words: str, step: str
) -> None:
    path = tmp_path / "p.json"
    refusal = kept_as(path, edit)
    assert refusal.message == f"{path}{words}"
    assert refusal.next_step == (step or f"Make a new one: remedy plan INVENTORY -o {path}")


def test_a_file_with_a_fault_and_its_right_digest_is_no_plan_of_remedys(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    made = plan(change(id="07-x"))
    refusal = kept_as(path, lambda _: None, made)
    words = "gpu01: 07-x is change number 1 there"
    assert refusal.message == f"{path} is no plan that remedy made: {words}"
    assert refusal.next_step == (
        f"Find out who wrote it. Make a new one: remedy plan INVENTORY -o {path}"
    )


def test_a_file_that_is_not_there_or_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "p.json"
    with pytest.raises(PlanFileError, match="No such file"):
        read_plan(path)
    write_plan(plan(change()), path)
    monkeypatch.setattr(reading, "MOST_BYTES", path.stat().st_size)
    assert read_plan(path).changes
    monkeypatch.setattr(reading, "MOST_BYTES", path.stat().st_size - 1)
    with pytest.raises(PlanFileError, match="not a whole plan file"):
        read_plan(path)
