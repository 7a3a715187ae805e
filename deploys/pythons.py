"""Several Pythons: more than one interpreter or environment on a host, of which a job may get the wrong one.

Finds: `python` and `torchrun` that belong to different installations; a framework that is installed twice in
different versions, so that which one runs depends on PATH; NCCL wheels of two CUDA versions in one
environment, which overwrite each other's libnccl. The errors then name anything but the cause: a missing
module, an undefined symbol of NCCL, an invalid usage.

How it is measured: the PATH that a command over ssh gets, in its order, and the metadata directories of the
packages beside each interpreter. No interpreter is started. What decides in a job is the PATH of that job.
"""

from __future__ import annotations

from collections.abc import Iterator

from remedy.plan import Assessment, Finder, Finding, Fleet
from remedy.plan.legacy import old_remedy
from remedy.probe import HostState, Session, Software
from remedy.spec import SpecSection

NAME = "pythons"
LABEL = "multi-python"
_finding = Finder(NAME)
FRAMEWORKS = ("torch", "paddlepaddle", "paddlepaddle_gpu", "mindspore")
NCCL_WHEELS = ("nvidia_nccl_cu11", "nvidia_nccl_cu12", "nvidia_nccl_cu13")


class PythonsSpec(SpecSection):
    """``report``: whether several Pythons on a host are reported."""

    report: bool = True


def assess(_fleet: Fleet, host: HostState, spec: PythonsSpec) -> Assessment:
    """Look for more than one answer to the question which Python runs."""
    if not spec.report or not isinstance(host.software, Software):
        return Assessment()
    findings = [
        *_first_on_path(host, host.software),
        *_twice(host, host.software),
        *_two_nccls(host, host.software),
    ]
    return Assessment(tuple(findings))


def on_path(host: HostState, software: Software) -> dict[str, str]:
    """Return the first `python`, `python3` and `torchrun` of the PATH, those that are there."""
    if not isinstance(host.session, Session):
        return {}
    directories = host.session.path.split(":")
    first: dict[str, str] = {}
    for path in software.interpreters:
        directory, _, name = path.rpartition("/")
        if directory in directories:
            first.setdefault(name, path)
    return first


def _first_on_path(host: HostState, software: Software) -> Iterator[Finding]:
    first = on_path(host, software)
    places = {path.rpartition("/")[0] for path in first.values()}
    if len(places) > 1:
        yield _finding.report(
            host,
            f"{', '.join(sorted(first))} on the PATH belong to different installations",
            LABEL,
            tuple(f"{name}: {path}" for name, path in sorted(first.items())),
            "Start jobs by the absolute path of the interpreter, such as /opt/venv/bin/python -m "
            "torch.distributed.run, on every host.",
        )


def _twice(host: HostState, software: Software) -> Iterator[Finding]:
    for name in FRAMEWORKS:
        found = software.versions(name)
        if len({package.version for package in found}) > 1:
            yield _finding.report(
                host,
                f"{name} is installed in {len({p.version for p in found})} versions",
                LABEL,
                tuple(f"{package.site}: {name} {package.version}" for package in found),
                "Remove all but one, or start jobs by the absolute path of the interpreter that is meant.",
            )


def _two_nccls(host: HostState, software: Software) -> Iterator[Finding]:
    by_site: dict[str, list[str]] = {}
    for package in software.versions(*NCCL_WHEELS):
        by_site.setdefault(package.site, []).append(f"{package.name} {package.version}")
    for site, wheels in by_site.items():
        if len(wheels) > 1:
            yield _finding.report(
                host,
                "NCCL wheels of two CUDA versions overwrite each other in one environment",
                LABEL,
                (f"{site}: {', '.join(wheels)}",),
                "Make the environment anew with one framework in it: both wheels write nvidia/nccl/lib.",
            )


old_remedy(
    name=NAME,
    title="Several Pythons",
    text=__doc__,
    cures=(),
    finds=(LABEL,),
    spec=PythonsSpec,
    assess=assess,
    order=90,
)
