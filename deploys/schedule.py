"""Schedule: nothing is to change the host by itself at a time that somebody has set.

Finds: a host that is right now and is about to be changed without anybody's doing. A shutdown or reboot with
a time (`shutdown -r +30`); a timer of `systemd-run --on-active` whose command changes the firewall, routes,
addresses, kernel settings or services, or takes something back; a job of at(1) or batch(1) that does; a program
that waits for an answer and takes its change back without it (`iptables-apply`, `netplan try`); a shell that
sleeps before such a command. What is said of such a host, and what is proved on it, holds until then: each is
UNKNOWN, with its text. What is right is accepted by that text.

How it is judged: the timers of /run/systemd/transient by what systemd-run notes as their description, the file
in which systemd keeps a shutdown, command lines, and the commands of at's jobs. What a script of another name
does is not seen. Changes of remedy's own that wait for their confirmation are settled before a plan is made.

Sources: systemd-run(1), shutdown(8), iptables-apply(8), netplan-try(8), at(1); at's own at.c, by which the name
of a job's file is its queue, its number and the minute of its time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone

from pydantic import Field

from remedy.causes import Cause
from remedy.deploys._unsearched import JOBS_OF_AT, note_unsearched
from remedy.plan import Workbench, remedy
from remedy.probe import File, HostState, Mention, Process
from remedy.spec import SpecSection
from remedy.text import is_number

CAUSE = Cause(
    name="change-scheduled",
    group="Launch",
    cause="Somebody has set a time at which the host is changed, or restarted.",
    confirm="`systemctl list-timers`, `atq`, `cat /run/systemd/shutdown/scheduled`, `ps -eo args`.",
    fix="Wait for it, or take it back: `systemctl stop NAME.timer`, `atrm NUMBER`, `shutdown -c`.",
    silent="nothing fails before that time",
)
TIMERS = "/run/systemd/transient"
SHUTDOWN = "/run/systemd/shutdown/scheduled"
OF_REMEDY, STATE = f"{TIMERS}/remedy-", "/var/lib/remedy/"
"""Timers and processes of remedy's own, of which the probe says more (``remedy.probe.guards``)."""

LONGEST = 200

_TOOLS = (
    r"nft|ip6?tables(-legacy|-nft)?(-restore|-apply)?|arptables\S*|ebtables\S*|ipset|ufw|firewall-cmd|netplan|nmcli"
    r"|networkctl|ifup|ifdown|ifconfig|sysctl|hostnamectl|shutdown|reboot|poweroff|halt|kexec"
)
_OBJECTS = r"ip (-\S+ )*(a|r|l|ro|addr\w*|route|rule|link|neigh\w*|xfrm)|tc (qdisc|filter)"
_SERVICES = (
    r"systemctl (-\S+ )*(reboot|poweroff|halt|kexec|isolate|start|stop|restart|disable|enable)"
)
_CHANGES = re.compile(
    rf"(^|[\s/;&|('\"])({_TOOLS}|{_OBJECTS}|{_SERVICES})($|[\s;&|)'\"])"
    r"|(^|[\s/._-])(rollback|roll-back|revert|restore|undo)($|[\s._-])"
)
_WAITING = re.compile(r"(^|/)iptables-apply( |$)|(^|/)netplan try( |$)")
_JOB = re.compile(r"[A-Za-z=]([0-9a-f]{5})([0-9a-f]{8})")
_SLEEPING = re.compile(r"(^|[\s;&|('\"])sleep [\d.]+[smhd]?\s*[;&\n]")


class ScheduleSpec(SpecSection):
    """``accept``: what is right as it is: descriptions of timers, command lines, or the mode of a shutdown,
    each as findings show it.
    """

    accept: tuple[str, ...] = Field((), examples=[["/usr/sbin/nft flush ruleset"]])


Bench = Workbench[ScheduleSpec]


@remedy(
    "Scheduled changes",
    ScheduleSpec,
    finds=(CAUSE,),
    order=93,
    reads=(SHUTDOWN, f"{TIMERS}/*.timer"),
)
def schedule(bench: Bench) -> None:
    """Look for what is to change the host at a time that somebody has set."""
    with bench.part():
        _note_shutdown(bench, bench.known(bench.host.file(SHUTDOWN)))
    for file in bench.host.files_in(TIMERS):
        if isinstance(file, File) and file.exists and file.path.endswith(".timer"):
            _note_timer(bench, file)
    with bench.part():
        _note_jobs(bench, bench.known(bench.host.mentions))
    note_unsearched(bench, "is to do", under=JOBS_OF_AT)
    with bench.part():
        _note_processes(bench, bench.known(bench.host.processes))


def _note_shutdown(bench: Bench, file: File) -> None:
    values = dict(_assignments(file)) if file.exists else {}
    mode = values.get("MODE", "")
    if not mode or mode in bench.settings.accept:
        return
    moment = values.get("USEC", "")
    at = f" at {_time(int(moment))}" if is_number(moment) else ""
    _note(bench, f"a {mode} is scheduled{at}", f"{SHUTDOWN}: MODE={mode}", "shutdown -c", mode)


def _time(microseconds: int) -> str:
    try:
        return datetime.fromtimestamp(microseconds // 10**6, timezone.utc).strftime(
            "%Y-%m-%d %H:%M UTC"
        )
    except (ValueError, OverflowError, OSError):
        return "a time that cannot be read"


def _note_timer(bench: Bench, file: File) -> None:
    """Name a timer whose command changes what is judged here."""
    if file.path.startswith(OF_REMEDY):
        return
    values = list(_assignments(file))
    text = next((value for key, value in values if key == "Description"), "")
    if not _CHANGES.search(text) or text in bench.settings.accept:
        return
    name = file.path.removeprefix(f"{TIMERS}/")
    times = [f"{file.path}: {key}={value}" for key, value in values if key.startswith("On")]
    title = f"{name} is to run: {text[:LONGEST]}"
    _note(bench, title, times, f"systemctl stop {name}", text)


def _note_jobs(bench: Bench, mentions: Iterable[Mention]) -> None:
    """Name jobs of at(1) and batch(1) whose commands change what is judged here."""
    for mention in mentions:
        folder, _, name = mention.path.rpartition("/")
        job, text = _JOB.fullmatch(name), mention.text.strip()
        if job is None or f"{folder}/" not in JOBS_OF_AT or text in bench.settings.accept:
            continue
        if not text.startswith("#") and _CHANGES.search(text):
            number, moment = int(job[1], 16), int(job[2], 16) * 60 * 10**6
            title = f"job {number} of at is to run at {_time(moment)}: {text[:LONGEST]}"
            shown = f"{mention.path}:{mention.line}: {text[:LONGEST]}"
            _note(bench, title, shown, f"atrm {number}", text)


def _note_processes(bench: Bench, processes: Iterable[Process]) -> None:
    """Name programs that take a change back unless somebody answers, and shells that sleep before they do."""
    for process in processes:
        text = " ".join(process.arguments or ())
        if STATE in text:
            continue
        waits = _WAITING.search(text)
        if not waits and not (_SLEEPING.search(text) and _CHANGES.search(text)):
            continue
        if text not in bench.settings.accept:
            end = f"kill {process.pid}" if not waits else "answer it where it runs"
            title = f"a program is to change the host: {text[:LONGEST]}"
            _note(bench, title, f"process {process.pid}", end, text)


def _note(bench: Bench, title: str, evidence: str | Iterable[str], end: str, text: str) -> None:
    accept = f'if it changes nothing that matters, add to schedule.accept in remedy.yaml: "{text}"'
    fix = f"Wait for it, or take it back: {end}; {accept}"
    bench.unknown(title, evidence, fix)


def _assignments(file: File) -> Iterator[tuple[str, str]]:
    for line in file.content.decode("utf-8", "replace").splitlines():
        key, equals, value = line.partition("=")
        if equals:
            yield key.strip(), value.strip()


@schedule.breaks
def the_firewall_is_to_be_taken_back(state: HostState) -> HostState:
    """Have a timer that takes the rules of the firewall away."""
    path = f"{TIMERS}/undo.timer"
    text = b"[Unit]\nDescription=/usr/sbin/nft flush ruleset\n\n[Timer]\nOnActiveSec=20min\n"
    file = File(path=path, real_path=path, exists=True, content=text)
    return state.model_copy(update={"files": {**state.files, path: file}})
