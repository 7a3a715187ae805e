"""Changes that lock ssh out, by remedies that do not say so: the host takes them back, and the run says why."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from remedy.apply.start import origin
from remedy.audit.agreement import Agreement
from remedy.plan import Remedy, Workbench, make_plan
from remedy.plan.registry import also
from remedy.runs.apply import apply
from remedy.runs.gate import Proposal
from remedy.runs.outcome import HostStatus, RunOutcome
from remedy.runs.probe import probe
from remedy.spec import SpecSection

from .conftest import Cluster
from .runs import open_hosts, pending

pytestmark = pytest.mark.lab

FULL = pytest.mark.full
SECONDS = 12
LOOK = (
    "find /etc/ssh /etc/security /etc/pam.d -printf '%y %m %u %g %l %p\\n' | sort;"
    " find /etc/ssh /etc/security /etc/pam.d -type f -exec sha256sum {} + | sort; sshd -T | sort"
)


@dataclass(frozen=True)
class Lockout:
    """What a remedy does that means well.

    Args:
        path: the file that it writes.
        content: its bytes.
        then: a command that it runs afterwards; "" for none.
        reason: what the verdict says of the login.
    """

    path: str
    content: bytes
    then: str = ""
    reason: str = ""


CASES = {
    # The login is accepted, and no session: by a file that sshd reads only when it starts.
    "no-session": Lockout("/etc/ssh/sshd_config.d/00-site.conf", b"MaxSessions 0\n"),
    "no-session-reloaded": Lockout(
        "/etc/ssh/sshd_config.d/00-site.conf", b"MaxSessions 0\n", "systemctl reload ssh"
    ),
    "another-command": Lockout(
        "/etc/ssh/sshd_config.d/00-site.conf", b"ForceCommand /bin/echo maintenance\n"
    ),
    "nobody": Lockout("/etc/ssh/sshd_config.d/00-site.conf", b"AllowUsers nobody\n"),
    "not-a-setting": Lockout(
        "/etc/ssh/sshd_config.d/00-site.conf", b"MaxSesions 10\n", reason="Bad configuration option"
    ),
    # A session that starts no process.
    "no-files": Lockout("/etc/security/limits.d/zz-site.conf", b"root hard nofile 1\n"),
    "no-address-space": Lockout("/etc/security/limits.d/zz-site.conf", b"root - as 64\n"),
    "refused-by-pam": Lockout("/etc/pam.d/sshd", b"account required pam_deny.so\n"),
    "closes-shells": Lockout("/root/.bashrc", b"exit 1\n"),
}
USUAL = ("no-session", "no-files")


@contextmanager
def remedy_of(case: Lockout, host: str) -> Iterator[None]:
    """Have a remedy among all others, as a package of somebody brings one, that writes this on a host."""

    def tuning(bench: Workbench[SpecSection]) -> None:
        file = bench.file(case.path)
        if bench.host.host != host or file.content == case.content:
            return
        finding = bench.drift("the site's settings are missing")
        bench.write(case.path, case.content, "write the site's settings", because=finding)
        if case.then:
            seen = "cat /run/site-tuned 2>/dev/null || echo no"
            bench.run(
                "have them read",
                because=finding,
                observe=seen,
                before="no",
                after="yes",
                do=f"{case.then} && echo yes >/run/site-tuned",
                undo=f"{case.then}; rm /run/site-tuned",
            )

    extra = Remedy(
        tuning,
        "Tuning",
        SpecSection,
        cures=("firewall-ports",),
        finds=(),
        order=70,
        reads=(case.path,),
    )
    with also(extra):
        yield


def carried_out(cluster: Cluster, host: str, case: Lockout) -> tuple[RunOutcome, list[bool]]:
    """Return how the run of such a remedy ended, and which changes of its plan are guarded."""
    with remedy_of(case, host):
        session = open_hosts(cluster.inventory_path, SECONDS, host)
        result = probe(session)
        plan = make_plan(result.fleet, origin(), only="tuning")
        outcome = apply(
            session,
            Proposal("apply", Agreement(plan), plan, result),
            consent=lambda _: None,
            prove=False,
        )
    return outcome, [change.guarded for change in plan.changes]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in USUAL else FULL) for name in CASES]
)
def test_the_host_takes_it_back_and_the_verdict_says_so(cluster: Cluster, name: str) -> None:
    host, case = cluster.hosts[0], CASES[name]
    before = cluster.run(host, LOOK).stdout
    text = cluster.run(host, ["cat", case.path]).stdout
    outcome, guarded = carried_out(cluster, host, case)
    assert guarded == [True] * (2 if case.then else 1)
    ended = outcome.hosts[host]
    assert (ended.status, outcome.exit_code) == (HostStatus.FAILED, 1), ended
    assert ended.error is not None
    assert "took it back by itself" in ended.error.message
    assert case.reason in ended.error.message
    assert cluster.run(host, ["cat", case.path]).stdout == text
    assert cluster.run(host, LOOK).stdout == before
    assert pending(cluster, host) == ""


def test_good_settings_are_confirmed_once_sshd_has_read_them(cluster: Cluster) -> None:
    host = cluster.hosts[1]
    case = Lockout("/etc/ssh/sshd_config.d/00-site.conf", b"MaxSessions 7\n")
    listener = "cat /run/sshd.pid; stat -c %z /run/sshd.pid"
    started = cluster.run(host, listener).stdout
    outcome, guarded = carried_out(cluster, host, case)
    (result,) = outcome.hosts[host].results
    assert (result.status.value, guarded) == ("done", [True])
    now = cluster.run(host, listener).stdout
    assert now.split()[0] == started.split()[0], "no connection is cut"
    assert now != started, "sshd has read its files again"
    assert pending(cluster, host) == ""
