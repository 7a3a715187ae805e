"""Variables in files: which files may be changed, and which line of them decides."""

from __future__ import annotations

import pytest

from remedy.deploys._settings import Target, settings, switched_off, target_for, targets
from remedy.edit.assignments import DISABLED, Dialect
from remedy.probe import File, Mention
from remedy.values import Unknown
from tests.unit.deploys.environment_bench import ENV, HOME, MCA, NCCL, PROFILE, UCX, host

ETC = (Target(ENV, Dialect.PAM), Target(NCCL, Dialect.NCCL))


def test_files_that_can_be_changed_are_those_that_somebody_reads_here() -> None:
    assert targets(host(), user_files=True) == ETC
    full = host(files={MCA: b"", UCX: b"", HOME: b""})
    assert [t.path for t in targets(full, user_files=False)] == [ENV, NCCL, MCA, UCX]
    assert [(t.path, t.dialect) for t in targets(full, user_files=True)][-1] == (HOME, Dialect.NCCL)
    assert [t.prefix for t in targets(full, user_files=False)] == ["", "", "OMPI_MCA_", ""]
    assert [t.equals for t in targets(full, user_files=False)] == ["=", "=", " = ", "="]


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("NCCL_DEBUG", NCCL), ("OMPI_MCA_btl", MCA), ("UCX_TLS", UCX), ("GLOO_SOCKET_IFNAME", ENV),
        ("TORCH_NCCL_X", ENV),
    ],
)  # fmt: skip
def test_a_variable_goes_where_most_ways_of_starting_a_job_see_it(name: str, path: str) -> None:
    full = targets(host(files={MCA: b"", UCX: b"", HOME: b""}), user_files=True)
    assert target_for(name, full).path == path
    assert target_for(name, ETC).path == (NCCL if name.startswith("NCCL_") else ENV)


def test_every_place_that_sets_a_variable_is_listed_with_its_line() -> None:
    mentions = (
        Mention(path="/root/.bashrc", line=3, text="export NCCL_ALGO=Ring GLOO_X=1"),
        Mention(path=PROFILE, line=1, text="export NCCL_ALGO=Tree"),
    )
    files = {ENV: b"A=1\nA=2\n", NCCL: b"B=1\nB=2\n", MCA: b"btl = tcp\n", HOME: b"C=1\n"}
    state = host(files=files, mentions=mentions)
    found = settings(state, targets(state, user_files=False))
    assert [(s.path, s.line, s.name, s.value, s.target is not None) for s in found] == [
        (ENV, 2, "A", "2", True),
        (NCCL, 1, "B", "1", True),
        (MCA, 1, "OMPI_MCA_btl", "tcp", True),
        (HOME, 1, "C", "1", False),
        ("/root/.bashrc", 3, "NCCL_ALGO", "Ring", False),
        ("/root/.bashrc", 3, "GLOO_X", "1", False),
    ]
    assert found[0].shown == f"{ENV}:2: A=2"
    mine = settings(state, targets(state, user_files=True))
    assert [(s.path, s.target is not None) for s in mine if s.name == "C"] == [(HOME, True)]
    blind = state.model_copy(
        update={"mentions": Unknown(reason="x"), "session": Unknown(reason="x")}
    )
    assert [s.name for s in settings(blind, ETC)] == ["A", "B"]


def test_what_was_switched_off_is_known_by_its_whole_name() -> None:
    state = host(files={MCA: DISABLED + b"btl = tcp\n", ENV: DISABLED + b"A=1\nB=2\n"})
    assert list(switched_off(state, targets(state, user_files=False))) == [
        ("A", "1"),
        ("OMPI_MCA_btl", "tcp"),
    ]


def test_a_file_that_does_not_exist_sets_nothing() -> None:
    gone = File(path=ENV, real_path=ENV, exists=False, content=b"A=1\n")
    state = host()
    state = state.model_copy(update={"files": {**state.files, ENV: gone}})
    assert settings(state, ETC) == ()
