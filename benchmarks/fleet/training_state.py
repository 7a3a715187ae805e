"""Training state: sysctls, files and a service, as state.json has them.

What the benchmark's other contenders do in their own ways, as a remedy of one's own; host names and the
hosts block are remedies that come with the program. This one is loaded as any third party's is, by an entry
point (see benchmarks/harness/contenders.py), so that what is timed is the program as it is.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from remedy.causes import Cause
from remedy.plan import Workbench, command, remedy
from remedy.spec import SpecSection

STATE: dict[str, Any] = json.loads(
    Path(__file__).with_name("state.json").read_text(encoding="utf-8")
)
SYSCTLS: dict[str, str] = STATE["sysctls"]
SERVICE: str = STATE["service"]
FILES: dict[str, bytes] = {
    STATE["sysctl_file"]: "".join(f"{key} = {value}\n" for key, value in SYSCTLS.items()).encode(),
    **{path: text.encode() for path, text in STATE["files"].items()},
}
CAUSE = Cause(
    name="training-state",
    group="Benchmark",
    cause="A host is not in the state of state.json.",
    silent="the benchmark looks for differences, no job fails by them",
)


class TrainingStateSpec(SpecSection):
    """Nothing to set: the state is in state.json."""


@remedy("Training state", TrainingStateSpec, cures=(CAUSE,), order=60, reads=tuple(sorted(FILES)))
def training_state(bench: Workbench[TrainingStateSpec]) -> None:
    """Decide what has to change on one host."""
    host = bench.host
    wrong = [path for path, text in FILES.items() if bench.file(path).content != text]
    live = bench.need(host.sysctls, "the kernel's settings").live
    now = {key: live.get(key, "") for key in SYSCTLS}
    unit = bench.need(host.units, "the services").get(SERVICE)
    idle = unit is not None and (unit.enabled, unit.active) != ("enabled", "active")
    if not wrong and now == SYSCTLS and not idle:
        return
    finding = bench.drift("the host is not in the state of state.json", wrong)
    for path in wrong:
        bench.write(path, FILES[path], f"write {path}", because=finding)
    for key, value in SYSCTLS.items():
        if now[key] != value:
            do = command(["sysctl", "-q", "-w", f"{key}={value}"])
            bench.run(
                do,
                because=finding,
                observe=command(["sysctl", "-n", key]),
                before=now[key],
                after=value,
                do=do,
                undo=command(["sysctl", "-q", "-w", f"{key}={now[key]}"]),
            )
    if idle and unit is not None:
        name = shlex.quote(SERVICE)
        bench.run(
            f"enable and start {SERVICE}",
            because=finding,
            observe=f"systemctl show --value -p ActiveState -p UnitFileState {name}",
            before=f"{unit.active}\n{unit.enabled}",
            after="active\nenabled",
            do=f"systemctl --quiet enable --now {name}",
            undo=f"systemctl --quiet disable --now {name}",
        )
