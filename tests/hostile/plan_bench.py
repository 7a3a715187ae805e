"""Real plans for attacks: made by remedy for recorded hosts, changed by somebody, and read on a terminal."""

from __future__ import annotations

import base64
import copy
import io
import json
import re
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pyte

from remedy.audit.agreement import Agreement
from remedy.cli import show
from remedy.cli.terminal import StandardOutput
from remedy.errors import RemedyError
from remedy.inventory import Inventory
from remedy.plan import Fleet, Plan, read_plan, remedies, sha256, vouched, write_plan
from remedy.plan.plan import canonical
from remedy.report.proposal import render_proposal
from remedy.runs.gate import Proposal
from remedy.runs.probe import ProbeResult
from tests.unit.deploys import broken  # noqa: F401 - hosts that the program's own remedies change
from tests.unit.deploys.fleets import default_spec, single_cases
from tests.unit.plans import plan_of

COLUMNS = 100
CASES = 6  # of each remedy
# An approver compares what is shown, not digests of the whole by heart.
OWN_DIGEST = re.compile(r"(plan|content) [0-9a-f]{12}")
REFUSED = None

Body = dict[str, Any]


@cache
def real_plans() -> tuple[Plan, ...]:
    """Return plans with every kind of change that remedies plan for the recorded hosts, small ones first."""
    plans: dict[tuple[tuple[str, str], ...], Plan] = {}
    for remedy in remedies():
        for case in islice(single_cases(remedy), CASES):
            plan = _saved(plan_of(case.fleet(), remedy.name))
            plans.setdefault(tuple(sorted({(c.remedy, c.action.kind) for c in plan.changes})), plan)
    return tuple(plan for kinds, plan in plans.items() if kinds)


def _saved(plan: Plan) -> Plan:
    """Return a plan with its findings and changes for two hosts, with all that a file has."""
    part = plan.restricted(plan.hosts[:2])
    used = json.dumps([change.model_dump(mode="json") for change in part.changes])
    return part.model_copy(
        update={
            "findings": tuple(f for f in part.findings if f.host in (None, *part.hosts)),
            "blobs": {digest: content for digest, content in part.blobs.items() if digest in used},
            "observed": dict.fromkeys(part.hosts, "0" * 64),
            "machines": dict.fromkeys(part.hosts, "3" * 32),
            "secrets": {f"{name} ssh_password": "1" * 64 for name in part.hosts},
            "sealed_by": "2" * 16,
        }
    )


def body_of(plan: Plan) -> Body:
    """Return a plan as JSON has it, to be changed."""
    body: Body = json.loads(canonical(plan))
    return body


def written(body: Body, path: Path) -> Path:
    """Write a plan file whose digest is right, as whoever changes one does."""
    try:
        digest = Plan.model_validate_json(json.dumps(body)).digest
    except ValueError:
        text = json.dumps(body, sort_keys=True, separators=(",", ":"))
        digest = sha256(text.encode("utf-8", "surrogatepass"))
    path.write_text(json.dumps({"digest": digest, "plan": body}))
    return path


def screen(path: Path) -> tuple[str, ...] | None:
    """Return what a terminal shows of a plan file; None where it is refused."""
    buffer = io.StringIO()
    console = StandardOutput(file=buffer, force_terminal=True, width=COLUMNS, color_system=None)
    names = vars(show)
    before, names["out"] = names["out"], console
    try:
        show._show_plan(path, None, as_json=False)  # what `remedy show PLAN` prints
    except RemedyError:
        return REFUSED
    finally:
        names["out"] = before
    return seen(OWN_DIGEST.sub("", buffer.getvalue()))


def confirmed(path: Path, current: Plan) -> tuple[str, ...] | None:
    """Return what a terminal shows of a plan file before it is carried out; None where it is refused.

    Args:
        path: the plan file.
        current: what remedy decides for the hosts as they are.
    """
    try:
        plan = read_plan(path)
    except RemedyError:
        return REFUSED
    inventory = Inventory(path=Path("inventory.py"), nodes=())
    probe = ProbeResult(Fleet(inventory, {}, default_spec()), {})
    vars(probe)["plan"] = current
    proposal = Proposal("apply", Agreement(plan), plan, probe, authorship=vouched(plan, current))
    buffer = io.StringIO()
    console = StandardOutput(file=buffer, force_terminal=True, width=COLUMNS, color_system=None)
    console.print(render_proposal(proposal))
    return seen(OWN_DIGEST.sub("", buffer.getvalue()))


def seen(text: str) -> tuple[str, ...]:
    """Return the lines that a terminal shows of a text, with all that it does to the screen."""
    terminal = pyte.Screen(COLUMNS, text.count("\n") + len(text) // COLUMNS + 2)
    pyte.Stream(terminal).feed(text.replace("\n", "\r\n"))
    return tuple(line.rstrip() for line in terminal.display)


def texts(value: str) -> Iterator[str]:
    """Yield a text with a change that somebody may hope nobody sees."""
    yield value + "x"
    yield value + " "
    yield value + "\n"
    yield "\t" + value
    yield value + "\u200b"
    yield value + "\x1b[2K\r"
    yield value + "\x1b[8m\u202e"
    yield value + "\r"
    yield value + "\\n"
    if value:
        yield value[:-1]
        yield value.swapcase()
        yield value.replace("a", "\u0430", 1)
        yield value.replace(" ", "\u00a0", 1)
        yield value + "\n" * 200 + value


def mutations(value: Any) -> Iterator[Any]:
    """Yield a value with one part of it changed."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value + 1, value - 1, value + 100, 10**30)
    elif isinstance(value, str):
        yield from (text for text in dict.fromkeys(texts(value)) if text != value)
    elif value is None:
        yield from ("", "x", 0, "a" * 64)
    elif isinstance(value, list):
        for place in range(len(value)):
            yield value[:place] + value[place + 1 :]
            yield value[: place + 1] + value[place:]
    elif isinstance(value, dict):
        yield {**value, "undo2": "rm -rf /"}
        yield from ({k: v for k, v in value.items() if k != key} for key in value)


def places(value: Any, where: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of each value in a document."""
    yield where
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*where, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from places(item, (*where, number))


def at(body: Any, where: tuple[Any, ...]) -> Any:
    """Return the value at a place."""
    for key in where:
        body = body[key]
    return body


def replaced(body: Body, where: tuple[Any, ...], value: Any) -> Body:
    """Return a document with another value at a place."""
    if not where:
        return dict(value)
    body = copy.deepcopy(body)
    at(body, where[:-1])[where[-1]] = value
    return body


def other_contents(body: Body) -> Iterator[Body]:
    """Yield a plan with other bytes in a file, and every digest and length in it right."""
    for digest, text in body["blobs"].items():
        content = base64.urlsafe_b64decode(text)
        for changed in (
            content + b" ",
            content + b"\n",
            content.replace(b"\n", b"\r\n", 1),
            content.replace(b"\n", b"\n\x1b[1A\x1b[2K", 1),
            content.replace(b" ", b"\t", 1),
            content.replace(b"\n", b"\x0b", 1),
            content + b"\xff",
            content[:-1],
        ):
            if changed != content and changed:
                yield _with_content(body, digest, changed)


def _with_content(body: Body, digest: str, changed: bytes) -> Body:
    new = sha256(changed)
    text = json.dumps({**body, "blobs": {}}).replace(digest, new)
    other: Body = json.loads(text)
    other["blobs"] = {k: v for k, v in body["blobs"].items() if k != digest}
    other["blobs"][new] = base64.urlsafe_b64encode(changed).decode()
    for change in other["changes"]:
        for splice in change["action"].get("splices") or ():
            if splice["before"] == new:
                splice["length"] = len(changed)
    return other


def write(plan: Plan, path: Path) -> Path:
    """Write a plan as remedy does."""
    write_plan(plan, path)
    return path
