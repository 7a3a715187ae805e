"""Looking changes nothing: a host with everything installed and stopped is the same before and after."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping

import pytest

from remedy.lab.host import Host
from remedy.lab.life import SOCKETS
from tests.lab.conftest import Cluster
from tests.lab.site import Site

pytestmark = pytest.mark.lab

EXCUSED = {
    "each login by ssh is written down by sshd, PAM and logind": (
        r"file /(run|var)/log/journal/[0-9a-f]+/(system|user-0)\.journal",
        r"file /var/log/(wtmp|lastlog|auth\.log)",
        r"file /run/utmp",
    ),
    "pam_motd writes the message of the day anew for each login": (
        r"file /run/motd\.dynamic",
        r"file /run",  # the time of the folder: what is in it is compared by itself
    ),
    "logind has a session for each login, and systemd a scope": (
        r"file /run/systemd/sessions(/\d+(\.ref)?)?",
        r"file /run/systemd/users(/0)?",
        r"file /run/systemd/transient(/session-\d+\.scope)?",
        r"file /run/systemd/units(/invocation:session-\d+\.scope)?",
        r"unit(-file)? session-\d+\.scope",
    ),
    "sshd has a process for each connection": (r"process (sshd|sshd-session|sshd-auth) \d\d+",),
    "journald drops the streams of services that have ended": (
        r"file /run/systemd/journal/streams(/.*)?",
    ),
    "counters of the kernel, one of them new at each reading": (
        r"sysctl fs/(aio-nr|dentry-state|file-nr|inode-nr|inode-state|quota/.*)",
        r"sysctl kernel/(ns_last_pid|pty/nr|random/entropy_avail|random/uuid)",
        r"sysctl net/netfilter/nf_conntrack_count",
    ),
    "settings of the machine below, which labs raise and put back": (
        r"sysctl fs/inotify/max_user_instances",
        r"sysctl net/ipv4/neigh/default/gc_thresh[23]",
    ),
}
"""What differs although nothing was done but to log in, and why."""

AGENT = r"""
import json, os, subprocess, sys
seen = {}
def say(kind, name, value): seen[f"{kind} {name}"] = value
def output(*words):
    return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout
for top in ("/etc", "/var", "/run"):
    for folder, folders, files in os.walk(top):
        for name in [".", *folders, *files]:
            path = os.path.normpath(os.path.join(folder, name))
            try:
                s = os.lstat(path)
            except OSError:
                continue
            say("file", path, [s.st_mode, s.st_uid, s.st_size, s.st_ino, s.st_mtime_ns, s.st_ctime_ns])
for folder, _, files in os.walk("/proc/sys"):
    for name in files:
        path = os.path.join(folder, name)
        try:
            say("sysctl", path[len("/proc/sys/"):], open(path, "rb").read(10000).decode("latin-1"))
        except OSError:
            pass
own = {os.getpid()}
pid = os.getpid()
while pid > 1:
    pid = int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
    own.add(pid)
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        stat = open(f"/proc/{pid}/stat").read()
    except OSError:
        continue
    if int(pid) not in own:
        name, started = stat[stat.index("(") + 1:stat.rindex(")")], stat.rpartition(")")[2].split()[19]
        say("process", f"{name} {pid}", started)
for line in output("systemctl", "list-units", "--all", "--plain", "--no-legend", "--no-pager").splitlines():
    words = line.split()
    if words[1] != "not-found":
        say("unit", words[0], words[1:4])
for line in output("systemctl", "list-unit-files", "--no-legend", "--no-pager").splitlines():
    words = line.split()
    say("unit-file", words[0], words[1:])
say("rules", "nft", output("nft", "list", "ruleset"))
for name in ("ip_tables_names", "ip6_tables_names", "arp_tables_names"):
    try:
        say("rules", name, open(f"/proc/net/{name}").read())
    except OSError as error:
        say("rules", name, error.errno)
say("links", "all", output("ip", "-o", "link").splitlines())
say("links", "routes", output("ip", "route", "show", "table", "all").splitlines())
say("links", "rules", output("ip", "rule").splitlines())
try:
    say("modules", "all", sorted(line.split()[0] for line in open("/proc/modules")))
except OSError as error:
    say("modules", "all", error.errno)
print(json.dumps(seen))
"""

# The command as users run it, except that it ends where the first script of a test would go to the hosts.
UNTIL_FIRST_TEST = """
import sys
from remedy.verify.reach import run
def first_test(*_):
    print("here the first test would begin")
    raise SystemExit(70)
run.run_texts = first_test
from remedy.cli.main import main
main(["verify", *sys.argv[1:]])
"""


def snapshot(host: Host) -> dict[str, object]:
    seen: dict[str, object] = json.loads(host.must(["python3", "-c", AGENT]))
    assert len(seen) > 2000
    return seen


def differences(before: Mapping[str, object], after: Mapping[str, object]) -> dict[str, str]:
    """Return what differs and is not excused, with both values."""
    excused = re.compile("|".join(f"(?:{p})" for patterns in EXCUSED.values() for p in patterns))
    return {
        name: f"{before.get(name)} -> {after.get(name)}"
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name) and not excused.fullmatch(name)
    }


def test_a_host_that_is_asleep_is_the_same_after_every_command_that_looks(
    new_cluster: Callable[..., Cluster],
) -> None:
    site = Site(new_cluster(count=2, life="asleep"))
    hosts = [site.cluster.host(name) for name in site.cluster.hosts]
    for host in hosts:
        active = host.must(["systemctl", "is-active", *SOCKETS]).split()
        assert active == ["active"] * len(SOCKETS)
        assert host.run("pgrep dockerd; pgrep containerd; pgrep avahi; pgrep resolve").stdout == ""
    # systemd --user goes some seconds after the last session: one stays.
    sessions = [
        subprocess.Popen(host.ssh(["echo there; sleep 600"]), stdout=subprocess.PIPE)
        for host in hosts
    ]
    try:
        for session in sessions:
            assert session.stdout is not None
            assert session.stdout.readline() == b"there\n"
        before = [snapshot(host) for host in hosts]
        look(site)
        after = [snapshot(host) for host in hosts]
        # And the comparison sees what a single question does.
        hosts[0].run("hostnamectl status")
        woken = snapshot(hosts[0])
    finally:
        for session in sessions:
            session.kill()
            session.communicate()
    for earlier, later in zip(before, after, strict=True):
        assert differences(earlier, later) == {}
    assert "unit systemd-hostnamed.service" in differences(after[0], woken)


def look(site: Site) -> None:
    """Run every command that looks, to its end or to the first test."""
    assert site.remedy("check").code == 0
    assert site.remedy("plan", "-o", str(site.folder / "plan.json")).code == 0
    until = subprocess.run(
        [sys.executable, "-c", UNTIL_FIRST_TEST, str(site.inventory)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "here the first test would begin" in until.stdout, until.stdout + until.stderr
    rehearsed = site.remedy("apply", "--rehearse", "--yes")
    assert "nothing was written on any host" in rehearsed.text, rehearsed.text
