"""Scripts on hosts behind gateways: each host its own, with its end or why there is none."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import ClusterShell
import pytest

from tests.unit.transport.gateways import fake_ssh
from tests.unit.transport.gateways.fake_ssh import HOSTILE
from tests.unit.transport.process_bench import in_a_process

_SUDO = """\
#!/bin/sh
asks=1
while :; do case $1 in -S) asks=0; shift ;; -p) shift 2 ;; -*) shift ;; *) break ;; esac; done
[ "$HERE" != open ] || exec "$@"
[ $asks = 0 ] || { echo 'sudo: a password is required' >&2; exit 1; }
IFS= read -r password
[ "$password" = secret ] || { echo 'Sorry, try again' >&2; exit 1; }
exec "$@"
"""
_PROGRAM = """
import json
from collections.abc import Mapping
from pathlib import Path
os.environ.update(json.loads(sys.stdin.readline()))
from pydantic import SecretStr
from remedy.spec import SshSpec
from remedy.transport import Root, Script
from remedy.transport.connections import Transport
from remedy.transport.gateways import tree
from remedy.transport.reader import load_inventory
tree.PATIENCE, tree.KILL_AFTER = -3, 0
folder = Path(sys.argv[0] if False else os.environ["FOLDER"])
seconds = dict.fromkeys(("name", "connect", "key_exchange", "login", "channel", "command"), 1)
gateways = json.loads(os.environ["GATEWAYS"])
spec = SshSpec(gateways=gateways, gateway_python=sys.executable, **seconds)
spec = SshSpec(**{**spec.model_dump(), **json.loads(os.environ.get("SPEC", "{}"))})
events = []
transport = Transport(
    load_inventory(folder / "inventory.py"),
    sudo_password=SecretStr("secret"),
    spec=spec,
    listener=lambda event: events.append((event.host, event.stage, event.detail)),
)
# What is waited for in vain is waited for a few seconds; what runs here has time on a busy machine.
short = json.loads(os.environ["SHORT"])
scripts = {
    name: Script(text, 1 if name in short else 30, Root.REQUIRED)
    for name, text in json.loads(os.environ["SCRIPTS"]).items()
}
class Written(Mapping):
    def __getitem__(self, name):
        events.append((name, "written", ""))
        return scripts[name]
    def __iter__(self):
        return iter(scripts)
    def __len__(self):
        return len(scripts)
heard = []
asked = Written() if "WRITTEN" in os.environ else scripts
outputs = transport.run(asked, lambda output: heard.append(output))
transport.close()
print(json.dumps({
    "outputs": {o.host: [o.stdout, o.stderr, o.exit_code, o.error and type(o.error).__name__,
        str(o.error or "")] for o in heard},
    "kept": [o.stdout for o in outputs.values()],
    "names": list(outputs),
    "events": events,
    "warnings": transport.warnings,
}))
"""


def run(
    folder: Path,
    hosts: dict[str, str],
    gateways: dict[str, str],
    scripts: dict[str, str],
    *,
    short: tuple[str, ...] = (),
    written: bool = False,
    **spec: Any,
) -> dict[str, Any]:
    """Run scripts in a process.

    Args:
        folder: of the fake ssh.
        hosts: the user of each.
        gateways: to hosts.
        scripts: by host.
        short: the hosts whose script has a deadline of a second.
        written: whether each script is written only when it is looked up.
        spec: what else the section has.
    """
    environment = fake_ssh.install(folder)
    for name, text in (("sudo", _SUDO), ("id", "#!/bin/sh\necho 1000\n")):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    entries = [(name, {"ssh_user": user}) for name, user in hosts.items()]
    (folder / "inventory.py").write_text(f"hosts = {entries!r}\n")
    more = {
        "PATH": environment["PATH"],
        "FOLDER": str(folder),
        "GATEWAYS": json.dumps(gateways),
        "SCRIPTS": json.dumps(scripts),
        "SHORT": json.dumps(short),
        "SPEC": json.dumps(spec),
        **({"WRITTEN": "1"} if written else {}),
    }
    text = f"import io\nsys.stdin = io.StringIO({json.dumps(more)!r})\n" + _PROGRAM
    answer: dict[str, Any] = json.loads(in_a_process(text).splitlines()[-1])
    return answer


def test_each_host_gets_its_own_script_and_its_own_password(tmp_path: Path) -> None:
    fake_ssh.put(tmp_path, "open", f'tee -a {tmp_path}/sent-open | sh -c "$1"')
    hosts = {"a": "root", "b": "root", "open": "trainer", "closed": "guarded", "other": "guarded"}
    scripts = {name: f"echo it is $HERE, {name}; printf 'x\\ry' >&2\n" for name in hosts}
    scripts["b"] = scripts["a"]
    answer = run(tmp_path, hosts, {"gw[1-2]": "*"}, scripts)
    assert answer["names"] == list(hosts)
    assert set(answer["kept"]) == {""}
    for name in hosts:
        asked = "a" if name == "b" else name
        expected = [f"it is {name}, {asked}", "x\ny", 0, None, ""]
        assert answer["outputs"][name] == expected, answer["outputs"][name]
    assert b"secret" not in (tmp_path / "sent-open").read_bytes()
    stages = [stage for host, stage, _ in answer["events"] if host == "closed"]
    assert stages[-2:] == ["running", "answered"]


def test_scripts_are_written_when_a_gateway_has_a_place_for_them(tmp_path: Path) -> None:
    hosts = dict.fromkeys(["a", "b", "c", "d"], "root")
    scripts = {name: f"echo it is {name}\n" for name in hosts}
    answer = run(tmp_path, hosts, {"gw[1-2]": "*"}, scripts, written=True, gateway_fanout=1)
    assert {name: answer["outputs"][name][0] for name in hosts} == {n: f"it is {n}" for n in hosts}
    stages = [stage for _, stage, _ in answer["events"] if stage in ("written", "answered")]
    assert stages[:3] == ["written", "written", "answered"]
    assert sorted(stages) == ["answered"] * 4 + ["written"] * 4


def test_what_keeps_a_host_from_its_script_is_said_with_the_gateway(tmp_path: Path) -> None:
    hostile = f"exec {sys.executable} {HOSTILE} swallows {tmp_path} {ClusterShell.__version__}"
    fake_ssh.put(tmp_path, "stalls", hostile)
    fake_ssh.put(tmp_path, "old", hostile.replace("swallows", "old"))
    fake_ssh.put(
        tmp_path, "dead", "echo 'ssh: connect to host dead: No route to host' >&2; exit 255"
    )
    ends = {
        "unknown": "echo 'Host key verification failed.' >&2; exit 255",
        "changed": "echo 'WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!' >&2; exit 255",
        "refused": "echo 'root@refused: Permission denied (publickey).' >&2; exit 255",
        "nologin": "echo 'This account is not available.'; exit 1",
        "breaks": 'sh -c "$1"; kill -9 $$',
    }
    for name, text in ends.items():
        fake_ssh.put(tmp_path, name, text)
    hosts = dict.fromkeys([*ends, "fine", "stalled", "moved", "cut-off", "too-old"], "root")
    scripts = dict.fromkeys(hosts, "echo fine\n")
    scripts["breaks"] = "pkill -9 -P $PPID; sleep 1\n"
    gateways = {
        "well": ",".join([*ends, "fine"]),
        "stalls": "stalled",
        "dead,spare": "moved",
        "gone,dead": "cut-off",
        "old": "too-old",
    }
    fake_ssh.put(tmp_path, "gone", "exit 255")
    answer = run(tmp_path, hosts, gateways, scripts, short=("stalled",))
    said = {name: output[3:] for name, output in answer["outputs"].items()}
    assert (said["fine"], said["moved"]) == ([None, ""], [None, ""])
    expected = {
        "unknown": ("HostKeyError", "its gateway well does not know the ssh host key"),
        "changed": ("ChangedKeyError", "that its gateway well knows has CHANGED"),
        "refused": ("UnreachableError", "the host refused the gateway's login: root@refused"),
        "nologin": ("UnreachableError", "the login shell ended before the command began"),
        "stalled": ("UnreachableError", "unreachable through stalls: no word that its script"),
        "cut-off": ("UnreachableError", "unreachable through dead,gone: dead: no connection"),
        "too-old": ("UnreachableError", f"pip install ClusterShell=={ClusterShell.__version__}"),
    }
    for name, (kind, text) in expected.items():
        assert said[name][0] == kind, said[name]
        assert text in said[name][1], said[name]


def test_a_relay_that_dies_is_said_and_started_anew(tmp_path: Path) -> None:
    fake_ssh.put(tmp_path, "kills", "kill -9 $(ps -o ppid= -p $$); exec sleep 60")
    answer = run(tmp_path, {"h": "root"}, {"kills": "h"}, {"h": "echo x\n"})
    kind, text = answer["outputs"]["h"][3:]
    assert kind == "UnreachableError"
    assert "the process that speaks with its gateways ended" in text


def test_a_gateway_behind_another_is_asked_by_that_and_not_by_itself(tmp_path: Path) -> None:
    """It and the hosts behind it get the same script, as in each probe."""
    hosts = dict.fromkeys(["inner", "last", "a"], "root")
    gateways = {"gw": "inner", "inner": "last", "last": "a"}
    answer = run(tmp_path, hosts, gateways, dict.fromkeys(hosts, 'echo "$HERE from $FROM"\n'))
    assert {name: output[0] for name, output in answer["outputs"].items()} == {
        "inner": "inner from gw",
        "last": "last from inner",
        "a": "a from last",
    }


GONE = "echo 'ssh: connect to host: No route to host' >&2; exit 255"


def test_a_gateway_whose_hosts_went_another_way_is_named_once(tmp_path: Path) -> None:
    for name in ("gw1", "gw3"):
        fake_ssh.put(tmp_path, name, GONE)
    hosts = dict.fromkeys(["a", "b", "c", "d"], "root")
    answer = run(tmp_path, hosts, {"gw[1-3]": "*"}, dict.fromkeys(hosts, "true\n"))
    assert {name: output[3] for name, output in answer["outputs"].items()} == dict.fromkeys(hosts)
    (warning,) = answer["warnings"]
    assert warning == (
        "gw[1,3]: failed as gateways, their hosts went through gw2: no connection, or it broke: ssh: connect "
        "to host: No route to host. Does gw1 answer, with this machine's keys? ssh gw1 true"
    )


def test_a_gateway_that_errors_of_hosts_name_is_no_warning_too(tmp_path: Path) -> None:
    fake_ssh.put(tmp_path, "gw", GONE)
    answer = run(tmp_path, {"a": "root", "b": "root"}, {"gw": "a", "other": "b"}, {"a": "true\n"})
    assert "a: unreachable through gw: gw: no connection" in answer["outputs"]["a"][4]
    assert answer["warnings"] == []


@pytest.mark.parametrize(
    ("failure", "reason", "step"),
    [
        ("exit 255", "no connection from gw: it printed nothing", "ssh gw ssh -l root dead true"),
        (GONE, "no connection from gw: ssh: connect to host: No route", "with the keys of gw?"),
        (
            "echo 'No module named ClusterShell' >&2; exit 1",
            "it has no ClusterShell for",
            f"ssh gw 'ssh -l root dead '\"'\"'{sys.executable} -m pip install ClusterShell==",
        ),
        (
            "echo $1 | grep -q Gateway || echo 1.9.1",
            "it has ClusterShell 1.9.1, and here is",
            "pip",
        ),
    ],
)
def test_a_gateway_behind_another_that_fails_is_named_with_its_place_and_the_way_there(
    tmp_path: Path, failure: str, reason: str, step: str
) -> None:
    fake_ssh.put(tmp_path, "dead", f'case $1 in *import*) eval "${{1%%;*}}";; esac; {failure}')
    if failure.startswith("e") and "255" in failure:
        fake_ssh.put(tmp_path, "dead", failure)
    hosts = dict.fromkeys(["a", "dead", "b"], "root")
    gateways = {"gw": "dead,b", "dead": "a"}
    answer = run(tmp_path, hosts, gateways, {"a": "echo x\n", "b": "echo x\n"})
    kind, text = answer["outputs"]["a"][3:]
    assert (
        kind,
        text.partition("\n")[0].startswith(f"a: unreachable through dead: dead: {reason}"),
    ) == (
        "UnreachableError",
        True,
    ), text
    assert step in text
    assert answer["outputs"]["b"][0] == "x", "a host that does not stand behind it is not concerned"


def test_hosts_of_a_gateway_behind_another_move_within_its_set(tmp_path: Path) -> None:
    fake_ssh.put(tmp_path, "in1", GONE)
    hosts = dict.fromkeys(["a", "b", "c"], "root")
    every = {**hosts, "in1": "root", "in2": "root"}
    gateways = {"gw": "in1,in2", "in[1-2]": "a,b,c"}
    script = 'echo "$HERE from $FROM"\n'
    answer = run(tmp_path, every, gateways, dict.fromkeys(hosts, script))
    assert {n: o[0] for n, o in answer["outputs"].items()} == {n: f"{n} from in2" for n in hosts}
    (warning,) = answer["warnings"]
    assert warning.startswith(
        "in1: failed as a gateway, its hosts went through in2: no connection from gw: ssh"
    )


@pytest.mark.parametrize("stays_dead", [True, False])
def test_a_gateway_behind_another_that_dies_at_work_is_named(
    tmp_path: Path, stays_dead: bool
) -> None:
    fake_ssh.put(
        tmp_path,
        "dies",
        f"""
if [ -e {tmp_path}/died ]; then {GONE if stays_dead else 'exec sh -c "$1"'}; fi
case $1 in *Gateway*) ;; *) exec sh -c "$1" ;; esac
touch {tmp_path}/died
sh -c "exec $1" <&0 & sleep 2; kill -9 $!; exit 255
""",
    )
    hosts = dict.fromkeys(["a", "dies"], "root")
    answer = run(tmp_path, hosts, {"gw": "dies", "dies": "a"}, {"a": "sleep 20\n"})
    kind, text = answer["outputs"]["a"][3:]
    assert kind == "UnreachableError"
    expected = (
        "a: unreachable through dies: dies: no connection from gw: ssh: connect to host"
        if stays_dead
        else "a: the connection from gw to its gateway dies broke while the script ran\nRun the command again"
    )
    assert text.startswith(expected), text


@pytest.mark.full
def test_a_host_that_floods_ends_alone(tmp_path: Path) -> None:
    fake_ssh.put(tmp_path, "loud", "exec yes a long line that is printed without an end")
    scripts = {"loud": "true\n", "quiet": "echo quiet\n", "much": "head -c 9000000 /dev/zero\n"}
    hosts = dict.fromkeys(scripts, "root")
    answer = run(tmp_path, hosts, {"gw": "*"}, scripts)
    said = answer["outputs"]
    assert said["quiet"][0] == "quiet"
    assert "the login shell printed 256 KiB" in said["loud"][4]
    assert "printed more than 4 MiB" in said["much"][4]
