"""Python interpreters and the versions of what trains, read from metadata: nothing is imported or started."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from remedy.probe.frames import Sections
from remedy.values import Record

_VERSION_FILE = re.compile(r"(/.+)/torch/version\.py:cuda[^=]*= *(?:'([^']*)'|\"([^\"]*)\"|None)")
_NCCL = re.compile(r"/libnccl\.so\.(\d+\.\d+\.\d+)\Z")
# That of a driver has its version; others are called libcuda.so.1, or libcuda.so.1.1 (Tegra).
_LIBCUDA = re.compile(r"/libcuda\.so\.(?:(\d{3,}\.\d+(?:\.\d+)?)|1(?:\.1)?)\Z")
_LIBMPI = re.compile(r"/libmpi\.so\.(\d+\.\d+\.\d+)\Z")


class Package(NamedTuple):
    """An installed Python distribution: its name as in its metadata, its version, the directory it is in."""

    name: str
    version: str
    site: str


class Software(Record):
    """The software to train with.

    ``interpreters`` are the Pythons and torchruns of the PATH in its order, then those of the request.
    ``cuda`` maps a package directory to the CUDA version that its torch was built for, "" for none. ``nccl``
    maps the path of a system library to its version; so do ``libcuda``, whose version is the driver's that it
    came with ("" where its name does not say), and ``libmpi`` of Open MPI. ``searched`` are the folders of the
    loader in which libraries were looked for, ``aside`` those in which they were not since looking may mount
    something, and ``dangling`` links that lead nowhere; all three are empty on a host without an NVIDIA driver.
    """

    interpreters: tuple[str, ...]
    packages: tuple[Package, ...]
    cuda: tuple[tuple[str, str], ...]
    nccl: tuple[tuple[str, str], ...]
    libcuda: tuple[tuple[str, str], ...] = ()
    libmpi: tuple[tuple[str, str], ...] = ()
    searched: tuple[str, ...] = ()
    aside: tuple[str, ...] = ()
    dangling: tuple[str, ...] = ()

    def versions(self, *names: str) -> tuple[Package, ...]:
        """Return the installed distributions of these names, in the order of the directories."""
        return tuple(package for package in self.packages if package.name in names)


def parse_software(sections: Sections) -> Software:
    """Read section ``software``: a word and a path a line, and lines of torch/version.py."""
    kinds = ("interpreter", "package", "conda", "library", "folder", "aside", "dangling")
    by_kind: dict[str, list[str]] = {kind: [] for kind in kinds}
    cuda = []
    for line in sections.text("software").splitlines():
        if match := _VERSION_FILE.fullmatch(line):
            cuda.append((match[1], match[2] or match[3] or ""))
            continue
        word, _, path = line.partition(" ")
        if word in by_kind:
            by_kind[word].append(path)
    return Software(
        interpreters=tuple(dict.fromkeys(by_kind["interpreter"])),
        packages=tuple(dict.fromkeys((*_installed(by_kind["package"]), *_conda(by_kind["conda"])))),
        cuda=tuple(cuda),
        nccl=_libraries(by_kind["library"], _NCCL),
        libcuda=_libraries(by_kind["library"], _LIBCUDA),
        libmpi=_libraries(by_kind["library"], _LIBMPI),
        searched=tuple(by_kind["folder"]),
        aside=tuple(dict.fromkeys(by_kind["aside"])),
        dangling=tuple(by_kind["dangling"]),
    )


def _libraries(paths: Iterable[str], name: re.Pattern[str]) -> tuple[tuple[str, str], ...]:
    """Return the libraries of one name, each with the version in its name, "" for none."""
    matches = ((path, name.search(path)) for path in dict.fromkeys(paths))
    return tuple((path, match[1] or "") for path, match in matches if match)


def _installed(paths: Iterable[str]) -> Iterable[Package]:
    """Yield the distributions of directories such as ``.../site-packages/torch-2.9.0+cu128.dist-info``."""
    for path in paths:
        site, _, name = path.rpartition("/")
        stem = re.sub(r"\.(dist|egg)-info$", "", name)
        distribution, _, version = stem.partition("-")
        yield Package(distribution, version.partition("-")[0], site)


def _conda(paths: Iterable[str]) -> Iterable[Package]:
    """Yield the packages of files such as ``.../conda-meta/pytorch-2.5.1-py3.12_cuda12.4_0.json``."""
    for path in paths:
        site, _, name = path.rpartition("/")
        distribution, _, rest = name.removesuffix(".json").partition("-")
        yield Package(distribution, rest.partition("-")[0], site)
