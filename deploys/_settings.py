"""Where an environment variable is set on a host, line by line. Not a remedy: what ``environment`` works on.

Which place reaches which way of starting a job: pam_env(8), sshd_config(5) SetEnv, bash(1) INVOCATION, NCCL
src/misc/param.cc, Open MPI docs/mca.rst, UCX docs/source/faq.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from remedy.deploys._places import placed_variables
from remedy.edit.assignments import Dialect, assignments, disabled, effective
from remedy.probe import File, HostState
from remedy.values import Unknown

SESSION = "/etc/environment"
NCCL = "/etc/nccl.conf"
PROFILE = "/etc/profile.d/remedy.sh"
MCA_PATHS = ("/etc/openmpi/openmpi-mca-params.conf", "/etc/openmpi-mca-params.conf")
UCX = "/etc/ucx/ucx.conf"
MCA_PREFIX = "OMPI_MCA_"


@dataclass(frozen=True)
class Target:
    """A file that remedy may keep a block in; ``prefix`` is what its names lack of the variable's name."""

    path: str
    dialect: Dialect
    prefix: str = ""

    @property
    def equals(self) -> str:
        """Return what stands between a name and its value."""
        return " = " if self.dialect is Dialect.MCA else "="


@dataclass(frozen=True)
class Setting:
    """A line that sets a variable.

    Args:
        path: the file.
        line: its number, from 1.
        name: the variable.
        value: as a job gets it.
        target: the file it can be changed in, None where it cannot.
        ours: whether it is in remedy's block.
        reach: which ways of starting a job get it; "" for the files of a target.
        inert: why no job gets it; "" where one does.
    """

    path: str
    line: int
    name: str
    value: str
    target: Target | None = None
    ours: bool = False
    reach: str = ""
    inert: str = ""

    @property
    def shown(self) -> str:
        """Return the place and the setting, for evidence."""
        return f"{self.path}:{self.line}: {self.name}={self.value}"


def targets(host: HostState, *, user_files: bool) -> tuple[Target, ...]:
    """Return the files of a host in which lines can be changed, the user's own only when that is allowed."""
    result = [Target(SESSION, Dialect.PAM), Target(NCCL, Dialect.NCCL)]
    result += [Target(p, Dialect.MCA, MCA_PREFIX) for p in MCA_PATHS if _there(host, p)][:1]
    result += [Target(UCX, Dialect.UCX)] if _there(host, UCX) else []
    if user_files:
        result += [Target(path, Dialect.NCCL) for path in _user_conf(host)]
    return tuple(result)


def target_for(name: str, among: tuple[Target, ...]) -> Target:
    """Return the file in which a variable reaches the most ways of starting a job."""
    for prefix, dialect in (
        ("NCCL_", Dialect.NCCL),
        (MCA_PREFIX, Dialect.MCA),
        ("UCX_", Dialect.UCX),
    ):
        if name.startswith(prefix):
            for target in among:
                if target.dialect is dialect and target.path.startswith("/etc/"):
                    return target
    return among[0]


def settings(host: HostState, among: tuple[Target, ...]) -> tuple[Setting, ...]:
    """Return every setting that decides a variable in its file, first those that can be changed."""
    result = [setting for target in among for setting in _in_target(host, target)]
    for path in _user_conf(host):
        if path not in [target.path for target in among]:
            result += [
                Setting(setting.path, setting.line, setting.name, setting.value)
                for setting in _in_target(host, Target(path, Dialect.NCCL))
            ]
    result += [
        Setting(s.path, s.line, s.name, s.value, reach="this user's jobs by mpirun")
        for path in _in_homes(host, ".openmpi/mca-params.conf")
        for s in _in_target(host, Target(path, Dialect.MCA, MCA_PREFIX))
    ]
    result += [
        Setting(v.path, v.line, v.name, v.value, reach=v.place.reach, inert=v.place.inert)
        for v in placed_variables(host)
        if v.path != PROFILE
    ]
    return tuple(result)


def switched_off(host: HostState, among: tuple[Target, ...]) -> Iterator[tuple[str, str]]:
    """Yield name and value of lines that an earlier run disabled: a session of then may still have them."""
    for target in among:
        file = host.file(target.path)
        if isinstance(file, File) and file.exists:
            for line in disabled(file.content, target.dialect):
                yield target.prefix + line.name, line.value


def _in_target(host: HostState, target: Target) -> Iterator[Setting]:
    file = host.file(target.path)
    if isinstance(file, File) and file.exists:
        lines = assignments(file.content, target.dialect)
        for line in effective(lines, target.dialect).values():
            name = target.prefix + line.name
            yield Setting(target.path, line.line, name, line.value, target, line.ours)


def _user_conf(host: HostState) -> tuple[str, ...]:
    return _in_homes(host, ".nccl.conf")


def _in_homes(host: HostState, name: str) -> tuple[str, ...]:
    homes = () if isinstance(host.session, Unknown) else host.session.homes
    return tuple(path for home in homes if _there(host, path := f"{home}/{name}"))


def _there(host: HostState, path: str) -> bool:
    file = host.file(path)
    return isinstance(file, File) and file.exists
