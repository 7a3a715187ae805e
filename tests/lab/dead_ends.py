"""Walking into a fault and out again by what remedy says: check, verify, and the step that verify names."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.lab.site import Site
from tests.lab.unknown_faults import UnknownFault

LONGEST = 300
HEAD = """\
# Faults, and what is said of them

Each row is written by `tests/lab/dead_ends.py` from a walk over three lab hosts, one of them broken.
`REMEDY_FAULTS_PAGE=docs/faults.md pytest tests/lab/test_dead_ends.py -m full` writes all of them anew.
The faults are some of those of `tests/lab/unknown_faults.py`, for which no remedy was written. Those of
`remedy lab break --list` have tests beside their remedies, and no row here yet.

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
    found = [finding["title"] for finding in host["findings"] if finding["kind"] != "report"]
    changes = [
        c["title"] for c in (check["plan"] or {"changes": []})["changes"] if c["host"] == victim
    ]
    document = json.loads(_output(site, "verify", "--json", *limit)[0])
    verdict, explanation = document["verdict"], document["explanation"]
    step = _step(document, victim)
    answer = run(site, step) if step else ""
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


def page(walks: Iterable[Walk], faults: Mapping[str, UnknownFault]) -> str:
    """Write the walks as a page."""
    return HEAD + "".join(_row(walk, faults[walk.fault]) for walk in walks)


def _row(walk: Walk, fault: UnknownFault) -> str:
    seen = next((line for line in walk.answer.splitlines() if re.search(fault.thing, line)), "")
    cells = (
        f"{fault.text} (`{walk.fault}`)",
        "; ".join(dict.fromkeys(walk.check)) or "nothing",
        f"{walk.verify} (cause: {walk.cause or 'none'})" if walk.red else "nothing",
        f"`{walk.step}`: {seen.strip()}",
        "; ".join(walk.apply) or "nothing: no remedy changes it",
    )
    return f"| {' | '.join(_cell(cell) for cell in cells)} |\n"


def _cell(text: str) -> str:
    short = text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
    return short.replace("|", "\\|").replace("\n", " ")
