"""The engine ``mpi``: Open MPI's mpirun over all hosts, and ranks that call libmpi through ctypes.

It travels to the hosts: standard library only, Python >= 3.8. What has to be installed there is Open MPI's
run time alone (Debian's ``openmpi-bin``): no compiler, no headers, no mpi4py. The names of MPI's constants are
Open MPI's own (ompi/include/mpi.h.in, ``OMPI_PREDEFINED_GLOBAL``), the same in its versions 1.7 to 5.
"""

from __future__ import annotations

import ctypes
import os
from array import array
from typing import Any

from remedy.verify.onhost.engines import openmpi
from remedy.verify.onhost.rank.group import WAVE, Buffer, Group
from remedy.verify.onhost.rank.rank import Rank, die_with_parent, read_config, redirect
from remedy.verify.onhost.rank.run import run

WORKER = "remedy.verify.onhost.engines.mpi"
LOGS = "logs/{rank}.log"
_IN_PLACE = ctypes.c_void_p(1)  # mpi.h: MPI_IN_PLACE


def unfit(config: dict[str, Any]) -> tuple[str, str] | None:  # noqa: ARG001  (as every engine's)
    """Find out why this host cannot take part, as (how, detail)."""
    lacking = openmpi.lacking()
    if lacking:
        return "no-engine", lacking
    try:
        openmpi.library()
    except OSError as error:
        return "no-engine", f"Open MPI's library cannot be loaded ({error})"
    return None


def command(config: dict[str, Any], directory: str) -> tuple[list[str], dict[str, str]]:
    """Run mpirun on the first host; on each of the others, what runs Open MPI's daemon there."""
    return openmpi.command(config, directory)


class MpiGroup(Group):
    """``MPI_COMM_WORLD``, through libmpi."""

    backend = "mpi"

    def __init__(self) -> None:
        self.lib = openmpi.library()
        self.world_comm = self._constant("ompi_mpi_comm_world")
        self.sum = self._constant("ompi_mpi_op_sum")
        self.int64 = self._constant("ompi_mpi_int64_t")
        self.float32 = self._constant("ompi_mpi_float")
        self.byte = self._constant("ompi_mpi_byte")
        self._call("MPI_Init", None, None)
        rank, world = ctypes.c_int(), ctypes.c_int()
        self._call("MPI_Comm_rank", self.world_comm, ctypes.byref(rank))
        self._call("MPI_Comm_size", self.world_comm, ctypes.byref(world))
        self.rank, self.world = rank.value, world.value
        self.software = self._version()

    def _constant(self, name: str) -> ctypes.c_void_p:
        return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(self.lib, name)))

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self.lib, name)(*arguments)
        if code:
            raise RuntimeError(f"{name} returned the error {code}")

    def _version(self) -> str:
        """ "Open MPI 4.1.4", from the longer text of the library."""
        text, length = ctypes.create_string_buffer(8192), ctypes.c_int()
        self._call("MPI_Get_library_version", text, ctypes.byref(length))
        first = text.value.decode("ascii", "replace").partition(",")[0]
        return " ".join(first.replace(" v", " ").split())

    def sum_ints(self, values: list[int]) -> list[int]:
        """Sum int64 values in place."""
        numbers = array("q", values)
        self.reduce(_IN_PLACE, numbers, self.int64)
        return numbers.tolist()

    def reduce(self, source: Any, target: array[Any], kind: ctypes.c_void_p) -> None:
        """Call MPI_Allreduce into ``target``; ``source`` is an address."""
        address, count = target.buffer_info()
        self._call(
            "MPI_Allreduce",
            source,
            ctypes.c_void_p(address),
            ctypes.c_int(count),
            kind,
            self.sum,
            self.world_comm,
        )

    def gather(self, data: bytes) -> list[bytes]:
        """Call MPI_Allgather of bytes."""
        size = len(data)
        gathered = ctypes.create_string_buffer(size * self.world)
        count = ctypes.c_int(size)
        self._call(
            "MPI_Allgather",
            ctypes.c_char_p(data),
            count,
            self.byte,
            gathered,
            count,
            self.byte,
            self.world_comm,
        )
        return [gathered.raw[at : at + size] for at in range(0, size * self.world, size)]

    def buffer(self, count: int) -> Buffer:
        """Make two arrays of float32."""
        return MpiFloats(self, count)

    def leave(self) -> None:
        """Call MPI_Finalize, which waits for the others."""
        self._call("MPI_Finalize")


class MpiFloats(Buffer):
    """Float32 values in an array, and a second one for sums that keep their input."""

    def __init__(self, group: MpiGroup, count: int) -> None:
        self.group = group
        self.values = array("f", bytes(4 * count))
        self.result = array("f", bytes(4 * count))

    def _wave(self, base: int, step: int) -> array[float]:
        count = len(self.values)
        wave = array("f", [base + place * step for place in range(WAVE)])
        return (wave * (count // WAVE + 1))[:count]

    def fill(self, base: int, step: int) -> None:
        """Overwrite the values where they are."""
        self.values[:] = self._wave(base, step)

    def all_reduce(self) -> None:
        """Sum in place."""
        self.group.reduce(_IN_PLACE, self.values, self.group.float32)

    def all_reduce_copy(self) -> None:
        """Sum into the second array."""
        source = ctypes.c_void_p(self.values.buffer_info()[0])
        self.group.reduce(source, self.result, self.group.float32)

    def wrong(self, base: int, step: int) -> int:
        """Count; comparing the bytes first, because they are right as a rule."""
        expected = self._wave(base, step)
        if self.values.tobytes() == expected.tobytes():
            return 0
        return sum(value != right for value, right in zip(self.values, expected))  # noqa: B905  (Python 3.8)


def main() -> None:
    """Be a rank."""
    config = read_config(os.environ[openmpi.FOLDER])
    die_with_parent()
    rank = Rank(config, int(os.environ["OMPI_COMM_WORLD_LOCAL_RANK"]))
    redirect(config, rank.local_rank)
    os.environ.update(openmpi.interface("btl", config["address"]))
    run(rank, MpiGroup)
