"""NUMA balancing: the kernel does not move pages about under the GPUs of a job.

Cures: transfers between GPU and memory that are slow now and then, on hosts with several NUMA nodes. The kernel
unmaps pages from time to time, to see which processor asks for them, and the driver of the GPUs has to wait for
each one; AMD asks for it to be off (ROCm documentation, "NUMA balancing"; Documentation/admin-guide/sysctl/
kernel.rst, numa_balancing).

Without a spec it acts only on hosts with GPUs. The value is set at once and kept for the next boot; no program
notices. This is the worked example of docs/writing-a-remedy.md.
"""

from __future__ import annotations

from remedy.causes import Cause
from remedy.plan import Workbench, remedy
from remedy.plan.kernel import SettingsFile, observation, set_live, wrong_now
from remedy.probe import HostState, Sysctls
from remedy.spec import SpecSection
from remedy.values import Unknown

KEY = "kernel.numa_balancing"
FILE = SettingsFile("/etc/sysctl.d/90-remedy-numa.conf", "the kernel moves no pages under GPUs")
CAUSE = Cause(
    name="numa-balancing",
    group="Limits and memory",
    cause="The kernel moves pages between NUMA nodes while the GPUs use them.",
    confirm="`cat /proc/sys/kernel/numa_balancing` prints 1 on a host with several NUMA nodes.",
    fix="`sysctl -w kernel.numa_balancing=0`, and a line in /etc/sysctl.d.",
    silent="nothing fails: the job is slower than it could be",
)


class NumaBalancingSpec(SpecSection):
    """``switch_off``: whether it is switched off; without it, only on hosts with GPUs."""

    switch_off: bool | None = None


@remedy("NUMA balancing", NumaBalancingSpec, cures=(CAUSE,), order=65, reads=(FILE.path,))
def numa_balancing(bench: Workbench[NumaBalancingSpec]) -> None:
    """Decide whether the kernel has to leave pages where they are."""
    setting = bench.settings.switch_off
    if not (has_gpu(bench.host) if setting is None else setting):
        FILE.withdraw(bench, "the value in force stays until the next boot")
        return
    sysctls = bench.need(bench.host.sysctls, "the kernel's settings")
    target = {KEY: "0"}
    if KEY not in sysctls.live:
        return  # a kernel without NUMA
    wrong = wrong_now(sysctls, target)
    if not wrong and FILE.lasts(bench, target):
        FILE.note_overruled(bench, target)
        return
    if wrong:
        finding = bench.drift(
            "the kernel moves pages under the GPUs", f"{KEY} = {sysctls.live[KEY]}"
        )
    else:
        finding = bench.drift("no file keeps the kernel from moving pages after the next boot")
    if FILE.keep(bench, target, because=finding):
        set_live(bench, target, because=finding)


def has_gpu(host: HostState) -> bool:
    """Return whether a GPU is on the host's bus."""
    return not isinstance(host.gpus, Unknown) and any(device.is_gpu for device in host.gpus.pci)


# What the plan promises, and what its commands observe: for kernel settings both are there already.
numa_balancing.promises(FILE.promise)
numa_balancing.observes(observation)


@numa_balancing.breaks
def balancing_is_on(state: HostState) -> HostState:
    """Have a kernel that moves pages."""
    if not isinstance(state.sysctls, Sysctls):
        return state
    live = {**state.sysctls.live, KEY: "1"}
    return state.model_copy(update={"sysctls": state.sysctls.model_copy(update={"live": live})})
