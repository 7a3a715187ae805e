"""The section ``verify``: how the all-reduce is run and what it has to reach."""

from __future__ import annotations

import re
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from remedy.spec.section import SpecSection

LauncherName = Literal["ssh", "slurm"]
EngineName = Literal["torch", "nccl-tests", "mpi", "paddle", "mindspore"]

# torchrun's own port and its neighbours: below the kernel's default range for outgoing connections (so that
# none of those can hold it by chance), and together with 29500 one rule in a firewall.
PORTS = range(29500, 29564)


def _busbw(value: object) -> object:
    """Return a bandwidth as it was written: a number above 0, or a text such as "60%"."""
    if value is None:
        return None
    text = str(value).replace(" ", "")
    if isinstance(value, bool) or not re.fullmatch(r"\d+(\.\d+)?%?", text):
        raise ValueError
    number = float(text.rstrip("%"))
    if number <= 0 or (text.endswith("%") and number > 100):
        raise ValueError
    return text if text.endswith("%") else number


def _divide(value: object) -> object:
    """Return what the fleet is divided by: a number of hosts, or a text that names groups."""
    if value is None:
        return None
    text = str(value).strip()
    is_number = text.isdecimal()
    if isinstance(value, bool) or not isinstance(value, int | str) or not text.strip("-"):
        raise ValueError
    if text.startswith("-") or (is_number and int(text) < 2):
        raise ValueError
    return int(text) if is_number else text


# What is written in the file, for editors: the schema of a type says nothing of its validator.
Bandwidth: TypeAlias = Annotated[
    float | str | None,
    BeforeValidator(_busbw),
    WithJsonSchema(
        {
            "description": 'GB/s above 0, such as 40, or a share up to 100%, such as "60%", or null',
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0},
                {"type": "string", "pattern": r"^ *\d+(\.\d+)? *%? *$"},
                {"type": "null"},
            ],
        },
        mode="validation",
    ),
]
Division: TypeAlias = Annotated[
    int | str | None,
    BeforeValidator(_divide),
    WithJsonSchema(
        {
            "description": 'groups of the inventory, such as "rack*", or a number of hosts from 2, or null',
            "anyOf": [
                {"type": "integer", "minimum": 2},
                {"type": "string", "pattern": r"^ *[^\s-]"},
                {"type": "null"},
            ],
        },
        mode="validation",
    ),
]
# An element of the all-reduce has four bytes.
Size: TypeAlias = Annotated[int, Field(ge=4)]


def _some(sizes: tuple[int, ...]) -> tuple[int, ...]:
    if not sizes:
        raise ValueError
    return sizes


# Its own minimum would count only elements that are right, and so be named beside those that are wrong.
Sizes: TypeAlias = Annotated[
    tuple[Size, ...], AfterValidator(_some), Field(json_schema_extra={"minItems": 1})
]


class VerifySpec(SpecSection):
    """How the proof by all-reduce is made, and what it has to reach.

    Args:
        deadline: seconds for the whole of it on each host; null scales with the number of hosts.
        ranks_per_host: "auto" is one a GPU, and one where there is none.
        engine: what runs the all-reduce: "torch" (torchrun), "mpi" (Open MPI's mpirun),
            "nccl-tests" (all_reduce_perf, through mpirun), "paddle" or "mindspore" (their own launchers).
        launcher: what starts the ranks on the hosts: "ssh", or "slurm": srun, inside an allocation.
        backend: of torch: "auto" is NCCL where every host has GPUs, else gloo.
        port: the rendezvous port; null draws one from 29500 to 29563.
        sizes: bytes to measure; null fits them to the device.
        min_busbw: what the largest size must reach: GB/s, or as "80%" a share of what the network cards and
            links can carry; null only reports.
        divide: the all-reduce in groups, side by side, and then across them: groups of the inventory, as
            "rack*", or at most so many neighbours each; null is one all-reduce of all hosts.
        across: where it is divided, who sums across the groups: "every" host, with those at the same place of
            the other groups, or "one" of each group.
        reach: whether every pair of hosts is tried before torch is started; if not, that is done only where
            the all-reduce fails.
        isolate: whether the culprits are looked for by more tests when the all-reduce fails.
        isolate_seconds: how long that may take.
        python: interpreter with torch (or what the engine needs) on the hosts; null looks for one.
        all_reduce_perf: of nccl-tests, on the hosts; null looks for it.
    """

    deadline: float | None = Field(default=None, ge=10, le=3600)
    ranks_per_host: Literal["auto"] | Annotated[int, Field(ge=1)] = "auto"
    engine: EngineName = "torch"
    launcher: LauncherName = "ssh"
    backend: Literal["auto", "nccl", "gloo"] = "auto"
    port: int | None = Field(default=None, ge=1, le=65535)
    sizes: Sizes | None = None
    min_busbw: Bandwidth = None
    divide: Division = None
    across: Literal["every", "one"] = "every"
    reach: bool = True
    isolate: bool = True
    isolate_seconds: float = Field(default=600, ge=10)
    python: str | None = None
    all_reduce_perf: str | None = None

    @model_validator(mode="after")
    def _fits_the_engine(self) -> VerifySpec:
        if self.backend != "auto" and self.engine != "torch":
            raise ValueError(
                f"backend is {self.backend}, and only the engine torch has a choice of them"
            )
        return self
