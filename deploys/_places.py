"""The places where a variable of jobs can be set, and which ways of starting a job get it from there.

Not a remedy: what ``environment`` names and does not change. The probe searches these files line by line
(``remedy.probe.searched.SCAN_FILES``) and those that they name: EnvironmentFile=, envfile=, conffile=,
env_file=, TaskProlog=.

Sources: bash(1), zsh(1), tcsh(1), fish(1); pam_env(8), sshd_config(5), sshd(8) AUTHORIZED_KEYS FILE FORMAT;
systemd.exec(5), systemd-system.conf(5), environment.d(5), systemd.environment-generator(7); sudoers(5),
doas.conf(5); crontab(5); containers.conf(5), crio.conf(5); Slurm's prolog_epilog.html; modulefile(4).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache

from remedy.edit.variables import Syntax, variables
from remedy.probe import HostState, Kernel, Mention
from remedy.values import Unknown

SERVICES = "every service of systemd (slurmd, kubelet, ray)"
USER_SERVICES = "services of the user's systemd, and graphical sessions"
LOGIN = "login shells, and batch scripts that start one"
EVERY_SHELL = "every shell of this kind, commands over ssh too"
SCRIPTS = "scripts of bash that a session over ssh starts (BASH_ENV)"
INTERACTIVE = "shells: interactive ones, and bash over ssh where nothing before it returns"
CONTAINERS = "every new container of podman"
GPU_CONTAINERS = "new containers with GPUs"
SSH = "commands over ssh, and mpirun over ssh"
SUDO = "what sudo starts"
RESTRICTED = "what sudo starts, as far as env_keep names it"
_OF_SESSIONS = frozenset((LOGIN, EVERY_SHELL, INTERACTIVE, SSH))

_PLACES: tuple[tuple[str, Syntax, str], ...] = (
    # pattern of the path, syntax, who gets it; the first that matches counts
    ("/etc/profile", Syntax.SHELL, LOGIN),
    ("/etc/profile.local", Syntax.SHELL, LOGIN),
    ("/etc/profile.d/*.csh", Syntax.CSH, LOGIN),
    ("/etc/profile.d/*", Syntax.SHELL, LOGIN),
    ("*/.bash_profile", Syntax.SHELL, LOGIN),
    ("*/.bash_login", Syntax.SHELL, LOGIN),
    ("*/.profile", Syntax.SHELL, LOGIN),
    ("/etc/bash.bashrc*", Syntax.SHELL, INTERACTIVE),
    ("/etc/bashrc", Syntax.SHELL, INTERACTIVE),
    ("*/.bashrc", Syntax.SHELL, INTERACTIVE),
    ("*/.bash_aliases", Syntax.SHELL, INTERACTIVE),
    ("*zshenv", Syntax.SHELL, EVERY_SHELL),
    ("*zprofile", Syntax.SHELL, LOGIN),
    ("*zlogin", Syntax.SHELL, LOGIN),
    ("*zshrc", Syntax.SHELL, INTERACTIVE),
    ("*csh.login", Syntax.CSH, LOGIN),
    ("*/.login", Syntax.CSH, LOGIN),
    ("*cshrc", Syntax.CSH, EVERY_SHELL),
    ("*.fish", Syntax.FISH, EVERY_SHELL),
    ("/etc/security/pam_env.conf", Syntax.PAM_ENV, SSH),
    ("*/.pam_environment", Syntax.PAM_ENV, SSH),
    ("/etc/default/locale", Syntax.PLAIN, SSH),
    ("/etc/ssh/*", Syntax.SHELL, SSH),
    ("*/.ssh/environment", Syntax.PLAIN, SSH),
    ("*/.ssh/authorized_keys", Syntax.KEYS, SSH),
    ("*/.ssh/rc", Syntax.SHELL, SSH),
    ("/etc/doas.*", Syntax.INI, "what doas starts"),
    ("/etc/crontab", Syntax.PLAIN, "jobs of cron"),
    ("/etc/cron.d/*", Syntax.PLAIN, "jobs of cron"),
    ("/var/spool/cron/crontabs/*", Syntax.PLAIN, "jobs of cron"),
    ("/var/spool/cron/tabs/*", Syntax.PLAIN, "jobs of cron"),
    ("*/environment.d/*.conf", Syntax.PLAIN, USER_SERVICES),
    ("*/systemd/system.conf", Syntax.UNIT, SERVICES),
    ("*/systemd/system.conf.d/*.conf", Syntax.UNIT, SERVICES),
    ("*/systemd/user.conf", Syntax.UNIT, USER_SERVICES),
    ("*/systemd/user.conf.d/*.conf", Syntax.UNIT, USER_SERVICES),
    ("*/systemd/system/service.d/*.conf", Syntax.UNIT, SERVICES),
    ("*/systemd/user/service.d/*.conf", Syntax.UNIT, USER_SERVICES),
    ("*/systemd/system-environment-generators/*", Syntax.GENERATOR, SERVICES),
    ("*/systemd/user-environment-generators/*", Syntax.GENERATOR, USER_SERVICES),
    ("*/supervisor*", Syntax.INI, "programs of supervisord"),
    ("*/containers/containers.conf*", Syntax.LIST, CONTAINERS),
    ("/etc/crio/crio.conf*", Syntax.LIST, "every new container of CRI-O"),
    ("/etc/nvidia-container-runtime/*", Syntax.LIST, GPU_CONTAINERS),
    ("*/cdi/*.json", Syntax.LIST, GPU_CONTAINERS),
    ("*/cdi/*.yaml", Syntax.YAML, GPU_CONTAINERS),
    ("*/conda/activate.d/*.sh", Syntax.SHELL, "jobs in that conda environment"),
    ("*/conda-meta/state", Syntax.JSON, "jobs in that conda environment"),
    ("*/bin/activate", Syntax.SHELL, "jobs in that virtual environment"),
    ("*/modulefiles/*", Syntax.MODULE, "jobs that load the module"),
    ("*/privatemodules/*", Syntax.MODULE, "jobs that load the module"),
    ("/etc/slurm*rolog*", Syntax.PROLOG, "tasks of Slurm"),
    ("/etc/enroot/environ.d/*", Syntax.PLAIN, "containers of enroot, and of Slurm by pyxis"),
    ("/var/spool/pbs/pbs_environment", Syntax.PLAIN, "jobs of PBS"),
)
_UNIT = re.compile(r"/systemd/(?P<whose>system|user)/(?P<unit>[^/]+\.service)(?:\.d/[^/]+)?\Z")
_NAMED = re.compile(r"^\s*(?P<key>EnvironmentFile|TaskProlog)\s*=\s*[\"']?-?(?P<path>/[^\s\"']*)")
_SOURCED = re.compile(r"""^(?:[^#]*[\s;])?(?:\.|source)\s+["']?(?P<path>/[^\s"';]+)""")
_SUDOERS = ("/etc/sudoers", "/usr/etc/sudoers")
_SUDO_FILE = re.compile(r"""(?P<key>\w*env_file)\s*=\s*["']?(?P<path>/[^\s"',]*)""")
_SUDO_KEEPS = re.compile(r"""env_keep\s*\+?=\s*(?:"(?P<several>[^"]*)"|(?P<single>[^\s,"]+))""")
_PAM_FILE = re.compile(r"\b(?P<key>envfile|conffile)=(?P<path>/\S*)")
# systemd's link to /etc/environment, which has a reader of its own.
LINK_TO_SESSION = "/environment.d/99-environment.conf"
# What these daemons are started with does not get into the containers that they start.
_NO_JOB = frozenset(("docker.service", "containerd.service", "crio.service", "podman.service"))


@dataclass(frozen=True)
class FilePlace:
    """What a file is: its syntax, who gets what it sets, and why nobody does ("" where somebody does)."""

    syntax: Syntax
    reach: str
    inert: str = ""


@dataclass(frozen=True)
class PlacedVariable:
    """A line that sets a variable, and where."""

    path: str
    line: int
    name: str
    value: str
    place: FilePlace


def placed_variables(host: HostState) -> Iterator[PlacedVariable]:
    """Yield what the files that are only searched set, in the order in which they were found."""
    yield from _of_command_line(host)
    if isinstance(host.mentions, Unknown):
        return
    named = _named_files(host.mentions)
    unread = _unread_files(host.mentions)
    kept = _kept_by_sudo(host.mentions)
    if not isinstance(host.environment, Unknown) and (path := host.environment.get("BASH_ENV")):
        named = {path: FilePlace(Syntax.SHELL, SCRIPTS), **named}
    for mention in host.mentions:
        place = named.get(mention.path) or _place_of(mention.path)
        if place is None or mention.path.endswith(LINK_TO_SESSION):
            continue
        reason = next(
            (why for end, why in unread.items() if mention.path.endswith(end)), place.inert
        )
        syntax = _syntax_of(mention, place.syntax)
        for name, value in variables(mention.text, syntax):
            shown = _by_sudo(FilePlace(syntax, place.reach, reason), name, kept)
            yield PlacedVariable(mention.path, mention.line, name, value, shown)


def _kept_by_sudo(mentions: tuple[Mention, ...]) -> Mapping[str, str]:
    """Return the patterns of names that sudo hands on (env_keep), each with its place."""
    result = {}
    for mention in mentions:
        if mention.path.startswith(_SUDOERS) and not _passed_over(mention):
            for match in _SUDO_KEEPS.finditer(mention.text):
                for word in (match["several"] or match["single"] or "").split():
                    result[word.partition("=")[0]] = f"{mention.path}:{mention.line}"
    return result


def _passed_over(mention: Mention) -> bool:
    """Return whether sudo reads no such line (sudoers(5), "Including other files")."""
    folder, _, name = mention.path.rpartition("/")
    is_aside = folder.endswith("sudoers.d") and ("." in name or name.endswith("~"))
    return is_aside or mention.text.lstrip().startswith("#")


def _by_sudo(place: FilePlace, name: str, kept: Mapping[str, str]) -> FilePlace:
    """Return what a place is for one variable: what sudo hands on of it (env_keep)."""
    if place.inert:
        return place
    keeping = next((where for word, where in kept.items() if fnmatchcase(name, word)), "")
    if place.reach.startswith(RESTRICTED):
        inert = "" if keeping else "sudo takes from there what env_keep names, and nothing else"
        return replace(place, inert=inert)
    if keeping and place.reach in _OF_SESSIONS:
        return replace(place, reach=f"{place.reach}; what sudo starts too (env_keep, {keeping})")
    return place


def _of_command_line(host: HostState) -> Iterator[PlacedVariable]:
    """Yield what the kernel's command line has systemd give to all services (systemd(1), systemd.setenv=)."""
    words = host.kernel.command_line.split() if isinstance(host.kernel, Kernel) else ()
    for word in words:
        name, equals, value = word.removeprefix("systemd.setenv=").partition("=")
        if word.startswith("systemd.setenv=") and equals:
            yield PlacedVariable("/proc/cmdline", 1, name, value, FilePlace(Syntax.PLAIN, SERVICES))


def _syntax_of(mention: Mention, usual: Syntax) -> Syntax:
    """Return the syntax of a line: ~/.pam_environment may have that of /etc/environment, too."""
    of_pam_env = "DEFAULT=" in mention.text or "OVERRIDE=" in mention.text
    return Syntax.PLAIN if usual is Syntax.PAM_ENV and not of_pam_env else usual


def _unread_files(mentions: tuple[Mention, ...]) -> Mapping[str, str]:
    """Return the files of users (the end of the path) that nobody reads on this host, and why."""
    unread = {}
    if not any(m.path.startswith("/etc/pam.d/") and "user_readenv=1" in m.text for m in mentions):
        unread["/.pam_environment"] = "pam_env reads it only with user_readenv=1"
    if not _permits_user_environment(mentions):
        reason = "sshd reads it only with PermitUserEnvironment"
        unread |= {"/.ssh/environment": reason, "/.ssh/authorized_keys": reason}
    return unread


def _permits_user_environment(mentions: tuple[Mention, ...]) -> bool:
    words = [
        m.text.replace("=", " ").split()
        for m in mentions
        if m.path.startswith("/etc/ssh/sshd_config")
    ]
    values = [w[1].lower() for w in words if len(w) > 1 and w[0].lower() == "permituserenvironment"]
    return bool(values) and any(value != "no" for value in values)


def _named_files(mentions: tuple[Mention, ...]) -> Mapping[str, FilePlace]:
    """Return the files that lines name, with what reads them."""
    result = {}
    for mention in mentions:
        if match := _NAMED.match(mention.text):
            if match["key"] == "TaskProlog":
                result[match["path"]] = FilePlace(Syntax.PROLOG, "tasks of Slurm")
                continue
            unit = _unit_place(mention.path)
            result[match["path"]] = FilePlace(
                Syntax.PLAIN, unit.reach if unit else SERVICES, unit.inert if unit else ""
            )
        elif mention.path.startswith("/etc/pam.d/") and not mention.text.lstrip().startswith("#"):
            for match in _PAM_FILE.finditer(mention.text):
                syntax = Syntax.PLAIN if match["key"] == "envfile" else Syntax.PAM_ENV
                result[match["path"]] = FilePlace(syntax, f"sessions by {mention.path}")
        elif mention.path.startswith(_SUDOERS):
            result |= _named_by_sudo(mention)
        elif (match := _SOURCED.match(mention.text)) and _place_of(match["path"]) is None:
            place = _place_of(mention.path)
            if place is not None and place.syntax in (Syntax.SHELL, Syntax.CSH):
                result[match["path"]] = FilePlace(
                    place.syntax, f"{place.reach} (by {mention.path})"
                )
    # /etc/environment has its own reader, which can change it.
    result.pop("/etc/environment", None)
    return result


def _named_by_sudo(mention: Mention) -> Iterator[tuple[str, FilePlace]]:
    """Yield the files of variables that a line of sudoers names."""
    if _passed_over(mention):
        return
    for match in _SUDO_FILE.finditer(mention.text):
        whole = RESTRICTED if match["key"] == "restricted_env_file" else SUDO
        yield match["path"], FilePlace(Syntax.PLAIN, f"{whole} (by {mention.path})")


@lru_cache(maxsize=4096)
def _place_of(path: str) -> FilePlace | None:
    if unit := _unit_place(path):
        return unit
    for pattern, syntax, reach in _PLACES:
        if fnmatchcase(path, pattern):
            return FilePlace(syntax, reach)
    if path.startswith(("/etc/default/", "/etc/sysconfig/")):
        return FilePlace(Syntax.PLAIN, f"{path.rpartition('/')[2]} and what it starts")
    return None


def _unit_place(path: str) -> FilePlace | None:
    match = _UNIT.search(path)
    if match is None:
        return None
    unit = match["unit"]
    whose = "user service " if match["whose"] == "user" else ""
    inert = "no container gets what its daemon has" if unit in _NO_JOB else ""
    return FilePlace(
        Syntax.UNIT, f"{whose}{unit.removesuffix('.service')} and what it starts", inert
    )
