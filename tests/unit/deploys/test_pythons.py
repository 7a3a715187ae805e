"""Several Pythons on one host: which of them are taken, and what is installed twice."""

from __future__ import annotations

from typing import Any

from remedy.probe import LoginSession, Package, Software
from tests.unit.build import record
from tests.unit.deploys.report_bench import SITE, finding_of, findings_of, hosts, says


def pythons(interpreters: tuple[str, ...], *packages: Package) -> dict[str, Any]:
    return {
        "session": record(LoginSession, path="/opt/venv/bin:/usr/local/bin:/usr/bin"),
        "software": record(Software, interpreters=interpreters, packages=packages),
    }


def test_python_and_torchrun_of_two_installations() -> None:
    these = hosts(pythons(("/opt/venv/bin/torchrun", "/usr/bin/python3", "/elsewhere/bin/python")))
    finding = finding_of("pythons", these)
    assert finding.evidence == ("python3: /usr/bin/python3", "torchrun: /opt/venv/bin/torchrun")
    whole = (
        "/opt/venv/bin/python3",
        "/opt/venv/bin/python",
        "/opt/venv/bin/torchrun",
        "/usr/bin/python3",
    )
    assert findings_of("pythons", hosts(pythons(whole))) == []


def test_torch_twice_and_nccl_wheels_that_overwrite_each_other() -> None:
    other = "/usr/local/lib/python3.10/dist-packages"
    twice = pythons((), Package("torch", "2.9.0", SITE), Package("torch", "2.1.0", other))
    assert finding_of("pythons", hosts(twice)).title == "torch is installed in 2 versions"
    same = pythons((), Package("torch", "2.9.0", SITE), Package("torch", "2.9.0", other))
    assert findings_of("pythons", hosts(same)) == []
    wheels = pythons(
        (), Package("nvidia_nccl_cu12", "2.27.5", SITE), Package("nvidia_nccl_cu13", "2.28.3", SITE)
    )
    assert finding_of("pythons", hosts(wheels)).label == "multi-python"


def test_several_pythons_are_named_with_their_paths() -> None:
    finding = finding_of("pythons", hosts(pythons(("/opt/venv/bin/torchrun", "/usr/bin/python3"))))
    assert finding.label == "multi-python"
    says(finding, title=("python3, torchrun",), fix=("absolute path",))
    twice = finding_of(
        "pythons",
        hosts(pythons((), Package("mindspore", "1", SITE), Package("mindspore", "2", "/x"))),
    )
    says(
        twice,
        title=("mindspore", "2 versions"),
        evidence=(f"{SITE}: mindspore 1", "/x: mindspore 2"),
    )
    for name in ("torch", "paddlepaddle", "paddlepaddle_gpu", "mindspore"):
        assert findings_of(
            "pythons", hosts(pythons((), Package(name, "1", SITE), Package(name, "2", "/x")))
        )
    wheels = finding_of(
        "pythons",
        hosts(
            pythons(
                (), Package("nvidia_nccl_cu11", "1", SITE), Package("nvidia_nccl_cu13", "2", SITE)
            )
        ),
    )
    says(
        wheels,
        title=("NCCL",),
        evidence=(f"{SITE}: nvidia_nccl_cu11 1, nvidia_nccl_cu13 2",),
        fix=("environment",),
    )
    apart = pythons(
        (), Package("nvidia_nccl_cu11", "1", SITE), Package("nvidia_nccl_cu13", "2", "/x")
    )
    assert findings_of("pythons", hosts(apart)) == []
