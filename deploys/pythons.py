"""Several Pythons: more than one interpreter or environment on a host, of which a job may get the wrong one.

Finds: `python` and `torchrun` that belong to different installations; a framework that is installed twice in
different versions, so that which one runs depends on PATH; NCCL wheels of two CUDA versions in one
environment, which overwrite each other's libnccl. The errors then name anything but the cause: a missing
module, an undefined symbol of NCCL, an invalid usage.

How it is measured: the PATH that a command over ssh gets, in its order, and the metadata directories of the
packages beside each interpreter. No interpreter is started. What decides in a job is the PATH of that job.
"""

from __future__ import annotations

from remedy.plan import Workbench, remedy
from remedy.probe import HostState, LoginSession, Software
from remedy.spec import SpecSection

FRAMEWORKS = ("torch", "paddlepaddle", "paddlepaddle_gpu", "mindspore")
NCCL_WHEELS = ("nvidia_nccl_cu11", "nvidia_nccl_cu12", "nvidia_nccl_cu13")


class PythonsSpec(SpecSection):
    """``report``: whether several Pythons on a host are reported."""

    report: bool = True


@remedy("Several Pythons", PythonsSpec, finds=("multi-python",), order=90)
def pythons(bench: Workbench[PythonsSpec]) -> None:
    """Look for more than one answer to the question which Python runs."""
    if not bench.settings.report:
        return
    software = bench.known(bench.host.software)
    first = on_path(bench.host, software)
    if len({path.rpartition("/")[0] for path in first.values()}) > 1:
        bench.report(
            f"{', '.join(sorted(first))} on the PATH belong to different installations",
            (f"{name}: {path}" for name, path in sorted(first.items())),
            "Start jobs by the absolute path of the interpreter, such as /opt/venv/bin/python -m "
            "torch.distributed.run, on every host.",
        )
    for name in FRAMEWORKS:
        packages = software.versions(name)
        number = len({package.version for package in packages})
        if number > 1:
            bench.report(
                f"{name} is installed in {number} versions",
                (f"{package.site}: {name} {package.version}" for package in packages),
                "Remove all but one, or start jobs by the absolute path of the right interpreter.",
            )
    wheels_by_site: dict[str, list[str]] = {}
    for package in software.versions(*NCCL_WHEELS):
        wheels_by_site.setdefault(package.site, []).append(f"{package.name} {package.version}")
    for site, wheels in wheels_by_site.items():
        if len(wheels) > 1:
            bench.report(
                "NCCL wheels of two CUDA versions overwrite each other in one environment",
                f"{site}: {', '.join(wheels)}",
                "Make a new environment with one framework in it: both wheels write nvidia/nccl/lib.",
            )


def on_path(host: HostState, software: Software) -> dict[str, str]:
    """Return the first `python`, `python3` and `torchrun` of the PATH, those that are there."""
    if not isinstance(host.session, LoginSession):
        return {}
    directories = host.session.path.split(":")
    first: dict[str, str] = {}
    for path in software.interpreters:
        directory, _, name = path.rpartition("/")
        if directory in directories:
            first.setdefault(name, path)
    return first
