"""Hosts whose resolver gives these answers, and what is planned for them."""

from __future__ import annotations

from collections.abc import Mapping

from remedy.deploys.resolver import ResolverSpec
from remedy.plan import FileAction, FindingKind, Fleet, Plan, make_plan
from remedy.probe import File, Names
from tests.unit.build import WHEN, fleet, host_state, with_section

HOSTS, NSSWITCH = "/etc/hosts", "/etc/nsswitch.conf"
LINES = b"127.0.0.1 localhost\n10.0.0.1 a\n10.0.0.2 b\n"
RIGHT = {"a": ("10.0.0.1",), "b": ("10.0.0.2",)}


def plan_of(found: Fleet, only: str | None = None) -> Plan:
    return make_plan(found, WHEN, only=only)


def two(
    answers: Mapping[str, tuple[str, ...]],
    *,
    hosts: bytes = LINES,
    order: str = "files dns",
    user: str = "",
    nsswitch: File | None = None,
    hosts_mode: int = 0o644,
    settings: ResolverSpec | None = None,
) -> Fleet:
    """Return a fleet in which the resolver of a gives these answers."""
    text = f"passwd: files\nhosts: {order}\n".encode()
    file = nsswitch or File(path=NSSWITCH, real_path=NSSWITCH, exists=True, content=text)
    closed = File(path=HOSTS, real_path=HOSTS, exists=True, content=hosts, mode=hosts_mode)
    state = host_state("a", "10.0.0.1", files={NSSWITCH: file, HOSTS: closed})
    names = Names(
        local=answers.get("a", ()),
        peers={**RIGHT, **answers},
        order=tuple(order.split()),
        user=user,
    )
    spec = with_section("resolver", settings or ResolverSpec())
    other = host_state("b", "10.0.0.2", hosts=LINES, peers=RIGHT)
    return fleet(state.model_copy(update={"names": names}), other, spec=spec)


def of_a(plan: Plan, *kinds: FindingKind) -> list[tuple[str, str]]:
    """Return label and title of what was found on a about names."""
    return [
        (f.label, f.title)
        for f in plan.findings
        if f.host == "a" and f.kind in kinds and f.remedy in ("hosts_file", "resolver")
    ]


def written(plan: Plan, path: str) -> bytes | None:
    for change in plan.for_host("a"):
        if isinstance(change.action, FileAction) and change.action.path == path:
            assert change.action.after is not None
            return plan.contents[change.action.after]
    return None
