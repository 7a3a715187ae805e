"""Versions and GPUs that differ between hosts, and libraries that are too old."""

from __future__ import annotations

from typing import Any

import pytest

from remedy.deploys.fleet_versions import FleetVersionsSpec
from remedy.errors import SpecError
from remedy.plan import section_models
from remedy.probe import LoginSession, Package, Software
from remedy.spec import load_spec
from remedy.values import Unknown
from tests.unit.build import record
from tests.unit.deploys.report_bench import (
    SITE,
    finding_of,
    findings_of,
    gpus,
    hosts,
    says,
    software,
)


def test_versions_that_differ_are_told_with_their_hosts() -> None:
    a = software(torch="2.9.0", nvidia_nccl_cu12="2.27.5")
    b = software(torch="2.8.0", nvidia_nccl_cu12="2.27.3")
    torch, nccl = findings_of("fleet_versions", hosts(a, a, b, a))
    assert torch.title == "torch differs between the hosts"
    assert torch.evidence == ("2.9.0: gpu[01-02,04]", "2.8.0: gpu03")
    assert (nccl.label, nccl.evidence[1]) == ("nccl-version-mismatch", "2.27.3: gpu03")
    assert findings_of("fleet_versions", hosts(a, b), FleetVersionsSpec(compare=False)) == []


def test_a_host_without_torch_among_hosts_with_it_is_told_and_an_unknown_one_is_not_compared() -> (
    None
):
    a, none, unknown = software(torch="2.9.0"), software(), {"software": Unknown(reason="late")}
    assert finding_of("fleet_versions", hosts(a, none)).evidence == ("2.9.0: gpu01", "none: gpu02")
    assert findings_of("fleet_versions", hosts(a, unknown, a)) == []
    assert findings_of("fleet_versions", hosts(none, none, unknown)) == []


def test_drivers_and_gpus_are_compared_where_there_are_gpus() -> None:
    old = gpus(driver="550.54.15")
    assert finding_of("fleet_versions", hosts(gpus(), old, {})).label == "driver-mismatch"
    fewer = finding_of("fleet_versions", hosts(gpus(2), gpus(1), gpus(0, driver="")))
    assert fewer.title == "the GPUs differ between the hosts"
    assert fewer.evidence == ("1 x H100: gpu02", "2 x H100: gpu01")


@pytest.mark.parametrize(
    ("version", "is_old"), [("2.7.8", True), ("2.8.4", False), ("2.10.3", False)]
)
def test_an_old_nccl_is_told(version: str, is_old: bool) -> None:
    found = findings_of("fleet_versions", hosts(software(nvidia_nccl_cu12=version)))
    assert bool(found) is is_old


def test_a_minimum_that_is_no_version_is_refused(tmp_path: Any) -> None:
    (tmp_path / "remedy.yaml").write_text("fleet_versions:\n  nccl_minimum: newest\n")
    with pytest.raises(SpecError, match=r"fleet_versions\.nccl_minimum is .*such as \"2.8\""):
        load_spec(tmp_path / "remedy.yaml", section_models())


@pytest.mark.parametrize(
    ("first", "second", "label", "words"),
    [
        (gpus(driver="1.0"), gpus(driver="2.0"), "driver-mismatch", ("driver", "differs")),
        (gpus(2), gpus(1), "rank-mismatch", ("GPUs", "differ ")),
        (software(torch="1"), software(torch="2"), "multi-python", ("torch", "differs")),
        (software(torch_npu="1"), software(torch_npu="2"), "multi-python", ("torch_npu",)),
        (software(paddlepaddle="1"), software(paddlepaddle="2"), "multi-python", ("paddlepaddle",)),
        (
            software(paddlepaddle_gpu="1"),
            software(paddlepaddle_gpu="2"),
            "multi-python",
            ("paddlepaddle_gpu",),
        ),
        (software(mindspore="1"), software(mindspore="2"), "multi-python", ("mindspore",)),
        # It is there on some hosts only.
        (software(paddlepaddle="1"), software(), "multi-python", ("paddlepaddle",)),
        (
            {"software": record(Software, nccl=(("/a", "2.9.1"),))},
            {"software": record(Software)},
            "nccl-version-mismatch",
            ("NCCL", "system"),
        ),
        *(
            (
                software(**{name: "3.1"}),
                software(**{name: "3.2"}),
                "nccl-version-mismatch",
                ("NCCL", "Python"),
            )
            for name in ("nvidia_nccl_cu11", "nvidia_nccl_cu12", "nvidia_nccl_cu13")
        ),
        (
            {"software": record(Software, nccl=(("/a", "2.9.1"),))},
            {"software": record(Software, nccl=(("/a", "2.10.1"),))},
            "nccl-version-mismatch",
            ("NCCL", "system"),
        ),
        (
            {"software": record(Software, cuda=(("/a", "12.1"),))},
            {"software": record(Software, cuda=(("/a", ""),))},
            "driver-mismatch",
            ("CUDA", "torch"),
        ),
    ],
)
def test_each_version_that_differs_is_a_finding_of_its_own_cause(
    first: dict[str, Any], second: dict[str, Any], label: str, words: tuple[str, ...]
) -> None:
    found = findings_of("fleet_versions", hosts(first, second, first))
    (finding,) = [
        f for f in found if f.label == label and words[0] in f.title and words[-1] in f.title
    ]
    says(finding, title=words, evidence=("gpu02", "gpu[01,03]"))
    assert finding.host is None
    assert finding.fix
    assert findings_of("fleet_versions", hosts(first, first), FleetVersionsSpec()) == []
    assert (
        findings_of("fleet_versions", hosts(first, second), FleetVersionsSpec(compare=False)) == []
    )


def test_versions_are_shown_as_they_are() -> None:
    several = software(torch="2.1")
    mixed = {
        "software": record(
            Software, packages=(Package("torch", "2.2", SITE), Package("torch", "2.1", "/x"))
        )
    }
    finding = finding_of("fleet_versions", hosts(several, mixed, software()))
    says(finding, evidence=("2.1 and 2.2: gpu02", "2.1: gpu01", "none: gpu03"))
    kinds = finding_of("fleet_versions", hosts(gpus(2), gpus(1)))
    says(kinds, evidence=("2 x ", "1 x "))
    cuda = {"software": record(Software, cuda=(("/a", ""), ("/b", "12.1")))}
    plain = {"software": record(Software, cuda=(("/a", "12.1"),))}
    says(finding_of("fleet_versions", hosts(cuda, plain)), evidence=("12.1 and no CUDA: gpu01",))


@pytest.mark.parametrize(
    ("version", "is_old"), [("2.7.99", True), ("2.8", False), ("2.8.0", False), ("2.10", False)]
)
def test_an_nccl_that_is_too_old_is_named_with_its_place(version: str, is_old: bool) -> None:
    wheel = {"software": record(Software, packages=(Package("nvidia_nccl_cu11", version, SITE),))}
    system = {"software": record(Software, nccl=((f"/usr/lib/libnccl.so.{version}", version),))}
    for facts, place in (
        (wheel, f"{SITE}: nvidia_nccl_cu11 {version}"),
        (system, f"/usr/lib/libnccl.so.{version}"),
    ):
        found = findings_of("fleet_versions", hosts(facts, facts))
        assert bool(found) is is_old
        if is_old:
            says(found[0], title=("NCCL", "2.8"), evidence=(f"gpu[01-02]: {place}",))
            assert found[0].label == "nccl-version-mismatch"


def with_mpi(*versions: str, mpirun: bool = True) -> dict[str, Any]:
    libraries = tuple((f"/usr/lib/libmpi.so.{version}", version) for version in versions)
    programs = {"mpirun": "/usr/bin/mpirun"} if mpirun else {}
    return {
        "software": record(Software, libmpi=libraries),
        "session": record(LoginSession, programs=programs),
    }


def test_open_mpi_that_is_missing_or_another_on_some_hosts_is_told() -> None:
    good = with_mpi("40.30.4")
    finding = finding_of("fleet_versions", hosts(good, with_mpi("40.10.3"), with_mpi(mpirun=False)))
    assert (finding.title, finding.label) == (
        "Open MPI differs between the hosts",
        "mpi-version-conflict",
    )
    assert set(finding.evidence) == {
        "libmpi 40.30.4: gpu01",
        "libmpi 40.10.3: gpu02",
        "none: gpu03",
    }
    assert findings_of("fleet_versions", hosts(good, good)) == []
    assert findings_of("fleet_versions", hosts(good, with_mpi())) == [], "in a place of its own"
