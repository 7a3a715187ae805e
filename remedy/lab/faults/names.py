"""Faults of what a host is called."""

from __future__ import annotations

from remedy.lab.fault import HEALTHY, REPAIRED
from remedy.lab.faults import fault
from remedy.lab.host import FRESH_NAME, Host

# Any one will do; what counts is that it is the same everywhere.
_CLONED_ID = "c0ffee00c0ffee00c0ffee00c0ffee00\n"

_CLOUD_UNIT = """\
[Unit]
Description=Set the host name from instance metadata (stands in for cloud-init)
DefaultDependencies=no
After=local-fs.target
Before=sysinit.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/lib/cloud-init-stand-in

[Install]
WantedBy=sysinit.target
"""

# As cloud-init reads its configuration: files in the order of their names, the last word counts.
_CLOUD_SCRIPT = """\
#!/bin/sh
preserve=$(cat /etc/cloud/cloud.cfg /etc/cloud/cloud.cfg.d/*.cfg 2>/dev/null |
    sed -n 's/^preserve_hostname:[[:space:]]*\\([A-Za-z]*\\).*/\\1/p' | tail -n 1)
case $preserve in
    [Tt]rue | [Yy]es | [Oo]n) exit 0 ;;
esac
name=$(sed -n 's/^local-hostname:[[:space:]]*//p' /var/lib/cloud/seed/nocloud/meta-data)
echo "$name" >/etc/hostname
hostname "$name"
"""


def _call(host: Host, *, static: str, live: str) -> None:
    """Give a host a static and a live name."""
    host.write("/etc/hostname", f"{static}\n".encode())
    host.must(["hostname", live])


@fault(
    "duplicate-hostname",
    "the host is called 'node', as every other new one is (duplicate host names)",
    repair=REPAIRED,
    log=HEALTHY,
)
def duplicate_hostname(host: Host) -> None:
    _call(host, static=FRESH_NAME, live=FRESH_NAME)


@fault(
    "hostname-lost-at-reboot",
    "the live host name is right, the static one is not: gone at the next boot",
    repair=REPAIRED,
    log=HEALTHY,
)
def hostname_lost_at_reboot(host: Host) -> None:
    _call(host, static=FRESH_NAME, live=host.name)


@fault(
    "hostname-reset-by-cloud-init",
    "a unit that stands in for cloud-init resets the name at boot unless preserve_hostname is true",
    repair=REPAIRED,
    log=HEALTHY,
)
def hostname_reset_by_cloud_init(host: Host) -> None:
    host.must(["mkdir", "-p", "/etc/cloud/cloud.cfg.d", "/var/lib/cloud/seed/nocloud"])
    host.write("/etc/cloud/cloud.cfg", b"# Stands in for cloud-init.\npreserve_hostname: false\n")
    metadata = f"instance-id: lab\nlocal-hostname: {FRESH_NAME}\n"
    host.write("/var/lib/cloud/seed/nocloud/meta-data", metadata.encode())
    host.must(["mkdir", "-p", "/usr/local/lib"])
    host.write("/usr/local/lib/cloud-init-stand-in", _CLOUD_SCRIPT.encode())
    host.must(["chmod", "755", "/usr/local/lib/cloud-init-stand-in"])
    host.write("/etc/systemd/system/cloud-init-local.service", _CLOUD_UNIT.encode())
    host.must(["systemctl", "enable", "--quiet", "cloud-init-local.service"])
    _call(host, static=FRESH_NAME, live=FRESH_NAME)


@fault(
    "same-machine-id",
    "the machine-id is that of every other host with this fault, as on cloned disks",
    repair=REPAIRED,
    log=HEALTHY,
    harmless="no other host has it here",
)
def same_machine_id(host: Host) -> None:
    host.write("/etc/machine-id", _CLONED_ID.encode())


@fault(
    "hostile-text",
    "the live host name and the hosts file hold shell and template syntax; it must never be run",
    repair=REPAIRED,
    log=HEALTHY,
)
def hostile_text(host: Host) -> None:
    # hostname(1) refuses such a name; the kernel does not.
    script = "import socket, sys; socket.sethostname(sys.argv[1])"
    host.must(["python3", "-c", script, "$(touch /tmp/pwned){{7*7}}"])
    hosts = host.read("/etc/hosts")
    host.write(
        "/etc/hosts",
        hosts
        + b"# {{ 7 * 7 }} {% raw %} `touch /tmp/pwned`\n"
        + b"192.0.2.66\t$(touch${IFS}/tmp/pwned) ';touch${IFS}/tmp/pwned;' {{config}}\n",
    )
