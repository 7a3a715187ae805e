"""Remedies under plain pyinfra: ``pyinfra INVENTORY remedy.deploys.hostname.hostname``.

A remedy's deploy probes the hosts of the inventory, decides for the current host, and carries the changes to it
in one operation and one command. ``remedy apply`` does without all this: see ``carrier``.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from pyinfra import logger
from pyinfra.api.command import FunctionCommand, StringCommand
from pyinfra.api.deploy import deploy
from pyinfra.api.facts import FactBase
from pyinfra.api.operation import operation
from pyinfra.context import host

from remedy.apply.job import Job
from remedy.apply.script import render_changes, render_confirm
from remedy.errors import ProbeError

if TYPE_CHECKING:
    from remedy.plan import Fleet
    from remedy.probe import HostState


@operation()
def carry(
    command: StringCommand, text: str, confirmation: str = ""
) -> Generator[StringCommand | FunctionCommand, None, None]:
    """Run ``command`` with ``text`` on its standard input: one materialised change set.

    Args:
        command: what takes the text.
        text: the changes.
        confirmation: what confirms those that are guarded, over a connection made after them; "" for none.
    """
    yield StringCommand(command, _stdin=text)
    if confirmation:
        yield FunctionCommand(_come_anew, (), {})
        yield StringCommand(command, _stdin=confirmation)


def _come_anew() -> None:
    """Close the connection to the current host, and open another one."""
    client = getattr(host.connector, "client", None)
    host.disconnect()
    if client is not None:
        client.close()
        setattr(host.connector, "client", None)  # noqa: B010 - a connector of ssh has one
    host.connect(raise_exceptions=True)


class HostProbe(FactBase[str]):
    """The probe as a pyinfra fact: one command, its raw answer."""

    def command(self, script: str) -> str:
        """Return the command: the probe's text itself."""
        return script

    def process(self, output: list[str]) -> str:
        """Return the raw answer."""
        return "\n".join(output)


def deploy_of(remedy: str, title: str) -> Callable[..., object]:
    """Return the deploy of pyinfra that carries one remedy out on the current host."""

    def carried() -> None:
        carry_out(remedy)

    return deploy(title)(carried)


def carry_out(remedy: str) -> None:
    """Bring the current host in order as far as one remedy is concerned.

    What cannot be changed is logged as a warning with the reason, as pyinfra's own operations do.
    """
    from remedy.apply.start import new_run_id, origin
    from remedy.plan import make_plan

    # pyinfra prepares all hosts at once: the first probes for all of them.
    with _probing:
        fleet = _fleet(host.inventory)
    if host.name in fleet.missing:
        reason = f"{remedy}: the probe failed: {fleet.missing[host.name]}"
        carry(command=StringCommand("false"), text="", name=reason)
        return
    if fleet.spec.approval.required:
        reason = f"{remedy}: approvals are required (approval.required): remedy apply --plan"
        carry(command=StringCommand("false"), text="", name=reason)
        return
    plan = make_plan(fleet, origin(), only=remedy)
    for finding in plan.blocked(host.name):
        logger.warning("%s%s %s", host.print_prefix, finding.title, finding.fix)
    changes = plan.for_host(host.name)
    if not changes:
        host.noop(f"{remedy}: nothing to change")
        return
    job = Job(run=new_run_id(), nonce=secrets.token_hex(8), by=plan.author)
    # Under pyinfra the exit status is all that is looked at.
    text = "STRICT=1\n" + render_changes(job, changes, plan.blobs)
    confirmation = ""
    if any(change.guarded for change in changes):
        confirmation = f"STRICT=1\n{render_confirm(job)}"
    what = "; ".join(change.title for change in changes)
    carry(
        command=StringCommand("sh", "-s"),
        text=text,
        confirmation=confirmation,
        name=f"{remedy}: {what}",
    )


_probing = Lock()


@cache
def _fleet(source: Any) -> Fleet:
    """Probe every host of a pyinfra inventory, once a run of pyinfra."""
    from remedy.apply.start import probe_request
    from remedy.inventory import from_source
    from remedy.plan import Fleet, section_models
    from remedy.probe import parse_probe, render_probe
    from remedy.spec import FILE_NAME, load_spec

    inventory = from_source(Path("inventory.py"), source)
    path = Path(FILE_NAME)
    spec = load_spec(path if path.exists() else None, section_models())
    states: dict[str, HostState] = {}
    missing: dict[str, str] = {}
    for known in source.get_active_hosts():
        request = probe_request(inventory, spec)
        try:
            answer = known.get_fact(HostProbe, render_probe(request)) or ""
            states[known.name] = parse_probe(known.name, answer, request)
        except ProbeError as error:
            missing[known.name] = error.message
    return Fleet(inventory, states, spec, missing)
