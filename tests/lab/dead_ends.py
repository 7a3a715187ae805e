"""Walking into a fault and out again by what remedy says: check, verify, and the step that verify names."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from remedy.lab import faults
from remedy.text import SSHD_LOG, TRACE_START_UP
from tests.lab.site import Site
from tests.lab.unknown_faults import UnknownFault

LONGEST = 300
WORDS = 60  # of a text, by which its line is found again
# That of a test is below a folder of its own, which says nothing to a reader.
_INVENTORY = re.compile(r"/\S*/inventory\.py\b")
_NAME = re.compile(r"^\| [^|]*\(`([\w-]+)`\) \|")
HEAD = """\
# Faults, and what is said of them

Each row is written by `tests/lab/test_dead_ends.py` from a walk into the fault and out again, over three lab
hosts of which one is broken: `remedy check`, `remedy verify`, the next step that the verdict names, and for the
faults of `remedy lab break --list` then `remedy apply`. The others are those of `tests/lab/unknown_faults.py`,
for which no remedy was written.

`REMEDY_FAULTS=all REMEDY_FAULTS_PAGE=docs/faults.md pytest tests/lab/test_dead_ends.py --full` writes all
rows again, each as soon as it is seen; with `REMEDY_FAULTS="NAME NAME"` only those, with
`REMEDY_FAULTS=missing` those without one.

| Fault | What check says | What verify says | What its next step shows | What apply does |
| --- | --- | --- | --- | --- |
"""


@dataclass(frozen=True)
class Walk:
    """What each command said of one fault.

    Args:
        fault: its name.
        check: the titles of what `remedy check` finds on the broken host, or why it cannot be read.
        verify: the reason of the verdict.
        red: whether the fault was seen by verify.
        culprits: whom it names.
        facts: what it shows of them.
        cause: the label and how sure it is; "" where nothing was red.
        refuted: whether the hosts refute that cause.
        step: what to run next, as the verdict has it.
        answer: everything that this printed.
        apply: the changes that a plan has for the host.
    """

    fault: str
    check: tuple[str, ...]
    verify: str
    red: bool
    culprits: tuple[str, ...]
    facts: tuple[str, ...]
    cause: str
    refuted: bool
    step: str
    answer: str
    apply: tuple[str, ...]


def walk(site: Site, fault: str, victim: str, hosts: tuple[str, ...]) -> Walk:
    """Look at a broken host as an operator would.

    Args:
        site: the inventory.
        fault: what was done to the host.
        victim: the broken host.
        hosts: it, and one or two sound ones.
    """
    limit = ("--limit", ",".join(hosts))
    check = json.loads(_output(site, "check", "--json", *limit)[0])
    host = check["hosts"][victim]
    # What sound hosts say, too, is not of the fault.
    usual = {
        finding["title"].replace(name, victim)
        for name in hosts
        if name != victim
        for finding in check["hosts"][name]["findings"]
    }
    of_all = [f["title"] for f in check["findings"]]
    found = [f["title"] for f in host["findings"] if f["title"] not in usual] + of_all
    changes = [
        c["title"] for c in (check["plan"] or {"changes": []})["changes"] if c["host"] == victim
    ]
    document = json.loads(_output(site, "verify", "--json", *limit)[0])
    verdict, explanation = document["verdict"], document["explanation"]
    step = _step(document, victim)
    answer = run(site, step) if step else ""
    for command in (TRACE_START_UP, SSHD_LOG):
        if command in str(document["hosts"][victim]["next_step"]):
            # On the host's console, because a session cannot be had: what it waits for need not end.
            done = site.cluster.run(victim, f"cd; timeout 10 {command}")
            answer = done.stdout + done.stderr
    confirmations = {c["label"]: c["status"] for c in (explanation or {}).get("confirmations", ())}
    label = explanation["diagnosis"]["label"] if explanation else ""
    error = document["hosts"][victim]["error"]
    return Walk(
        fault=fault,
        check=tuple(filter(None, [host["error"], *found])),
        verify=verdict["reason"],
        red=not verdict["passed"] or bool(error),
        culprits=tuple(culprit["name"] for culprit in verdict["culprits"])
        or ((victim,) if error else ()),
        facts=tuple(fact for culprit in verdict["culprits"] for fact in culprit["facts"]),
        cause=f"{label} {explanation['diagnosis']['confidence']}" if explanation else "",
        refuted=confirmations.get(label) == "refuted",
        step=step or (document["hosts"][victim]["next_step"] or ""),
        answer=answer or f"{error} {document['hosts'][victim]['next_step']}",
        apply=tuple(changes),
    )


def _step(document: dict[str, Any], victim: str) -> str:
    """What the verdict says to run next: of the culprit with the broken host, else of the first."""
    culprits = document["verdict"]["culprits"]
    own = [culprit for culprit in culprits if victim in culprit["hosts"]]
    return next((c["next_step"] for c in (*own, *culprits) if c["next_step"]), "")


def run(site: Site, step: str) -> str:
    """Run a step as it is typed, and return all that it prints."""
    match = re.match(r"remedy (\w+) \S+ ?(.*)", step)
    assert match, f"no command of remedy: {step}"
    words = shlex.split(match[2])
    if match[1] == "apply":
        words += ["--yes", "--no-verify"]
    return "".join(_output(site, match[1], *words))


def _output(site: Site, name: str, *words: str) -> tuple[str, str]:
    """Both outputs of a command, which may show the traceback of a rank."""
    done = subprocess.run(
        site.command(name, *words),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    return done.stdout, done.stderr


def applied(site: Site, seen: Walk, victim: str) -> Walk:
    """Apply after a walk, and return the walk with what was changed, and what could not be.

    Args:
        site: the inventory.
        seen: the walk, whose step may have been to apply.
        victim: the broken host.
    """
    words = ("--yes", "--no-verify", "--json", "--limit", victim)
    document = json.loads(_output(site, "apply", *words)[0])
    host = document["hosts"][victim]
    titles = {c["id"]: c["title"] for c in (document["plan"] or {"changes": []})["changes"]}
    changes = [f"{titles.get(c['id'], c['id'])}: {c['status']}" for c in host["changes"]]
    stepped = seen.apply if seen.step.startswith("remedy apply") else ()
    left = host["error"] or ("" if changes or stepped else f"nothing: {host['status']}")
    return replace(seen, apply=(*stepped, *changes, *filter(None, [left])))


def named(seen: Walk) -> str:
    """Return the line of the next step's output that says of the host what check says of it, or ""."""
    # What a command on the console shows of a fault that leaves no session to look through.
    of_console = faults.get(seen.fault).console
    parts = [of_console] if of_console else [p[:WORDS] for p in (*seen.check, *seen.apply) if p]
    lines = seen.answer.splitlines()
    return next((line for line in lines if any(part in line for part in parts)), "")


def keep(path: Path, row: str) -> None:
    """Write a row into the page, in place of that of the same fault; what was walked before stays.

    Args:
        path: of the page.
        row: as `unknown_row` or `known_row` makes it.
    """
    rows = {_name(line): line for line in kept(path)}
    rows[_name(row)] = row
    path.write_text(HEAD + "".join(sorted(rows.values(), key=_name)), encoding="utf-8")


def kept(path: Path) -> list[str]:
    """Return the rows of the page that are there already, each with its line end."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [line for line in text.splitlines(keepends=True) if _NAME.search(line)]


def _name(row: str) -> str:
    match = _NAME.search(row)
    assert match, row
    return match[1]


def unknown_row(walk: Walk, fault: UnknownFault) -> str:
    """Return the row of a fault whose thing is known: of the step's output the line that names it."""
    lines = walk.answer.splitlines()
    return row(walk, fault.text, next((a for a in lines if re.search(fault.thing, a)), ""))


def known_row(walk: Walk) -> str:
    """Return the row of a fault of the lab."""
    fault = faults.get(walk.fault)
    return row(walk, fault.text, named(walk), fault.harmless)


def row(walk: Walk, text: str, shown: str, harmless: str = "") -> str:
    """Return the row of a walk.

    Args:
        walk: what was seen.
        text: what the fault does.
        shown: what the next step printed about it.
        harmless: why nothing needs to be reported of it.
    """
    cells = (
        f"{text} (`{walk.fault}`)",
        "; ".join(dict.fromkeys(walk.check)) or ("nothing" + (f": {harmless}" if harmless else "")),
        f"{walk.verify} (cause: {walk.cause or 'none'})" if walk.red else "nothing",
        f"`{walk.step}`: {shown.strip()}" if walk.red else "",
        "; ".join(dict.fromkeys(walk.apply)) or "nothing: no remedy changes it",
    )
    return f"| {' | '.join(_cell(cell) for cell in cells)} |\n"


def _cell(text: str) -> str:
    text = _INVENTORY.sub("inventory.py", text)
    short = text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
    return short.replace("|", "\\|").replace("\n", " ")
